package httpfront

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// stateField is the header field that tells programs, and the script of the built-in
// page, that an answer is ours and not the origin's, whatever its status code is. Its
// values are documented in docs/pages.md; package verdict has one more, "admitted".
const stateField = "Ropeline-State"

const (
	stateWaiting = "waiting" // a queue answer
	stateCrowded = "crowded" // too many new visitors come, and this one has no place in the line
	stateFailed  = "failed"  // an origin or a node is not to be had
	stateRefused = "refused" // the request is not in order, or there is no place for it
)

// waiting is one answer to a visitor who has to wait.
type waiting struct {
	req      *request
	settings *room.Settings
	made     *roomFront
	verdict  node.Verdict
	cookie   []byte // value of a Set-Cookie field; nil for none
	now      time.Time
	crowded  bool // may not even wait: too many new visitors come

	limited *askedLimit // the rate limit by which the visitor is not let in; nil: none is
}

// queueAnswer is what making a queue answer takes.
type queueAnswer struct {
	state page.State
	body  []byte
}

var queueAnswers = sync.Pool{New: func() any {
	return &queueAnswer{body: make([]byte, 0, 9<<10)}
}}

// wait answers with the waiting page, or with JSON to programs.
func (f *Front) wait(ctx *fasthttp.RequestCtx, w waiting) {
	switch {
	case w.crowded:
		f.answerCrowded(ctx, &w)
		return
	case w.blocked():
		f.refuseLimited(ctx, w.req, w.limited, w.now)
		if w.cookie != nil {
			ctx.Response.Header.AddBytesV("Set-Cookie", w.cookie)
		}
		return
	}
	a := queueAnswers.Get().(*queueAnswer)
	defer queueAnswers.Put(a)
	event := ""
	if w.verdict.View != nil {
		event = w.verdict.View.Event.Name
	}
	p := w.made.pageOf(event)
	p.Fill(&a.state, page.Input{
		Settings: w.settings, Verdict: &w.verdict, Now: w.now,
		AcceptLanguage: w.req.acceptLanguage, Unsafe: !w.req.isSafe(),
	})

	h := w.begin(ctx, &a.state)
	h.Set(stateField, stateWaiting)
	if w.limited != nil {
		w.req.tellLimits(h)
	}
	if w.cookie != nil {
		h.AddBytesV("Set-Cookie", w.cookie)
	}
	if p.JSON() && prefersJSON(w.req.accept) {
		h.SetContentType("application/json")
		h.Set("Content-Language", a.state.Language())
		a.body = p.AppendJSON(a.body[:0], &a.state)
	} else {
		h.SetContentType("text/html; charset=utf-8")
		h.Set("Content-Security-Policy", p.ContentSecurityPolicy())
		if !p.HasTemplate() { // its author alone knows the language
			h.Set("Content-Language", a.state.Language())
		}
		a.body = p.AppendHTML(a.body[:0], &a.state)
	}
	ctx.Response.SetBody(a.body) // copies
}

// begin begins an answer about s, with the fields that all such answers have.
func (w *waiting) begin(ctx *fasthttp.RequestCtx, s *page.State) *fasthttp.ResponseHeader {
	h := begin(ctx, w.status(), w.now)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Cookie, Accept, Accept-Language")
	if seconds := s.Refresh(); seconds > 0 {
		var buf [20]byte
		refresh := strconv.AppendInt(buf[:0], int64(seconds), 10)
		h.SetBytesV("Refresh", refresh)
		h.SetBytesV("Retry-After", refresh)
	}
	h.Set("Referrer-Policy", "same-origin")
	return h
}

// blocked reports whether a rate limit answers instead of the room.
func (w *waiting) blocked() bool { return w.limited != nil && w.limited.by.rule.Action == limit.Block }

// outcome is what becomes of the request: a room that lets nobody in rejects it, unless an
// event will.
func (w *waiting) outcome() Outcome {
	if w.blocked() {
		return Limited
	}
	if v := w.verdict.View; w.settings.QueueingMethod == room.Reject && (v == nil || !v.Event.Prequeueing) {
		return Rejected
	}
	return Queued
}

// status is the room's code for queue answers. A request that was to change
// something is refused instead, so that no program takes it for done.
func (w *waiting) status() int {
	switch {
	case w.blocked():
		return w.limited.by.rule.Response.StatusCode
	case !w.req.isSafe(), w.crowded:
		return http.StatusTooManyRequests
	case w.settings.QueueingStatusCode == 0:
		return http.StatusOK
	}
	return w.settings.QueueingStatusCode
}
