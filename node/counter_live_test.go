package node

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// awaitCounter waits until the nodes of one site ask the same counter and it has
// tickets, and returns one that is not the counter.
func awaitCounter(tb testing.TB, nodes []*live) (other *live) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		asked, open := map[crdt.NodeID]bool{}, false
		for _, n := range nodes {
			r := n.Route("h", "/")
			w := r.view.Load()
			asked[w.ask[ticket.AnywhereCounter]] = true
			if w.leads(ticket.AnywhereCounter, r.core.self.Node) {
				open = w.upTo[anywhere] > 0
			} else {
				other = n
			}
		}
		if len(asked) == 1 && open {
			return other
		}
	}
	tb.Fatal("no counter grants anything after 30 s")
	return nil
}

// TestCounterOverRealLinks has visitors of three nodes, connected as in
// production, wait in Decide for their tickets.
func TestCounterOverRealLinks(t *testing.T) {
	const limit = 60
	s := counterSettings(limit)
	s.SessionDuration = time.Hour
	nodes := startLive(t, []room.Settings{s}, "a", "a", "a")
	awaitCounter(t, nodes)
	before := runtime.NumGoroutine()
	var in atomic.Int64
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			if nodes[i%3].Route("h", "/").Decide(Pass{}, false, time.Now()).Admit {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	if got := in.Load(); got != limit {
		t.Errorf("%d were let in, the limit is %d", got, limit)
	}
	after := 0
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if after = runtime.NumGoroutine(); after <= before {
			return
		}
	}
	t.Errorf("%d goroutines, %d before the visitors came", after, before)
}

// BenchmarkCounterRoundTrip measures how long a visitor waits for a ticket of a
// counter at another node, over loopback.
func BenchmarkCounterRoundTrip(b *testing.B) {
	s := counterSettings(1 << 30)
	s.NewUsersPerMinute, s.SessionDuration = 1<<30, time.Hour
	r := awaitCounter(b, startLive(b, []room.Settings{s}, "a", "a", "a")).Route("h", "/")
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if !r.Decide(Pass{}, false, start).Admit {
			b.Fatal("refused")
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
