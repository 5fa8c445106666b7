package httpfront

import (
	"bytes"
	"slices"

	"github.com/ropeline/ropeline/httpfront/upstream"
)

// Most answers are short, have nothing in them that concerns us, and are there as a whole when
// their beginning is. Such an answer is relayed: its head is looked through once, and what is
// to be passed on of it is copied, with the body behind it, into what the client is sent in one
// write. All other answers are taken apart and put together again by the server's library; see
// respond. What that makes of an answer, relaying does too, but for the order and the spelling
// of field names, which stay as the origin has them.

// asks reports whether the request goes to the origin all at once, since it has no body.
func (r *request) asks() bool {
	return !r.hasBody() && !r.upgrade && (r.record == nil || r.record.trace == nil)
}

// relay passes on to edge the answer that has begun on conn, if that can be done, and gives conn back.
// If it reports false, nothing was done.
func (f *Front) relay(edge *edgeConn, conn *upstream.Conn, a *admitted) bool {
	r := a.req
	if r.logsIn || conn.Kept() {
		return false
	}
	if slices.ContainsFunc(r.limits, func(l askedLimit) bool { return l.later }) {
		return false
	}
	owned := true
	defer func() {
		if owned { // a panic
			conn.Discard()
		}
	}()
	r.added.b = r.added.b[:0]
	r.tellLimits(&r.added)
	br := conn.Reader()
	all, _ := br.Peek(br.Buffered())
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	out, got := appendRelayed(buf[:0], all, a.cookie, r.added.b, f.isLast(edge, r))
	if !got.whole {
		owned = false
		return false
	}
	br.Discard(len(all))
	conn.Answered()
	owned = false
	if got.close {
		conn.Discard()
	} else {
		conn.Release()
	}
	f.answerDirect(edge, r, out, got.code, got.body)
	return true
}

// relayed is what there is to know of an answer that was relayed.
type relayed struct {
	whole bool // it can be, and was appended
	close bool // the origin takes no other request on the connection
	code  int
	body  int // bytes of it

	personal bool // it is for one visitor, so that no cache may keep it
	noStore  bool // the origin says so, too
}

// ownFields is as many bytes as those that we add may have, but for the cookie itself.
const ownFields = 128

// appendRelayed appends what a client is to be sent of an answer, if all is the whole of it
// and it can be relayed. cookie is the value of a Set-Cookie field that is added; nil for none.
// added are other fields that are, as lines.
// last says that the connection of the client is closed afterwards. What is appended is not
// longer than what dst has room for.
func appendRelayed(dst, all, cookie, added []byte, last bool) (out []byte, got relayed) {
	got.personal = cookie != nil
	var line []byte
	rest := all
	if line, rest = nextLine(rest); !got.status(line) {
		return dst, relayed{}
	}
	if cap(dst)-len(dst) < len(all)+len(cookie)+len(added)+ownFields {
		return dst, relayed{}
	}
	out = append(append(dst, line...), "\r\n"...)
	length, begin := -1, rest // of fields that are passed on
	for {
		at := rest
		if line, rest = nextLine(rest); line == nil {
			return dst, relayed{}
		}
		if len(line) == 0 {
			out = append(out, begin[:len(begin)-len(at)]...)
			break
		}
		switch got.field(line, &length) {
		case keepField:
		case dropField:
			out = append(out, begin[:len(begin)-len(at)]...)
			begin = rest
		case cannotRelay:
			return dst, relayed{}
		}
	}
	if length != len(rest) {
		return dst, relayed{}
	}
	if cookie != nil {
		cc := cachePrivate
		if got.noStore {
			cc = cacheNowhere
		}
		out = appendField(out, "Cache-Control", cc)
		out = appendBytesField(out, "Set-Cookie", cookie)
	}
	out = append(out, added...)
	if last {
		out = append(out, closeField...)
	}
	out = append(append(out, "\r\n"...), rest...)
	got.whole, got.body = true, length
	return out, got
}

// nextLine returns the first line of b without its CR LF, and what is behind it; nil if there
// is no line, or if it is one that has several readings.
func nextLine(b []byte) (line, rest []byte) {
	n := bytes.IndexByte(b, '\n')
	if n < 1 || b[n-1] != '\r' || bytes.IndexByte(b[:n-1], '\r') >= 0 {
		return nil, nil
	}
	return b[: n-1 : n-1], b[n+1:]
}

// status takes the first line of an answer, and reports whether it may be relayed: it has a
// body, by its code.
func (got *relayed) status(line []byte) bool {
	const version = "HTTP/1.1 "
	if len(line) < len(version)+4 || string(line[:len(version)]) != version || line[len(version)+3] != ' ' || !isValue(line) {
		return false
	}
	for _, c := range line[len(version):][:3] {
		if c < '0' || c > '9' {
			return false
		}
		got.code = got.code*10 + int(c-'0')
	}
	return got.code >= 200 && got.code <= 599 && got.code != 204 && got.code != 205 && got.code != 304
}

// fate is what becomes of a field of an answer, or of the answer for its sake.
type fate uint8

const (
	keepField fate = iota
	dropField
	cannotRelay
)

// field takes a field of an answer, and the length that it may tell.
func (got *relayed) field(line []byte, length *int) fate {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 {
		return cannotRelay
	}
	name := line[:colon]
	for _, c := range name {
		if !isToken(c) {
			return cannotRelay
		}
	}
	if !isValue(line[colon+1:]) {
		return cannotRelay
	}
	if got.personal && isCaching(name) {
		got.noStore = got.noStore || equalFold(name, "cache-control") && hasToken(line[colon+1:], "no-store")
		return dropField
	}
	switch name[0] | 0x20 {
	case 'c':
		return got.fieldC(name, line[colon+1:], length)
	case 't':
		if equalFold(name, "te") {
			return dropField
		}
		if equalFold(name, "transfer-encoding") || equalFold(name, "trailer") {
			return cannotRelay
		}
	case 'k', 'p', 'u':
		if equalFold(name, "keep-alive") || equalFold(name, "proxy-connection") || equalFold(name, "proxy-authenticate") ||
			equalFold(name, "proxy-authentication-info") || equalFold(name, "upgrade") {
			return dropField
		}
	case 'w':
		if equalFold(name, "www-authenticate") && ofConnection(line[colon+1:]) {
			return cannotRelay
		}
	case 'r':
		if isNamed(name, stateField) {
			return dropField
		}
		if isCommand(name) {
			return cannotRelay
		}
	}
	return keepField
}

// fieldC is field for names that begin with c.
func (got *relayed) fieldC(name, value []byte, length *int) fate {
	switch {
	case equalFold(name, "content-length"):
		n, ok := parseLength(bytes.Trim(value, " \t"))
		if !ok || *length >= 0 || n > bufferSize {
			return cannotRelay
		}
		*length = int(n)
	case equalFold(name, "connection"):
		switch value = bytes.Trim(value, " \t"); {
		case equalFold(value, "close"):
			got.close = true
		case !equalFold(value, "keep-alive"):
			return cannotRelay
		}
		return dropField
	case isCommand(name):
		return cannotRelay
	}
	return keepField
}
