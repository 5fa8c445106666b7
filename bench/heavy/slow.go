//go:build linux

package heavy

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/load"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// slowKinds are the ways of sending a byte now and then. What a node allows by
// default is 10 s for a head, 30 s between two pieces of a body, and 240 bytes a
// second of it on average over twice that. most is when the last has to be gone.
var slowKinds = []struct {
	name, first, piece string
	most               time.Duration
}{
	{"silent", "", "", 15 * time.Second},
	{"slow heads", "GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n", 15 * time.Second},
	{"slow bodies", "POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 65 * time.Second},
}

// dawdleMax is for how long they go on that are not cut off.
const dawdleMax = 90 * time.Second

// measureSlow has slow clients come while others go on. That these do is what is asked for; how fast depends on the
// machine.
func (s *stack) measureSlow(ctx context.Context) {
	alone, stop := context.WithTimeout(ctx, s.alone)
	s.visit(alone, "nobody")
	stop()
	if s.slow == 0 {
		return
	}
	beside, stop := context.WithTimeout(ctx, 3*time.Minute)
	ends := make([]time.Duration, s.slow) // 0: was not cut off
	go func() {
		defer stop()
		var wg sync.WaitGroup
		for i := range ends {
			wg.Go(func() {
				kind := slowKinds[i%len(slowKinds)]
				ends[i] = dawdle(ctx, s.addr, kind.first, kind.piece)
			})
		}
		wg.Wait()
	}()
	s.visit(beside, "slow clients")
	<-beside.Done()
	for k, kind := range slowKinds {
		var of []time.Duration
		for i := k; i < len(ends); i += len(slowKinds) {
			of = append(of, ends[i])
		}
		if len(of) > 0 {
			first, last := slices.Min(of), slices.Max(of)
			s.row(measurement.Row("slow", kind.name), first > 0 && last <= kind.most,
				measurement.Values{"clients": float64(len(of)), "first-sec": first.Seconds(), "last-sec": last.Seconds()})
		}
	}
}

// visit has visitors ask ten times a second until ctx ends. Each has a pass from the first answer on: what takes
// time is then the way to the origin, and not a ticket.
func (s *stack) visit(ctx context.Context, beside string) {
	got := rig.Got(load.Run(ctx, load.Config{
		Targets: []string{"http://" + s.addr + "/"},
		Crowd:   load.Crowd{Burst: s.visitors, Stay: time.Hour, Think: 100 * time.Millisecond},
	}, nil))
	if err := got.LastError(); err != nil {
		s.run.Tell("a visitor: %v", err)
	}
	s.row(measurement.Row("visitors-beside", beside), got.Requests > 0 && got.Errors == 0 && got.SessionsLost == 0, measurement.Values{
		"requests": float64(got.Requests), "failed": float64(got.Errors), "p50-sec": got.Latency.P50 / 1e3, "p99-sec": got.Latency.P99 / 1e3,
	})
}

// dawdle sends first and then piece again and again, a byte a second, and returns
// after which time the node had enough of it, 0 if it never had.
func dawdle(ctx context.Context, addr, first, piece string) time.Duration {
	start := time.Now()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	defer c.Close()
	io.WriteString(c, first)
	closed := make(chan struct{})
	go func() { // ends when the node closes, or we do
		io.Copy(io.Discard, c)
		close(closed)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := 0; time.Since(start) < dawdleMax; i++ {
		select {
		case <-closed:
			return time.Since(start)
		case <-ctx.Done():
			return 0
		case <-tick.C:
		}
		if piece != "" {
			io.WriteString(c, string(piece[i%len(piece)]))
		}
	}
	return 0
}
