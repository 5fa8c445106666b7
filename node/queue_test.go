package node

import (
	"testing"
	"time"
)

// TestWhoIsNewIsNobodyUntilQueued asks a full room by Decide, which leaves it to its
// caller whether somebody new queues, and by Begin, which does not.
func TestWhoIsNewIsNobodyUntilQueued(t *testing.T) {
	r, _, waiting, now := hotRoom(t)
	c := r.core
	collect := func() (polls int) {
		for n := range c.stripes.collect() {
			polls += len(n.polls)
		}
		return polls
	}
	collect()
	v := r.Decide(Pass{}, false, now)
	if !v.New || v.Admit || v.Pass.Visitor == (VisitorID{}) || collect() != 0 {
		t.Fatalf("somebody new left a trace, or is told %+v", v)
	}
	if r.Queue(v.Pass); collect() != 1 {
		t.Error("who queues is not counted")
	}
	if v := r.Decide(v.Pass, true, now.Add(v.Pass.Refresh)); v.New || collect() != 1 {
		t.Errorf("who waits is not counted, or is told %+v", v)
	}
	if v, ok := r.Begin(Pass{}, false, now, nil); !ok || !v.New || collect() != 1 {
		t.Errorf("Begin does not count somebody new, or tells %+v", v)
	}
	if v := r.Decide(waiting, true, now.Add(time.Hour)); !v.New || collect() != 0 {
		t.Errorf("a pass that ran out leaves a trace, or is told %+v", v)
	}
}

// TestWhoIsNewAndAskedForIsNobodyUntilQueued has visitors wait for a counter that does
// not answer.
func TestWhoIsNewAndAskedForIsNobodyUntilQueued(t *testing.T) {
	w := newWorld(t, counterSettings(10), "a", "a")
	w.run(20 * time.Second)
	polls := map[bool]int{}
	for _, asks := range []bool{true, false} {
		for _, m := range w.nodes {
			r := m.core.order[0]
			told := 0
			p := &pending{room: r, at: w.now, asks: asks, done: func(v Verdict) {
				if told++; !v.New || v.Admit {
					t.Errorf("told %+v", v)
				}
			}}
			k := r.counters.Load()
			m.core.pendings.count.Add(1)
			k.turnAway(p, w.now)
			if told != 1 {
				t.Errorf("answered %d times", told)
			}
			for n := range m.core.stripes.collect() {
				polls[asks] += len(n.polls)
			}
		}
	}
	if polls[true] != 0 || polls[false] != len(w.nodes) {
		t.Errorf("%d were counted without being asked about, %d with", polls[true], polls[false])
	}
}
