package httpfront

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// The server's library builds an answer of fields that it parses, keeps and sorts, and copies
// it twice on its way out. The two answers that a node gives most of all, a short one of the
// site and that to somebody who waits, are written as bytes instead, in one piece, to the
// client's connection. The server goes on to answer, since it knows no other way to go on, and
// what it writes then is dropped by the connection.

// direct returns the connection on which the answer to r may be written past the server; nil
// if the server is to write it, because it may have to say more than we know of.
func (f *Front) direct(ctx *fasthttp.RequestCtx, r *request) *edgeConn {
	if !r.http11 || r.method == "HEAD" || r.hasBody() || r.expects || f.draining.Load() {
		return nil
	}
	return edgeOf(ctx.Conn())
}

// answerDirect sends an answer with so many bytes of body, and hands in what is noted of r.
func (f *Front) answerDirect(edge *edgeConn, r *request, answer []byte, code, body int) {
	edge.Answer(answer)
	c := r.record
	if c == nil {
		return
	}
	r.record = nil
	c.answered(code)
	c.from(r)
	c.end(int64(body))
}

// closeField is what a client is told after whose request the connection is closed.
const closeField = "Connection: close\r\n"

// fieldWriter takes the fields of an answer; it keeps none of what it is given.
type fieldWriter interface {
	Set(name, value string)
	SetBytesV(name string, value []byte)
	AddBytesV(name string, value []byte)
}

var (
	_ fieldWriter = (*fasthttp.ResponseHeader)(nil)
	_ fieldWriter = (*head)(nil)
)

// head is the head of an answer as it is written. It is a fieldWriter, to be given each field
// once.
type head struct{ b []byte }

// begin begins the head anew.
func (h *head) begin(code int, now time.Time) {
	h.b = append(h.b[:0], "HTTP/1.1 "...)
	h.b = strconv.AppendInt(h.b, int64(code), 10)
	h.b = append(h.b, ' ')
	h.b = append(h.b, fasthttp.StatusMessage(code)...)
	h.b = append(h.b, "\r\nDate: "...)
	h.b = appendDate(h.b, now)
	h.b = append(h.b, "\r\n"...)
}

// end ends the head of an answer with so many bytes of body. last says that the connection is
// closed afterwards.
func (h *head) end(body int, last bool) {
	if last {
		h.b = append(h.b, closeField...)
	}
	h.b = append(h.b, "Content-Length: "...)
	h.b = strconv.AppendInt(h.b, int64(body), 10)
	h.b = append(h.b, "\r\n\r\n"...)
}

// headRoom is how many bytes are free before a body for its head to be put there, which is
// shorter than most bodies.
const headRoom = 2 << 10

// before puts the head into the free bytes at the beginning of b, right before the body, and
// returns both.
func (h *head) before(b []byte) []byte {
	if len(h.b) > headRoom {
		return append(h.b, b[headRoom:]...)
	}
	answer := b[headRoom-len(h.b):]
	copy(answer, h.b)
	return answer
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
		d = &date{second, fasthttp.AppendHTTPDate(nil, now)}
		lastDate.Store(d)
	}
	return append(dst, d.text...)
}

func (h *head) Set(name, value string)              { h.b = appendField(h.b, name, value) }
func (h *head) SetBytesV(name string, value []byte) { h.b = appendBytesField(h.b, name, value) }
func (h *head) AddBytesV(name string, value []byte) { h.b = appendBytesField(h.b, name, value) }

func appendBytesField(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}
