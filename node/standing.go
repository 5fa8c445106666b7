package node

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// Standing is what a waiting pass is worth, as far as a node can say before a room decides. The
// zero value is Waits.
type Standing uint8

const (
	Waits  Standing = iota // its visitor stands in line, or has their turn
	Inside                 // it was exchanged for a session, which runs or has ended by itself
	Gone                   // the place in line was given up, or the session ended: its visitor is somebody new
)

// Standing says what p is worth, which is of this room and of a visitor who has waited. asks says that
// the visitor shows it now: then it is remembered for longer what it was exchanged for. Any
// goroutine may call it.
func (r *Room) Standing(p Pass, asks bool, now time.Time) Standing {
	known := (*stripe).redeemedFrom
	if asks {
		known = (*stripe).shown
	}
	switch q := known(r.core.stripes.ofVisitor(p.Visitor), visitKey{r.id, p.Visitor}, now); {
	case r.isOver(q):
		return Gone
	case q.isKnown():
		return Inside
	case r.Settings().IsKept(room.Visitor{Arrival: p.Arrival, LastPoll: p.LastPoll, Refresh: p.Refresh}, now):
		return Waits
	}
	return Gone
}

// isOver reports whether what a waiting pass was exchanged for is somebody else's, or was given up.
func (r *Room) isOver(q redeemed) bool {
	return q.is == late || q.is == confirmed && r.over(q.pass.Ticket)
}
