package http1

import (
	"bytes"
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

// Lengths of bodies that are no number of bytes.
const (
	lengthNone    = -1 // there is no body
	LengthChunked = -2
	LengthOpen    = -3 // it goes on until its connection ends
)

// loopField is the field in which nodes tell origins that a request has passed
// them. An origin's address that leads back to the nodes, by a name that was
// changed or a balancer in between, would send each request round and round
// until no connection is left.
//
// It is not Via, which was made for this, because common origins change what
// they answer where there is one: nginx does not compress then (gzip_proxied).
// Via fields of others are passed on as they are.
const loopField = "ropeline-via"

// Request is the head of a request as it was read. It owns all its bytes. The zero value is ready
// to be parsed into.
type Request struct {
	Target []byte // origin form or "*", as sent
	Host   string // that the visitor asked for: lower case, without port and trailing dot; "" if not known
	Path   room.Path
	Fields []Field // in order, as sent

	HostField []byte // as sent, port included
	head      []byte // backing bytes of target and fields

	Accept         []byte // all Accept fields, joined by commas
	AcceptLanguage []byte // all Accept-Language fields, joined by commas
	Loop           []byte // the nodes that it has passed, as they wrote it (loopField)

	Memory *Memory // of the connection; nil: it has none

	Method string
	HTTP11 bool

	// What it says of its message, and what the client wants of the connection.
	Upgrade     bool  // asks for WebSocket
	Close       bool  // the connection shall be closed afterwards
	Expectation bool  // the client waits to be told before it sends a body
	Trailers    bool  // whether the client wants trailers
	Preflight   bool  // asks for a browser whether a page of another site may ask
	LogsIn      bool  // by a scheme that is about the connection
	Cookies     bool  // whether there is a Cookie field
	Length      int64 // of the body; LengthChunked, or negative without one
}

// Reset makes r one that nothing was read into. It keeps its memory for bytes.
func (r *Request) Reset() {
	clear(r.Fields)
	*r = Request{Fields: r.Fields[:0], head: r.head[:0], Accept: r.Accept[:0], AcceptLanguage: r.AcceptLanguage[:0]}
}

// Parse fills r from h, or says why h is refused. r owns everything it keeps.
func (r *Request) Parse(h RawHead) Refusal {
	switch {
	case string(h.Protocol) == "HTTP/1.1":
		r.HTTP11 = true
	case string(h.Protocol) != "HTTP/1.0":
		return Refusal{Code: http.StatusHTTPVersionNotSupported, Reason: "only HTTP/1.0 and HTTP/1.1 are spoken here"}
	}
	if r.Method = methodOf(h.Method); r.Method == "" {
		return UnknownMethod
	}
	if len(h.Target) > targetMax {
		return Refusal{Code: http.StatusRequestURITooLong, Reason: "the address is too long"}
	}
	r.head = append(append(r.head[:0], h.Target...), h.Fields...)
	r.Target = r.head[:len(h.Target):len(h.Target)]
	if no := r.parseFields(r.head[len(h.Target):]); no.Code != 0 {
		return no
	}
	if no := r.parseTarget(); no.Code != 0 {
		return no
	}
	return r.parseMeaning()
}

// parseFields splits the lines of b, which ends in an empty line or is empty
// itself.
func (r *Request) parseFields(b []byte) Refusal {
	if len(b) == 0 {
		return Refusal{}
	}
	for {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return Bad("the head does not end in an empty line")
		}
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return Bad("a line of the head does not end in CR LF")
		}
		if line = line[:len(line)-1]; len(line) == 0 {
			if len(rest) != 0 {
				return Bad("the head goes on after an empty line")
			}
			return Refusal{}
		}
		if len(r.Fields) == fieldsMax {
			return Refusal{Code: http.StatusRequestHeaderFieldsTooLarge, Reason: "too many header fields"}
		}
		f, no := parseField(line)
		if no.Code != 0 {
			return no
		}
		r.Fields = append(r.Fields, f)
		b = rest
	}
}

func parseField(line []byte) (Field, Refusal) {
	if line[0] == ' ' || line[0] == '\t' {
		return Field{}, Bad("a header field is folded over several lines")
	}
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 {
		return Field{}, Bad("a header field has no name")
	}
	if !IsName(name) {
		return Field{}, Bad("a header field's name has a forbidden character")
	}
	if !isValue(value) {
		return Field{}, Bad("a header field has a control character")
	}
	return Field{name, trimSpace(value)}, Refusal{}
}

// parseTarget brings the target into origin form and takes the host.
func (r *Request) parseTarget() Refusal {
	for _, c := range r.Target {
		if c <= ' ' || c == 0x7f || c == '#' {
			return Bad("the address has a forbidden character")
		}
	}
	hosts := 0
	for v := range r.All("host") {
		r.HostField = v
		hosts++
	}
	if hosts > 1 || hosts == 0 && r.HTTP11 {
		return Bad("want exactly one Host field")
	}
	if hosts > 0 {
		if no := r.takeHost(); no.Code != 0 {
			return no
		}
	}
	switch {
	case len(r.Target) > 0 && r.Target[0] == '/':
	case string(r.Target) == "*" && r.Method == "OPTIONS":
	default:
		if no := r.stripAuthority(); no.Code != 0 {
			return no
		}
	}
	return r.readPath()
}

// takeHost takes the host out of r.hostField, whose port may be empty.
func (r *Request) takeHost() Refusal {
	var ok bool
	if r.Host, ok = r.Memory.readHost(r.HostField); !ok {
		return Bad("the Host field is not a host name")
	}
	r.HostField = bytes.TrimSuffix(r.HostField, []byte(":"))
	return Refusal{}
}

// readPath reads the path. What servers may take for another one is refused: the
// visitor would be in the queue of one path and be served the other.
func (r *Request) readPath() Refusal {
	slashes := len(r.Target) - len(bytes.TrimLeft(r.Target, "/"))
	raw, _, _ := bytes.Cut(r.Target[max(slashes-1, 0):], []byte("?"))
	var err error
	if r.Path, err = r.Memory.readPath(raw); err != nil {
		return Bad(err.Error())
	}
	if slashes > 1 {
		// Many sites resolve it as browsers resolve links, and serve what comes behind the host.
		return Refusal{
			Code: http.StatusPermanentRedirect, To: string(r.Target[slashes-1:]),
			Reason: `the address begins with "//", which is the name of a host to some sites; begin it with one "/"`,
		}
	}
	return Refusal{}
}

// stripAuthority turns http://host/path into /path if host is the Host field's, or if there is no
// such field, as HTTP/1.0 allows.
func (r *Request) stripAuthority() Refusal {
	scheme, rest, ok := bytes.Cut(r.Target, []byte("://"))
	if !ok || !EqualFold(scheme, "http") && !EqualFold(scheme, "https") {
		return Bad("the address is not a path")
	}
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	switch authority := rest[:end]; {
	case len(r.HostField) == 0 && !r.HTTP11 && r.count("host") == 0 && end > 0: // RFC 9112, 3.2.2
		r.HostField = authority
		if no := r.takeHost(); no.Code != 0 {
			return no
		}
	case !sameHost(authority, r.HostField, scheme):
		return Bad("the address and the Host field name different hosts")
	}
	switch rest = rest[end:]; {
	case len(rest) == 0 && r.Method == "OPTIONS":
		r.Target = []byte("*") // RFC 9112, 3.2.4
	case len(rest) == 0:
		r.Target = []byte("/")
	case rest[0] == '?':
		r.Target = append([]byte("/"), rest...)
	default:
		r.Target = rest
	}
	return Refusal{}
}

// parseMeaning reads the fields that say where the message ends and what the
// client wants of the connection.
func (r *Request) parseMeaning() Refusal {
	r.Length = lengthNone
	lengths, codings, options := 0, 0, 0
	var websocket, upgrade, keep bool
	for _, f := range r.Fields {
		switch {
		case EqualFold(f.Name, "content-length"):
			n, ok := parseLength(f.Value)
			if lengths++; lengths > 1 || !ok {
				return Bad("want at most one Content-Length field, and a number in it")
			}
			r.Length = n
		case EqualFold(f.Name, "transfer-encoding"):
			if codings++; codings > 1 || !r.HTTP11 || !EqualFold(f.Value, "chunked") {
				return Bad("the only transfer encoding understood is one chunked")
			}
		case EqualFold(f.Name, "expect"):
			if !EqualFold(f.Value, "100-continue") {
				return Refusal{Code: http.StatusExpectationFailed, Reason: "this expectation is not known"}
			}
			r.Expectation = r.HTTP11 // others do not know of it
		case EqualFold(f.Name, "accept"):
			r.Accept = appendElement(r.Accept, f.Value)
		case EqualFold(f.Name, "accept-language"):
			r.AcceptLanguage = appendElement(r.AcceptLanguage, f.Value)
		case EqualFold(f.Name, "cookie"):
			r.Cookies = true
		case EqualFold(f.Name, "authorization"):
			r.LogsIn = r.LogsIn || isOfConnection(f.Value)
		case EqualFold(f.Name, "connection"):
			if options += 1 + bytes.Count(f.Value, []byte(",")); options > optionsMax {
				return Refusal{Code: http.StatusRequestHeaderFieldsTooLarge, Reason: "too many options in the Connection field"}
			}
			upgrade = upgrade || HasToken(f.Value, "upgrade")
			keep = keep || HasToken(f.Value, "keep-alive")
			r.Close = r.Close || HasToken(f.Value, "close")
		case EqualFold(f.Name, "te"):
			r.Trailers = r.Trailers || HasToken(f.Value, "trailers")
		case EqualFold(f.Name, loopField):
			r.Loop = f.Value
		case EqualFold(f.Name, "upgrade"):
			websocket = websocket || EqualFold(f.Value, "websocket")
		}
	}
	if codings > 0 {
		if lengths > 0 {
			return Bad("a message has either a length or a transfer encoding")
		}
		r.Length = LengthChunked
	}
	r.Close = r.Close || !r.HTTP11 && !keep
	// A switch to anything else (h2c above all) would carry requests past us.
	r.Upgrade = upgrade && websocket && r.HTTP11 && !r.Close && r.Method == "GET" && r.Length <= 0 && r.Length != LengthChunked
	r.Preflight = r.Method == "OPTIONS" && r.isPreflight()
	return Refusal{}
}

// isPreflight reports whether a request that is OPTIONS is what browsers send before one of a
// page of another site (Fetch, "CORS-preflight fetch"). Anybody may send OPTIONS, and many
// sites answer it as GET.
func (r *Request) isPreflight() bool {
	return r.Target[0] == '/' && !r.HasBody() &&
		r.saysOnce("origin") && r.saysOnce("access-control-request-method") && r.count("upgrade") == 0
}

// saysOnce reports whether there is one field of that lower-case name, which says something and
// goes on to the origin.
func (r *Request) saysOnce(name string) bool {
	return r.count(name) == 1 && len(r.First(name)) > 0 && !r.IsConnectionOption([]byte(name))
}

// HasBody reports whether a body follows the head.
func (r *Request) HasBody() bool { return r.Length == LengthChunked || r.Length > 0 }

// IsSafe reports whether the request may be repeated by a browser that reloads.
func (r *Request) IsSafe() bool {
	return r.Method == "GET" || r.Method == "HEAD" || r.Method == "OPTIONS"
}

// All calls yield with the value of every field of the given lower-case name.
func (r *Request) All(name string) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range r.Fields {
			if EqualFold(r.Fields[i].Name, name) && !yield(r.Fields[i].Value) {
				return
			}
		}
	}
}

// First returns the value of the first field of that lower-case name.
func (r *Request) First(name string) []byte {
	for v := range r.All(name) {
		return v
	}
	return nil
}

// IsConnectionOption reports whether the client named the field in Connection,
// which makes it one that concerns one connection only.
func (r *Request) IsConnectionOption(name []byte) bool { return isConnectionOption(r.Fields, name) }

// isConnectionOption reports whether a Connection field names a field.
func isConnectionOption(fields []Field, name []byte) bool {
	for i := range fields {
		if f := &fields[i]; EqualFold(f.Name, "connection") {
			for e := range Elements(f.Value) {
				if bytes.EqualFold(e, name) {
					return true
				}
			}
		}
	}
	return false
}

// count returns how many fields have the given lower-case name.
func (r *Request) count(name string) (n int) {
	for range r.All(name) {
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
