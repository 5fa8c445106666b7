package transport

import (
	"slices"
	"testing"
	"time"
)

// TestFarApart runs nodes a continent apart on a path that loses packets:
// nobody is given up by mistake, and a crash is noticed all the same.
func TestFarApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(140 * time.Millisecond)
		c := newCluster(t, w)
		c.timing = LAN
		ns := c.nodes(4)
		w.setLoss(0.02)
		time.Sleep(3 * time.Minute)
		for _, n := range ns {
			for _, o := range ns {
				if o != n && !slices.Equal(n.eventsOf(o.id), []EventType{Join}) {
					t.Errorf("%s about %s: %v, want one join", n.id.Short(), o.id.Short(), n.eventsOf(o.id))
				}
			}
		}
		ns[3].kill()
		killed := time.Now()
		for _, n := range ns[:3] {
			n.waitState(ns[3].id, Failed, 20*time.Second)
		}
		t.Logf("all knew after %v", time.Since(killed))
	})
}
