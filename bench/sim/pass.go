package sim

import (
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// pass is what a visitor carries, as a cookie has it: times in whole
// milliseconds. It is small and has no pointer, for there are millions. The zero
// value is none.
type pass struct {
	visitor  node.VisitorID
	arrival  int64 // ms; 0: zero, as the others
	lastPoll int64
	accepted int64
	leaseEnd int64
	seq      uint64
	boot     uint32
	block    uint32
	refresh  uint32 // ms
	shown    room.Shown
	anchor   int32 // index of the identity, plus one; 0: no ticket
	borrowed bool
	foreign  bool  // of another mesh: none here
	room     uint8 // number; see registry.room
}

// ends returns when a session that the pass tells of ends, by the time of the run.
func (p *pass) ends() int64 { return p.leaseEnd*int64(time.Millisecond) - Epoch().UnixNano() }

func (p *pass) known() bool { return p.visitor != node.VisitorID{} }

// pack takes over what a verdict says that the visitor shall carry.
func (r *registry) pack(p node.Pass) pass {
	q := pass{
		visitor: p.Visitor, arrival: millis(p.Arrival), lastPoll: millis(p.LastPoll),
		accepted: millis(p.AcceptedAt), leaseEnd: millis(p.LeaseEnd),
		refresh: uint32(p.Refresh / time.Millisecond), shown: p.Shown, borrowed: p.Borrowed,
		foreign: p.Foreign, room: r.room(p.Room),
	}
	if !p.Ticket.IsZero() {
		q.anchor = r.of(p.Ticket.Anchor) + 1
		q.boot, q.block, q.seq = uint32(p.Ticket.Boot), p.Ticket.Block, p.Ticket.Seq
	}
	return q
}

// open is what a node gets to see of a pass.
func (r *registry) open(p *pass) node.Pass {
	q := node.Pass{
		Visitor: p.visitor, Room: r.roomID(p.room), Arrival: moment(p.arrival), LastPoll: moment(p.lastPoll),
		AcceptedAt: moment(p.accepted), LeaseEnd: moment(p.leaseEnd),
		Refresh: time.Duration(p.refresh) * time.Millisecond, Shown: p.shown, Borrowed: p.borrowed,
		Foreign: p.foreign,
	}
	if p.anchor != 0 {
		q.Ticket = ticket.Ticket{Anchor: r.ids[p.anchor-1].id, Boot: uint64(p.boot), Block: p.block, Seq: p.seq}
	}
	return q
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
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
