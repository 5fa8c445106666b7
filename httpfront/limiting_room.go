package httpfront

import (
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// passesAll reports whether a room keeps nobody out. A pass with which somebody would wait
// there must not be a way round rate limits.
func passesAll(s *room.Settings) bool {
	return s.DryRun || s.QueueingMethod == room.Passthrough || s.Policy == room.Open
}

// passesRoomless reports whether a request that is of no room may go on; if not, it has been
// answered.
func (f *Front) passesRoomless(ctx *fasthttp.RequestCtx, r *request) bool {
	now := f.cfg.Clock()
	over := f.limitedBy(r, node.VisitorID{}, false, now)
	if over == nil {
		r.record.becomes(Bypassed)
		return true
	}
	r.record.becomes(Limited)
	f.refuseLimited(ctx, r, over, now)
	f.discardBody(ctx, r)
	return false
}

// isLine reports whether a request is the poll of somebody in the line of a room, whom no rate limit
// concerns. A pass whose place is kept no longer is no better than none: with it as many could
// come as there are places, one after the other.
func isLine(p *carried, s *room.Settings, now time.Time) bool {
	return p.known && !p.Accepted() && !passesAll(s) &&
		s.IsKept(room.Visitor{Arrival: p.Arrival, LastPoll: p.LastPoll, Refresh: p.Refresh}, now)
}

// overLate returns the rate limit by which somebody is not let in who came as a visitor of the line, and so
// was not held against any; nil if there is none. Whose turn it is with this request is not held against
// one, either.
func (f *Front) overLate(w *waiting, visitor node.VisitorID) *askedLimit {
	v := &w.verdict
	switch {
	case !v.Admit:
		return nil
	case v.Pass.Visitor != visitor: // what the place was for is over; this is somebody new
		return f.limitedBy(w.req, node.VisitorID{}, w.settings.DryRun, w.now)
	case v.Pass.AcceptedAt.Before(w.now): // an earlier request has exchanged the pass: it is as good as a session
		return f.limitedBy(w.req, v.Pass.Visitor, w.settings.DryRun, w.now)
	}
	return nil
}

// countsAs is who is counted for who comes with a pass: nobody who is known, if that is of a line
// that its visitor has left.
func countsAs(p *carried, s *room.Settings) node.VisitorID {
	if p.Accepted() || passesAll(s) {
		return p.Visitor
	}
	return node.VisitorID{}
}

// lines reports whether who is limited is to get into the line of the room: somebody
// without a pass, or with one that says nothing any more, for a rule that says so.
func (a *askedLimit) lines(p *carried, s *room.Settings) bool {
	return a.by.rule.Action == limit.Queue && (!p.known || !p.Accepted() && !passesAll(s))
}

// answer returns the answer to who is limited and not to get into the line. A rule that
// queues shows the page of the room, and who is on the site stays so: it is let through
// again when there are few enough.
func (a *askedLimit) answer(w waiting, room Room) waiting {
	w.limited = a
	if a.by.rule.Action == limit.Queue {
		v := room.Hold(w.now)
		w.verdict = node.Verdict{View: v.View, Refresh: max(v.Refresh, a.verdict.Reset.Round(time.Second))}
	}
	return w
}

// decideOn has a room decide about somebody, whom it is to hold if over says so.
func decideOn(room Room, p *carried, over *askedLimit, now time.Time) node.Verdict {
	if over != nil {
		return room.Hold(now)
	}
	return room.Decide(p.Pass, p.known, now)
}
