package node

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// TestLatelyKeepsTheNewest: as many as operators are told, and of one visitor the last pass.
func TestLatelyKeepsTheNewest(t *testing.T) {
	var l lately
	if _, known := l.find(visitKey{room: roomID}); known {
		t.Error("the zero value knows somebody")
	}
	who := func(i int) (v VisitorID) {
		binary.BigEndian.PutUint64(v[:], uint64(i))
		return v
	}
	const more = 1000
	for i := range latelyKept + more {
		at := time.UnixMilli(int64(i))
		l.add(&Pass{Room: roomID, Visitor: who(i), AcceptedAt: at, LeaseEnd: at.Add(time.Minute), Ticket: ticket.Ticket{Seq: uint64(i)}})
	}
	for _, i := range []int{0, more - 1, more, latelyKept - 1, latelyKept, latelyKept + more - 1, latelyKept + more} {
		p, known := l.find(visitKey{roomID, who(i)})
		if want := i >= more && i < latelyKept+more; known != want {
			t.Errorf("visitor %d is known: %v, want %v", i, known, want)
		} else if known && (p.Ticket.Seq != uint64(i) || p.AcceptedAt.UnixMilli() != int64(i) || p.Visitor != who(i)) {
			t.Errorf("visitor %d has the pass %+v", i, p)
		}
	}
	l.add(&Pass{Room: roomID, Visitor: who(more + 1), Ticket: ticket.Ticket{Seq: 7}})
	if p, known := l.find(visitKey{roomID, who(more + 1)}); !known || p.Ticket.Seq != 7 {
		t.Errorf("of two passes of a visitor the one known is %+v, %v", p, known)
	}
}
