package httpfront

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// stateField is the header field that tells programs that an answer is a queue
// answer and not the origin's, whatever its status code is.
const stateField = "Ropeline-State"

// waiting is one answer to a visitor who has to wait.
type waiting struct {
	req      *request
	settings *room.Settings
	verdict  node.Verdict
	cookie   []byte // value of a Set-Cookie field; nil for none
	now      time.Time
}

// bodies keeps buffers for the bodies of queue answers.
var bodies = sync.Pool{New: func() any {
	b := make([]byte, 0, 8<<10)
	return &b
}}

// wait answers with the waiting page, or with JSON to programs.
func (f *Front) wait(ctx *fasthttp.RequestCtx, w waiting) {
	h := begin(ctx, w.status(), w.now)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Cookie, Accept")
	h.Set(stateField, "waiting")
	if seconds := w.refresh(); seconds > 0 {
		var buf [20]byte
		refresh := strconv.AppendInt(buf[:0], seconds, 10)
		h.SetBytesV("Refresh", refresh)
		h.SetBytesV("Retry-After", refresh)
	}
	h.Set("Referrer-Policy", "same-origin")
	if w.cookie != nil {
		h.AddBytesV("Set-Cookie", w.cookie)
	}

	body := bodies.Get().(*[]byte)
	defer bodies.Put(body)
	if prefersJSON(w.req.accept) {
		h.SetContentType("application/json")
		*body = w.appendJSON((*body)[:0])
	} else {
		h.SetContentType("text/html; charset=utf-8")
		h.Set("Content-Security-Policy", f.page.csp)
		*body = f.page.append((*body)[:0], &w)
	}
	ctx.Response.SetBody(*body) // copies
}

// status is the room's code for queue answers. A request that was to change
// something is refused instead, so that no program takes it for done.
func (w *waiting) status() int {
	switch {
	case !w.req.isSafe():
		return http.StatusTooManyRequests
	case w.settings.QueueingStatusCode == 0:
		return http.StatusOK
	}
	return w.settings.QueueingStatusCode
}

// refreshDefault is for rooms that say nothing.
const refreshDefault = 20 * time.Second

// refresh is in how many seconds the visitor shall ask again; 0 is never, because
// the room rejects. Rounding up keeps the next poll from being too early.
func (w *waiting) refresh() int64 {
	d := w.verdict.Refresh
	if d <= 0 {
		if w.settings.QueueingMethod == room.Reject {
			return 0
		}
		if d = w.settings.RefreshInterval; d <= 0 {
			d = refreshDefault
		}
	}
	return int64((d + time.Second - 1) / time.Second)
}
