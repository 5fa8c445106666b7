package httpfront

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// answer is what a client is told: a code, fields in the order in which they go out, and a
// body that is there as a whole or comes from an origin. Nothing in it is of one protocol: who
// has the connection adds what says where the body ends, and what becomes of the connection.
//
// An answer comes from newAnswer and is good until release.
type answer struct {
	code   int
	reason []byte // as the origin has it; empty: what is usual with the code
	dated  bool   // there is a Date field
	framed bool   // the fields say where the body ends, or nothing does
	head   head   // the fields

	// buf has headRoom free bytes, for the head to be put there, and then the body, or as
	// much of the origin's as is there.
	buf []byte

	last   bool // nothing else is to be said on the connection
	linger bool // its client may still be sending

	origin  exchange // that the body comes from, if streams or tunnels
	streams bool     // the rest of the body comes from the origin
	tunnels bool     // the connection becomes one to the origin
	trailer []byte   // names that the origin announces, as a Trailer field has them

	state queueAnswer
	out   []byte // the head as it is sent
}

const (
	headRoom  = 2 << 10 // bytes that are free before a body; nearly all heads are shorter
	shortBody = 2 << 10 // for which there is room from the start: as many uploads have an answer as are on their way
)

var answers = sync.Pool{New: func() any {
	return &answer{buf: make([]byte, headRoom, headRoom+shortBody), out: make([]byte, 0, headRoom)}
}}

func newAnswer() *answer { return answers.Get().(*answer) }

// release gives w back.
func (w *answer) release() {
	w.origin.close(false) // if the answer did not go out
	w.origin.head.Reset()
	w.origin.owner, w.origin.body = nil, originBody{}
	w.reset()
	w.state.waiting = waiting{}
	answers.Put(w)
}

// reset makes w an answer of which nothing is known. The origin, if there is one, has been closed.
func (w *answer) reset() {
	w.code, w.reason, w.dated, w.framed = 0, w.reason[:0], false, false
	w.head.b, w.buf, w.trailer = w.head.b[:0], w.buf[:headRoom], w.trailer[:0]
	w.last, w.linger, w.streams, w.tunnels = false, false, false, false
}

// begin makes w an answer of our own, without a body.
func (w *answer) begin(code int) *head {
	w.reset()
	w.code = code
	w.head.Set("X-Content-Type-Options", "nosniff")
	return &w.head
}

// forOneOnly says that an answer is for nobody else and no other time. A worker of the site that keeps what it gets would
// hand it out again: browsers refuse to keep what varies with everything, whatever the worker wants.
func (h *head) forOneOnly() {
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "*")
}

// write makes b the body.
func (w *answer) write(b string) { w.buf = append(w.buf[:headRoom], b...) }

// body returns what of the body is there.
func (w *answer) body() []byte { return w.buf[headRoom:] }

// hasNoBody reports whether an answer with that code has no body, whatever its fields say
// (RFC 9112, 6.3).
func hasNoBody(code int) bool {
	return code < 200 || code == http.StatusNoContent || code == http.StatusNotModified
}

// head is the fields of an answer as lines, each ending in CR LF. The zero value has none.
type head struct{ b []byte }

// Set adds a field.
func (h *head) Set(name, value string) { h.b = http1.AppendField(h.b, name, value) }

// SetBytes adds a field.
func (h *head) SetBytes(name string, value []byte) {
	h.b = append(h.b, name...)
	h.b = append(h.b, ": "...)
	h.b = append(h.b, value...)
	h.b = append(h.b, "\r\n"...)
}

// date is what the Date field says for a second.
type date struct {
	second int64 // since 1970
	text   []byte
}

// lastDate is the date that was written last: a node answers many requests in a second.
var lastDate atomic.Pointer[date]

// appendDate appends now as the Date field has it.
func appendDate(dst []byte, now time.Time) []byte {
	d := lastDate.Load()
	if second := now.Unix(); d == nil || d.second != second {
		d = &date{second, now.UTC().AppendFormat(nil, http.TimeFormat)}
		lastDate.Store(d)
	}
	return append(dst, d.text...)
}

// appendStatus appends the first line of an answer.
func appendStatus(dst []byte, code int, reason []byte) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, ' ')
	if len(reason) > 0 {
		dst = append(dst, reason...)
	} else {
		dst = append(dst, http.StatusText(code)...)
	}
	return append(dst, "\r\n"...)
}
