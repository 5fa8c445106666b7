//go:build unix

package node

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// BenchmarkEscrowRate has visitors come to the three nodes of a site at a fixed
// rate, whether or not those before them have been answered, and tells how many
// tickets per second they were given and how long they waited for them, counted
// from when they were due. The nodes are linked by QUIC over loopback and have
// their rights on disk. Load and nodes share the processors: cpu-ns/ticket is what both
// take together, and what of that is whose tells BenchmarkEscrowCost.
func BenchmarkEscrowRate(b *testing.B) {
	for _, perSecond := range []int{50_000, 100_000, 200_000, 300_000, 400_000} {
		b.Run(fmt.Sprint("rate=", perSecond), func(b *testing.B) { benchmarkEscrowRate(b, perSecond) })
	}
}

const (
	rateWarmUp = 7 * time.Second // longer than sessions last: as many leave as come
	rateTime   = 5 * time.Second
	rateStep   = time.Millisecond // how often visitors come, as many as are due
)

func benchmarkEscrowRate(b *testing.B, perSecond int) {
	s := room.Settings{
		ID: crdt.RoomID{1}, Name: "room", Path: "/", Policy: room.Escrow,
		TotalActiveUsers: 1 << 30, NewUsersPerMinute: 1 << 30, SessionDuration: 5 * time.Second,
	}.WithDefaults()
	nodes := startLive(b, []room.Settings{s}, "a", "a", "a")
	awaitSiteCounter(b, nodes)
	for b.Loop() {
		all := rateRun{until: time.Now().Add(rateWarmUp)}
		all.drive(nodes, perSecond)
		before := cpuTime()
		all = rateRun{until: time.Now().Add(rateTime)}
		all.drive(nodes, perSecond)
		b.ReportMetric(float64(cpuTime()-before)/float64(max(1, all.given.Load())), "cpu-ns/ticket")
		b.ReportMetric(float64(all.given.Load())/rateTime.Seconds(), "tickets/s")
		b.ReportMetric(float64(all.refused.Load())/rateTime.Seconds(), "refused/s")
		b.ReportMetric(all.nanos(50), "p50-ns")
		b.ReportMetric(all.nanos(99), "p99-ns")
		b.ReportMetric(all.nanos(99.9), "p999-ns")
	}
}

// cpuTime returns how long this process has kept processors busy.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("node: no use of the processor is known: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// awaitSiteCounter waits until all nodes ask the same counter, and have their part of
// the rights, which takes the mover some seconds.
func awaitSiteCounter(b *testing.B, nodes []*live) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		asked, given := map[crdt.NodeID]bool{}, 0
		for _, n := range nodes {
			r := n.Route("h", "/")
			asked[r.view.Load().ask[ticket.SiteCounter]] = true
			r.mu.Lock()
			held := r.rights.Held().Places
			r.mu.Unlock()
			if held >= 1<<28 && r.Decide(Pass{}, false, n.Now()).Admit {
				given++
			}
		}
		if len(asked) == 1 && given == len(nodes) {
			return
		}
	}
	b.Fatal("no counter gives tickets to all nodes after 30 s")
}

// rateRun is the visitors of some seconds.
type rateRun struct {
	until          time.Time
	given, refused atomic.Int64

	mu   sync.Mutex // guards the following
	took *hdrhistogram.Histogram
}

// drive sends visitors to all nodes alike and returns when all have been answered.
func (r *rateRun) drive(nodes []*live, perSecond int) {
	r.took = hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() { r.visit(n, float64(perSecond)/float64(len(nodes))) })
	}
	wg.Wait()
}

// visit has new visitors come to one node, each at its time.
func (r *rateRun) visit(n *live, perSecond float64) {
	room := n.Route("h", "/")
	var waiting sync.WaitGroup
	start, due := time.Now(), 0
	for now := start; now.Before(r.until); now = time.Now() {
		for ; float64(due) < now.Sub(start).Seconds()*perSecond; due++ {
			at := start.Add(time.Duration(float64(due) / perSecond * float64(time.Second)))
			waiting.Add(1)
			v, ok := room.Begin(Pass{}, false, n.Now(), func(v Verdict) {
				r.answered(v, at)
				waiting.Done()
			})
			if ok {
				r.answered(v, at)
				waiting.Done()
			}
		}
		time.Sleep(rateStep)
	}
	waiting.Wait()
}

func (r *rateRun) answered(v Verdict, due time.Time) {
	if !v.Admit {
		r.refused.Add(1)
		return
	}
	r.given.Add(1)
	took := time.Since(due)
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.took.RecordValue(int64(max(took, time.Microsecond) / time.Microsecond)) // a minute holds every wait
}

func (r *rateRun) nanos(q float64) float64 { return float64(r.took.ValueAtQuantile(q)) * 1000 }
