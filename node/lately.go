package node

import (
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// lately remembers who was let in here at once, for operators who ask about a visitor: nobody
// else has the ids of those who never waited. It is bounded, and goes back as far as there
// is room: the newest take the place of the oldest. The zero value knows nobody. It is not
// safe for concurrent use.
type lately struct {
	ring []letInAtOnce
	next int // where the next one goes once the ring is full
}

// letInAtOnce is what is left of a pass.
type letInAtOnce struct {
	key            visitKey
	accepted, ends int64 // Unix ms
	ticket         ticket.Ticket
}

// latelyKept is how many are remembered, some 3 MB of them.
const latelyKept = 1 << 15

func (l *lately) add(p *Pass) {
	x := letInAtOnce{visitKey{p.Room, p.Visitor}, p.AcceptedAt.UnixMilli(), p.LeaseEnd.UnixMilli(), p.Ticket}
	if len(l.ring) < latelyKept {
		l.ring = append(l.ring, x)
		return
	}
	l.ring[l.next] = x
	l.next = (l.next + 1) % latelyKept
}

// find returns the pass that a visitor got, the newest of several.
func (l *lately) find(k visitKey) (p Pass, known bool) {
	for i := range len(l.ring) {
		x := &l.ring[(l.next+len(l.ring)-1-i)%len(l.ring)]
		if x.key == k {
			at := time.UnixMilli(x.accepted)
			return Pass{Visitor: k.visitor, Room: k.room, Arrival: at, AcceptedAt: at, LeaseEnd: time.UnixMilli(x.ends), Ticket: x.ticket}, true
		}
	}
	return Pass{}, false
}

// letInAs returns the pass of somebody who was let in at once at this node and is inside, as
// far as is known here: how long a session was extended its anchor knows.
func (r *Room) letInAs(v VisitorID, now time.Time) (p Pass, inside bool) {
	if p, inside = r.core.lately.find(visitKey{r.id, v}); !inside {
		return p, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights != nil {
		if end, lasts := r.rights.LeaseEnd(p.Ticket); lasts {
			p.LeaseEnd = end
		}
	}
	return p, now.Before(p.LeaseEnd)
}
