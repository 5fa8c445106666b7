package crdt

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestFirstsArePast compares the two ways to tell what is past, at its edges.
func TestFirstsArePast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	base := time.Unix(1_700_000_000, 0)
	for range 2000 {
		ret := Retention{History: time.Duration(rng.IntN(1000)) * time.Second, Arrivals: time.Duration(rng.IntN(5000)) * time.Second}
		if rng.IntN(2) == 0 {
			ret.History += time.Duration(rng.IntN(1000)) * time.Millisecond
		}
		now := base.Add(time.Duration(rng.IntN(60_000)) * time.Millisecond)
		if rng.IntN(3) == 0 {
			now = now.Truncate(TickSpan)
		}
		first := ret.first(now)
		for _, kind := range []Kind{Active, Waiting, Seen, Admitted, Held, HeldRate} {
			edge := map[Kind]int64{Waiting: first.arrivals, Seen: first.history, Admitted: first.history}[kind]
			for tick := edge - 3; tick <= edge+3; tick++ {
				if got, want := first.past(slot{kind, tick}), ret.past(kind, tick, now); got != want {
					t.Fatalf("%+v at %v: kind %d, tick %d past = %v, want %v", ret, now, kind, tick, got, want)
				}
			}
		}
	}
}
