package node

import (
	"testing"
	"time"
)

// TestActiveIsKnownThroughARestart restarts a node twice, the first time for too
// short to become ready, and expects its sessions never to go uncounted at the
// node that stays.
func TestActiveIsKnownThroughARestart(t *testing.T) {
	const inside = 8
	s := testSettings(2 * inside)
	w := newWorld(t, s, "a", "a")
	gone, stays := w.nodes[0], w.nodes[1]
	people := w.crowd(inside, func(int) *machine { return gone })
	for _, p := range people {
		w.ask(p)
	}
	w.run(time.Second)
	watch := func(d time.Duration) {
		t.Helper()
		for end := w.now.Add(d); w.now.Before(end); {
			w.run(10 * time.Millisecond)
			if got := stays.core.order[0].status().Active; got != inside {
				t.Fatalf("active at the node that stays = %d, want %d", got, inside)
			}
		}
	}
	watch(time.Second)
	w.kill(gone)
	watch(time.Second)

	w.delay = time.Second // the answers that fill the joiner take their time
	w.start(gone, s)
	watch(1500 * time.Millisecond)
	if gone.core.Ready() {
		t.Fatal("the node is ready before anything has reached it")
	}
	w.kill(gone)
	w.delay = 2 * time.Millisecond
	watch(3 * time.Second)
	w.start(gone, s)
	watch(5 * time.Second)
	if !gone.core.Ready() {
		t.Fatal("the node is not back")
	}
	for _, p := range people {
		if !w.ask(p).Admit {
			t.Errorf("%s lost the session", p.name)
		}
	}
	watch(2 * time.Second)
}
