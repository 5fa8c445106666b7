package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// passesAll reports whether a room keeps nobody out. A pass with which somebody would wait
// there must not be a way round rate limits.
func passesAll(s *room.Settings) bool {
	return s.DryRun || s.QueueingMethod == room.Passthrough || s.Policy == room.Open
}

// admitsRoomless reports whether a request that is of no room may go on; whose may not gets the answer w.
func (f *Front) admitsRoomless(r *request, w *waiting) bool {
	now := f.cfg.Clock()
	over := f.limitedBy(r, node.VisitorID{}, false, now)
	if over == nil {
		r.record.becomes(Bypassed)
		return true
	}
	*w = waiting{req: r, now: now, limited: over}
	r.record.becomes(w.outcome())
	return false
}

// limitSubject is what rate limits know of who asks in a room. The zero value is somebody on the site whom a pass
// does not tell apart from others.
type limitSubject struct {
	visitor node.VisitorID // zero: nobody who is known
	waits   bool           // in line, as whom no rate limit concerns
	isNew   bool
}

// subjectOf says who asks with a pass; or would, if asks is false. One of a line that its visitor has
// left is no better than none: with it as many could come as there are places, one after the other.
func subjectOf(room Room, p *carried, s *room.Settings, asks bool, now time.Time) limitSubject {
	switch {
	case !p.known:
		return limitSubject{isNew: true}
	case p.Accepted(), passesAll(s):
		return limitSubject{visitor: p.Visitor}
	}
	switch room.Standing(p.Pass, asks, now) {
	case node.Waits:
		return limitSubject{visitor: p.Visitor, waits: true}
	case node.Inside:
		return limitSubject{visitor: p.Visitor}
	}
	return limitSubject{isNew: true}
}

// turnWithin is how long before a request, by its own time, its visitor may have been let in by it: the loop of a
// node lets in with the time at which it began to.
const turnWithin = time.Second

// limitsLate reports whether a rate limit keeps out somebody who came with the pass of a visitor of the line, and so
// was not held against any before the room decided; w is the answer then. Whose turn it is with this request is not
// held against one, either.
func (f *Front) limitsLate(a *admitted, w *waiting, room Room, visitor node.VisitorID) bool {
	p := &w.verdict.Pass
	earlier := w.now.Sub(p.AcceptedAt) > turnWithin // an earlier request has exchanged the pass: it is as good as a session
	if !w.verdict.Admit || !earlier && p.Visitor == visitor {
		return false
	}
	as := p.Visitor
	if !earlier { // what the pass was for is over, as another node says: this is somebody new
		as = node.VisitorID{}
	}
	over := f.limitedBy(w.req, as, w.settings.DryRun, w.now)
	if over == nil {
		return false
	}
	if !earlier {
		room.End(*p, w.now)
		a.cookie, w.cookie, w.verdict = nil, nil, node.Verdict{View: w.verdict.View}
	}
	over.answer(w, room)
	w.req.record.judged(w.outcome(), w.settings, &w.verdict.Pass, w.now)
	return true
}

// lines reports whether who is limited is to get into the line of the room: somebody
// new, for a rule that says so.
func (a *askedLimit) lines(who *limitSubject) bool {
	return a.by.rule.Action == limit.Queue && who.isNew
}

// answer makes w the answer to who is limited and not to get into the line. A rule that
// queues shows the page of the room, and who is on the site stays so: it is let through
// again when there are few enough.
func (a *askedLimit) answer(w *waiting, room Room) {
	w.limited = a
	if a.by.rule.Action == limit.Queue {
		v := room.Hold(node.Pass{}, true, w.now)
		w.verdict = node.Verdict{View: v.View, Refresh: max(v.Refresh, a.verdict.Reset.Round(time.Second))}
	}
}
