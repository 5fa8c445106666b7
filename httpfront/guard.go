package httpfront

import (
	"bytes"
	"cmp"
	"net/http"

	"github.com/ropeline/ropeline/node/room"
)

// Where two parsers read one head in two ways, a request can be hidden inside another. So a head is
// read by rules that leave one reading only, and the origin is sent what these rules understood.

const (
	targetMax  = 8 << 10
	fieldsMax  = 100
	optionsMax = 32 // in Connection, which each field's name is compared with
)

// rawHead is a head as it arrived, split into the parts of the request line and the rest with
// its last empty line.
type rawHead struct {
	method, target, protocol []byte
	fields                   []byte
}

// refusal says why a request is not served. The zero value is none.
type refusal struct {
	code   int
	reason string
	to     string // the address to ask for instead; "" for none
}

func bad(reason string) refusal { return refusal{code: http.StatusBadRequest, reason: reason} }

// parse fills r from h, or says why h is refused. r owns everything it keeps.
func (r *request) parse(h rawHead) refusal {
	switch {
	case string(h.protocol) == "HTTP/1.1":
		r.http11 = true
	case string(h.protocol) != "HTTP/1.0":
		return refusal{code: http.StatusHTTPVersionNotSupported, reason: "only HTTP/1.0 and HTTP/1.1 are spoken here"}
	}
	if r.method = methodOf(h.method); r.method == "" {
		return refusal{code: http.StatusNotImplemented, reason: "this method is not supported"}
	}
	if len(h.target) > targetMax {
		return refusal{code: http.StatusRequestURITooLong, reason: "the address is too long"}
	}
	r.head = append(append(r.head[:0], h.target...), h.fields...)
	r.target = r.head[:len(h.target):len(h.target)]
	if no := r.parseFields(r.head[len(h.target):]); no.code != 0 {
		return no
	}
	if no := r.parseTarget(); no.code != 0 {
		return no
	}
	return r.parseMeaning()
}

// parseFields splits the lines of b, which ends in an empty line or is empty
// itself.
func (r *request) parseFields(b []byte) refusal {
	if len(b) == 0 {
		return refusal{}
	}
	for {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return bad("the head does not end in an empty line")
		}
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return bad("a line of the head does not end in CR LF")
		}
		if line = line[:len(line)-1]; len(line) == 0 {
			if len(rest) != 0 {
				return bad("the head goes on after an empty line")
			}
			return refusal{}
		}
		if len(r.fields) == fieldsMax {
			return refusal{code: http.StatusRequestHeaderFieldsTooLarge, reason: "too many header fields"}
		}
		f, no := parseField(line)
		if no.code != 0 {
			return no
		}
		r.fields = append(r.fields, f)
		b = rest
	}
}

func parseField(line []byte) (field, refusal) {
	if line[0] == ' ' || line[0] == '\t' {
		return field{}, bad("a header field is folded over several lines")
	}
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 {
		return field{}, bad("a header field has no name")
	}
	if !isName(name) {
		return field{}, bad("a header field's name has a forbidden character")
	}
	if !isValue(value) {
		return field{}, bad("a header field has a control character")
	}
	return field{name, trimSpace(value)}, refusal{}
}

// parseTarget brings the target into origin form and takes the host.
func (r *request) parseTarget() refusal {
	for _, c := range r.target {
		if c <= ' ' || c == 0x7f || c == '#' {
			return bad("the address has a forbidden character")
		}
	}
	hosts := 0
	for v := range r.all("host") {
		r.hostField = v
		hosts++
	}
	if hosts > 1 || hosts == 0 && r.http11 {
		return bad("want exactly one Host field")
	}
	if hosts > 0 {
		if no := r.takeHost(); no.code != 0 {
			return no
		}
	}
	switch {
	case len(r.target) > 0 && r.target[0] == '/':
	case string(r.target) == "*" && r.method == "OPTIONS":
	default:
		if no := r.stripAuthority(); no.code != 0 {
			return no
		}
	}
	return r.readPath()
}

// takeHost takes the host out of r.hostField, whose port may be empty.
func (r *request) takeHost() refusal {
	var ok bool
	if r.host, ok = r.memory.readHost(r.hostField); !ok {
		return bad("the Host field is not a host name")
	}
	r.hostField = bytes.TrimSuffix(r.hostField, []byte(":"))
	return refusal{}
}

// readPath reads the path. What servers may take for another one is refused: the
// visitor would be in the queue of one path and be served the other.
func (r *request) readPath() refusal {
	slashes := len(r.target) - len(bytes.TrimLeft(r.target, "/"))
	raw, _, _ := bytes.Cut(r.target[max(slashes-1, 0):], []byte("?"))
	var err error
	if r.path, err = r.memory.readPath(raw); err != nil {
		return bad(err.Error())
	}
	if slashes > 1 {
		// Many sites resolve it as browsers resolve links, and serve what comes behind the host.
		return refusal{
			code: http.StatusPermanentRedirect, to: string(r.target[slashes-1:]),
			reason: `the address begins with "//", which is the name of a host to some sites; begin it with one "/"`,
		}
	}
	return refusal{}
}

// stripAuthority turns http://host/path into /path if host is the Host field's, or if there is no
// such field, as HTTP/1.0 allows.
func (r *request) stripAuthority() refusal {
	scheme, rest, ok := bytes.Cut(r.target, []byte("://"))
	if !ok || !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return bad("the address is not a path")
	}
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	switch authority := rest[:end]; {
	case len(r.hostField) == 0 && !r.http11 && r.count("host") == 0 && end > 0: // RFC 9112, 3.2.2
		r.hostField = authority
		if no := r.takeHost(); no.code != 0 {
			return no
		}
	case !sameHost(authority, r.hostField, scheme):
		return bad("the address and the Host field name different hosts")
	}
	switch rest = rest[end:]; {
	case len(rest) == 0 && r.method == "OPTIONS":
		r.target = []byte("*") // RFC 9112, 3.2.4
	case len(rest) == 0:
		r.target = []byte("/")
	case rest[0] == '?':
		r.target = append([]byte("/"), rest...)
	default:
		r.target = rest
	}
	return refusal{}
}

// parseMeaning reads the fields that say where the message ends and what the
// client wants of the connection.
func (r *request) parseMeaning() refusal {
	r.length = lengthNone
	lengths, codings, options := 0, 0, 0
	var websocket, upgrade, keep bool
	for _, f := range r.fields {
		switch {
		case equalFold(f.name, "content-length"):
			n, ok := parseLength(f.value)
			if lengths++; lengths > 1 || !ok {
				return bad("want at most one Content-Length field, and a number in it")
			}
			r.length = n
		case equalFold(f.name, "transfer-encoding"):
			if codings++; codings > 1 || !r.http11 || !equalFold(f.value, "chunked") {
				return bad("the only transfer encoding understood is one chunked")
			}
		case equalFold(f.name, "expect"):
			if !equalFold(f.value, "100-continue") {
				return refusal{code: http.StatusExpectationFailed, reason: "this expectation is not known"}
			}
			r.expectation = r.http11 // others do not know of it
		case equalFold(f.name, "accept"):
			r.accept = appendElement(r.accept, f.value)
		case equalFold(f.name, "accept-language"):
			r.acceptLanguage = appendElement(r.acceptLanguage, f.value)
		case equalFold(f.name, "cookie"):
			r.cookies = true
		case equalFold(f.name, "authorization"):
			r.logsIn = r.logsIn || isOfConnection(f.value)
		case equalFold(f.name, "connection"):
			if options += 1 + bytes.Count(f.value, []byte(",")); options > optionsMax {
				return refusal{code: http.StatusRequestHeaderFieldsTooLarge, reason: "too many options in the Connection field"}
			}
			upgrade = upgrade || hasToken(f.value, "upgrade")
			keep = keep || hasToken(f.value, "keep-alive")
			r.close = r.close || hasToken(f.value, "close")
		case equalFold(f.name, "te"):
			r.trailers = r.trailers || hasToken(f.value, "trailers")
		case equalFold(f.name, loopField):
			r.loop = f.value
		case equalFold(f.name, "upgrade"):
			websocket = websocket || equalFold(f.value, "websocket")
		}
	}
	if codings > 0 {
		if lengths > 0 {
			return bad("a message has either a length or a transfer encoding")
		}
		r.length = lengthChunked
	}
	r.close = r.close || !r.http11 && !keep
	// A switch to anything else (h2c above all) would carry requests past us.
	r.upgrade = upgrade && websocket && r.http11 && !r.close && r.method == "GET" && r.length <= 0 && r.length != lengthChunked
	r.preflight = r.method == "OPTIONS" && r.isPreflight()
	return refusal{}
}

// isPreflight reports whether a request that is OPTIONS is what browsers send before one of a
// page of another site (Fetch, "CORS-preflight fetch"). Anybody may send OPTIONS, and many
// sites answer it as GET.
func (r *request) isPreflight() bool {
	return r.target[0] == '/' && !r.hasBody() &&
		r.saysOnce("origin") && r.saysOnce("access-control-request-method") && r.count("upgrade") == 0
}

// saysOnce reports whether there is one field of that lower-case name, which says something and
// goes on to the origin.
func (r *request) saysOnce(name string) bool {
	return r.count(name) == 1 && len(r.first(name)) > 0 && !r.isConnectionOption([]byte(name))
}

// count returns how many fields have the given lower-case name.
func (r *request) count(name string) (n int) {
	for range r.all(name) {
		n++
	}
	return n
}

// parseLength takes digits only; strconv would take a sign.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// splitHost splits a Host field into its host and its port, which is 0 if none is named: the
// colon may stand there even so (RFC 3986, 3.2.3).
func splitHost(b []byte) (host []byte, port int64, ok bool) {
	host, rest := b, []byte(nil)
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 {
			return nil, 0, false
		}
		host, rest = b[:end+1], b[end+1:]
	} else if i := bytes.IndexByte(b, ':'); i >= 0 {
		host, rest = b[:i], b[i:]
	}
	if len(rest) <= 1 {
		return host, 0, len(rest) == 0 || rest[0] == ':'
	}
	port, ok = parseLength(rest[1:])
	return host, port, ok && rest[0] == ':' && 0 < port && port <= 65535
}

// normalHost checks a Host field and returns its host as room.NormalHost does, without
// port.
func normalHost(b []byte) (string, bool) {
	host, _, ok := splitHost(b)
	if !ok {
		return "", false
	}
	return room.NormalHost(string(host))
}

// sameHost reports whether two Host fields are the same for a scheme, whose port is meant where
// none is named.
func sameHost(a, b []byte, scheme []byte) bool {
	hostA, portA, okA := splitHost(a)
	hostB, portB, okB := splitHost(b)
	usual := int64(80)
	if equalFold(scheme, "https") {
		usual = 443
	}
	return okA && okB && len(hostA) > 0 && bytes.EqualFold(hostA, hostB) && cmp.Or(portA, usual) == cmp.Or(portB, usual)
}
