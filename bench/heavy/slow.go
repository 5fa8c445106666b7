//go:build linux

package heavy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
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

// measureSlow has slow clients come while others go on.
func measureSlow(ctx context.Context, p plan, r *stack) ([]row, error) {
	alone, err := visit(ctx, r.addr, p.visitors, func() bool { return false }, p.alone)
	if err != nil {
		return nil, err
	}
	var left atomic.Int32
	left.Store(int32(p.slow))
	ends := make([]time.Duration, p.slow) // 0: was not cut off
	var wg sync.WaitGroup
	for i := range p.slow {
		wg.Go(func() {
			defer left.Add(-1)
			kind := slowKinds[i%len(slowKinds)]
			ends[i] = dawdle(ctx, r.addr, kind.first, kind.piece)
		})
	}
	meanwhile, err := visit(ctx, r.addr, p.visitors, func() bool { return left.Load() == 0 }, 3*time.Minute)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	rows := []row{{
		name: "visitors",
		what: fmt.Sprintf("%d visitors who ask ten times a second, alone and then beside %d slow clients", p.visitors, p.slow),
		came: fmt.Sprintf("alone %s; beside them %s", alone.text(), meanwhile.text()),
		// What is asked for is that others go on; how fast depends on the machine.
		verdict: verdict(alone.failed == 0 && meanwhile.failed == 0),
	}}
	for k, kind := range slowKinds {
		var of []time.Duration
		stayed := 0
		for i := k; i < p.slow; i += len(slowKinds) {
			if of = append(of, ends[i]); ends[i] == 0 || ends[i] > kind.most {
				stayed++
			}
		}
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		rows = append(rows, row{
			name:    measurement.Row("slow", kind.name),
			what:    fmt.Sprintf("%d slow clients: %s", len(of), kind.name),
			came:    fmt.Sprintf("cut off after %.1f to %.1f s", of[0].Seconds(), of[len(of)-1].Seconds()),
			verdict: verdict(stayed == 0),
		})
	}
	return rows, nil
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

// visits is what came of requests.
type visits struct {
	took   []time.Duration // sorted
	failed int
	why    string
}

func (v visits) text() string {
	at := func(q float64) float64 {
		return float64(v.took[min(int(q*float64(len(v.took))), len(v.took)-1)].Microseconds()) / 1000
	}
	s := fmt.Sprintf("%d requests, %d failed, p50 %.1f ms, p99 %.1f ms", len(v.took)+v.failed, v.failed, at(0.5), at(0.99))
	if v.failed > 0 {
		s += " (" + strings.ReplaceAll(v.why, "|", "/") + ")"
	}
	return s
}

// visit has n visitors ask ten times a second until enough, or for most.
func visit(ctx context.Context, addr string, n int, enough func() bool, most time.Duration) (visits, error) {
	var mu sync.Mutex
	var v visits
	until := time.Now().Add(most)
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			// Each has a pass from the first answer on: what takes time is then
			// the way to the origin, and not a ticket.
			jar, _ := cookiejar.New(nil) // fails never, without options
			client := http.Client{Transport: transport, Jar: jar, Timeout: 10 * time.Second}
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				start := time.Now()
				err := once(client, addr)
				took := time.Since(start)
				mu.Lock()
				if err != nil {
					v.failed, v.why = v.failed+1, err.Error()
				} else {
					v.took = append(v.took, took)
				}
				mu.Unlock()
				<-tick.C
				if !time.Now().Before(until) || ctx.Err() != nil || enough() {
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(v.took)
	if len(v.took) == 0 {
		return v, fmt.Errorf("no visitor was served: %s", v.why)
	}
	return v, context.Cause(ctx)
}

func once(client http.Client, addr string) error {
	resp, err := client.Get("http://" + addr + "/")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && string(b) != "a page" {
		err = fmt.Errorf("status %d: %.100q", resp.StatusCode, b)
	}
	return err
}
