package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// TestHeldKeepThePlace has a visitor whose turn it is held. The place stays, and who is alone counts
// them; where there are other nodes that could let others in they count as if they were away.
func TestHeldKeepThePlace(t *testing.T) {
	r, _, waiting, now := hotRoom(t)
	c := r.core
	collect := func() (polls int) {
		for n := range c.stripes.collect() {
			polls += len(n.polls)
		}
		return polls
	}
	collect()
	hold := func(p Pass, counted bool, polls int, isNew bool) Pass {
		t.Helper()
		v := r.Hold(p, counted, now)
		if v.Admit || !v.SetPass || v.New != isNew {
			t.Errorf("told %+v", v)
		}
		if n := collect(); n != polls {
			t.Errorf("counted %d times, want %d", n, polls)
		}
		return v.Pass
	}
	same := func(p Pass) {
		t.Helper()
		if p.Visitor != waiting.Visitor || !p.Arrival.Equal(waiting.Arrival) || !p.LastPoll.Equal(now) {
			t.Errorf("the place is lost: %+v of %+v", p, waiting)
		}
	}
	same(hold(waiting, true, 1, false))
	same(hold(waiting, false, 1, false)) // nobody else is there
	c.SetPeers([]replica.Peer{{ID: crdt.NodeID{2}, Boot: 1, Site: "b", Ready: true}}, now)
	same(hold(waiting, true, 1, false))
	p := hold(waiting, false, 0, false)
	same(p)
	if v := r.Hold(p, false, now.Add(time.Millisecond)); v.SetPass || v.Pass.Arrival != p.Arrival {
		t.Errorf("who asks too early is told %+v", v)
	}
	hold(Pass{}, true, 0, true)
	hold(Pass{}, false, 0, false)
	if p := hold(Pass{Room: crdt.RoomID{9}, Arrival: waiting.Arrival, Visitor: waiting.Visitor}, true, 0, true); p.Visitor == waiting.Visitor {
		t.Error("a pass of another room is taken for one of this")
	}
}
