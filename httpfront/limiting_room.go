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

// lines reports whether who is limited is to get into the line of the room: somebody
// without a pass, for a rule that says so.
func (a *askedLimit) lines(p *carried) bool { return a.by.rule.Action == limit.Queue && !p.known }

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
