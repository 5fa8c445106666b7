package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// passDry lets somebody pass who would have queued, in a room that only tries its limits.
// There is no session, so nothing hangs on how long the request goes on. It returns true.
func (f *Front) passDry(a *admitted, decider Room, s *room.Settings, p *node.Pass, now time.Time) bool {
	decider.CountDryRun()
	a.settings, a.pass = s, *p
	f.prove(a.req, s, &node.Pass{Visitor: p.Visitor, AcceptedAt: now}, now)
	a.req.record.judged(Admitted, s, &a.pass, now)
	return true
}
