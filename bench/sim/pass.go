package sim

import (
	"time"

	"github.com/ropeline/ropeline/node"
)

// pass is what a visitor carries, as a cookie has it: times in whole milliseconds.
// The zero value is none.
type pass struct {
	node.Pass
	accepted int64 // ms; 0: never
	anchor   int32 // index of the identity, plus one; 0: no ticket
	room     uint8 // number; see registry.room
}

// ends returns when a session that the pass tells of ends, by the time of the run.
func (p *pass) ends() int64 { return millis(p.LeaseEnd)*int64(time.Millisecond) - Epoch().UnixNano() }

func (p *pass) known() bool { return p.Visitor != node.VisitorID{} }

// pack takes over what a verdict says that the visitor shall carry.
func (r *registry) pack(p node.Pass) pass {
	for _, t := range []*time.Time{&p.Arrival, &p.LastPoll, &p.AcceptedAt, &p.LeaseEnd} {
		if !t.IsZero() {
			*t = time.UnixMilli(t.UnixMilli())
		}
	}
	p.Refresh = p.Refresh.Truncate(time.Millisecond)
	q := pass{Pass: p, accepted: millis(p.AcceptedAt), room: r.room(p.Room)}
	if !p.Ticket.IsZero() {
		q.anchor = r.of(p.Ticket.Anchor) + 1
	}
	return q
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// oldPasses is how many passes before the newest a browser may still have.
const oldPasses = 3

// show returns the pass that a visitor sends: the newest, or at times one before.
func (s *sim) show(i int32) *pass {
	v, old := &s.people.all[i], s.people.old[i]
	v.stale = len(old) > 0 && v.dice.unit() < s.cfg.Old
	if !v.stale {
		return &v.pass
	}
	v.behind = true
	return &old[v.dice.below(len(old))]
}

// outdate keeps the pass that a visitor is about to get a newer one for.
func (s *sim) outdate(i int32) {
	p := &s.people
	if s.cfg.Old == 0 || !p.all[i].pass.known() {
		return
	}
	if p.old == nil {
		p.old = map[int32][]pass{}
	}
	p.old[i] = append(p.old[i], p.all[i].pass)
	if len(p.old[i]) > oldPasses {
		p.old[i] = p.old[i][1:]
	}
}
