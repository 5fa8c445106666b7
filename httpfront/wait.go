package httpfront

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/httpfront/page"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// stateField is the header field that tells programs, and the script of the built-in
// page, that an answer is ours and not the origin's, whatever its status code is. Its
// values are documented in docs/pages.md.
const stateField = "Ropeline-State"

const (
	stateAdmitted = "admitted" // a built-in page asked, and it is the visitor's turn
	stateWaiting  = "waiting"  // a queue answer
	stateCrowded  = "crowded"  // too many new visitors come, and this one has no place in the line
	stateFailed   = "failed"   // an origin or a node is not to be had
	stateRefused  = "refused"  // the request is not in order, or there is no place for it
)

// waiting is one answer to a visitor who has to wait, or who comes too often.
type waiting struct {
	req      *request
	settings *room.Settings // nil: the request is of no room, and a rate limit says no
	made     *roomFront
	verdict  node.Verdict
	cookie   []byte // value of a Set-Cookie field; nil for none
	now      time.Time
	crowded  bool // may not even wait: too many new visitors come
	down     bool // no origin of the site is healthy

	limited *askedLimit // the rate limit by which the visitor is not let in; nil: none is
}

// queueAnswer is what making a queue answer takes.
type queueAnswer struct {
	waiting // whom it is for
	state   page.State
	refresh []byte // in decimal
}

// wait answers with the waiting page, or with JSON to programs.
func (f *Front) wait(w *answer, of *waiting) {
	a := &w.state
	a.waiting = *of
	switch {
	case of.crowded:
		answerCrowded(w, a)
	case of.blocked():
		refuseLimited(w, of.req, of.limited)
		if of.cookie != nil {
			w.head.SetBytes("Set-Cookie", of.cookie)
		}
	default:
		answerQueued(w, a)
	}
}

// answerQueued answers with the waiting page, or with JSON to programs.
func answerQueued(w *answer, a *queueAnswer) {
	h := w.begin(a.status())
	p, json := a.fill(w)
	a.describe(h, p, json)
	if a.limited != nil {
		a.req.tellLimits(h)
	}
}

// fill makes the body of w, and returns the page that it is of and whether it is JSON.
func (a *queueAnswer) fill(w *answer) (p *page.Page, json bool) {
	event := ""
	if a.verdict.View != nil {
		event = a.verdict.View.Event.Name
	}
	r := a.req
	p = a.made.pageOf(event)
	p.Fill(&a.state, page.Input{
		Settings: a.settings, Verdict: &a.verdict, Now: a.now,
		AcceptLanguage: r.AcceptLanguage, Unsafe: !r.IsSafe(), Down: a.down,
	})
	json = p.JSON() && page.PrefersJSON(r.Accept)
	if json {
		w.buf = p.AppendJSON(w.buf, &a.state)
	} else {
		w.buf = p.AppendHTML(w.buf, &a.state)
	}
	return p, json
}

// describe writes the fields of a queue answer that p has made.
func (a *queueAnswer) describe(h *head, p *page.Page, json bool) {
	a.describeAll(h)
	h.Set(stateField, stateWaiting)
	if a.cookie != nil {
		h.SetBytes("Set-Cookie", a.cookie)
	}
	if json {
		h.Set("Content-Type", "application/json")
	} else {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", p.ContentSecurityPolicy())
	}
	if json || !p.HasTemplate() { // the author of a template alone knows the language
		h.Set("Content-Language", a.state.Language())
	}
}

// describeAll writes the fields that all answers to those who have to wait have.
func (a *queueAnswer) describeAll(h *head) {
	h.forOneOnly()
	if seconds := a.state.Refresh(); seconds > 0 {
		a.refresh = strconv.AppendInt(a.refresh[:0], int64(seconds), 10)
		h.SetBytes("Refresh", a.refresh)
		h.SetBytes("Retry-After", a.refresh)
	}
	h.Set("Referrer-Policy", "same-origin")
}

// YourTurn is the JSON for a visitor who is let in; sites may say it, too.
const YourTurn = `{"cfWaitingRoom":{"inWaitingRoom":false}}` + "\n"

// isQuestion reports whether the built-in page asks by its script.
func (r *request) isQuestion() bool { return page.IsQuestion(r.Accept) && r.Method == http.MethodGet }

// answerTurn answers the question of a page whose visitor is let in: the browser is to ask the site for the page itself.
func answerTurn(w *answer, cookie []byte) {
	h := w.begin(http.StatusOK)
	h.forOneOnly()
	h.Set(stateField, stateAdmitted)
	h.Set("Content-Type", "application/json")
	if cookie != nil {
		h.SetBytes("Set-Cookie", cookie)
	}
	w.write(YourTurn)
}

// isSpeculative reports whether a browser asks for a page that its user may never look at.
func (r *request) isSpeculative() bool {
	for _, name := range [...]string{"sec-purpose", "purpose", "x-moz"} {
		if bytes.HasPrefix(r.First(name), []byte("prefetch")) {
			return true
		}
	}
	return false
}

// blocked reports whether a rate limit answers: it blocks, or there is no room whose page it could show.
func (w *waiting) blocked() bool {
	return w.limited != nil && (w.settings == nil || w.limited.by.rule.Action == limit.Block)
}

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
	case !w.req.IsSafe(), w.crowded:
		return http.StatusTooManyRequests
	case w.settings.QueueingStatusCode == 0:
		return http.StatusOK
	}
	return w.settings.QueueingStatusCode
}
