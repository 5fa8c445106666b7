//go:build linux

package heavy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
)

// reserve is how many files a node needs besides those of its WebSockets.
const reserve = 200

// fit returns how many WebSockets a node has files for: each is two of them.
func fit(wanted int) (int, string, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, "", err
	}
	// The node raises its own to the hard limit, as every Go program does. Who may
	// raise that as well gets as many as are wanted.
	need := uint64(2*wanted + reserve)
	if limit.Max < need {
		raised := syscall.Rlimit{Cur: need, Max: need}
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			return wanted, "", nil
		}
		if limit.Max < reserve+2 {
			return 0, "", fmt.Errorf("the limit of %d open files leaves none for WebSockets: raise it (ulimit -Hn) to %d for %d of them", limit.Max, need, wanted)
		}
		n := int(limit.Max-reserve) / 2
		return n, fmt.Sprintf(" (as many as the limit of %d open files allows, each being two; %d were wanted)", limit.Max, wanted), nil
	}
	return wanted, "", nil
}

// measureSockets opens WebSockets, leaves them alone, and then talks on each.
func measureSockets(ctx context.Context, p plan, r *stack) ([]row, error) {
	n, why, err := fit(p.sockets)
	if err != nil {
		return nil, err
	}
	before, err := r.node.Memory()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	conns, err := openSockets(ctx, r.addr, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	opened := time.Since(start)
	busy, err := r.node.CPU()
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(p.hold):
	}
	later, err := r.node.CPU()
	if err != nil {
		return nil, err
	}
	after, err := r.node.Memory()
	if err != nil {
		return nil, err
	}
	dead := talk(conns)
	return []row{{
		name:   "sockets",
		values: measurement.Values{"B/socket": float64(after.Total-before.Total) / float64(n)},
		what:   fmt.Sprintf("%d WebSockets that say nothing for %s%s", n, p.hold, why),
		came: fmt.Sprintf("opened in %.1f s; %.1f KiB of memory each, %s together; idle they take %.1f %% of one core; %d answer afterwards",
			opened.Seconds(), float64(after.Total-before.Total)/1024/float64(n), mib(after.Total-before.Total), 100*(later-busy).Seconds()/p.hold.Seconds(), n-dead),
		verdict: socketsVerdict(p.sockets, n, dead),
	}}, nil
}

// socketsVerdict says whether n WebSockets held, of which some are dead. Fewer than were
// wanted have not shown what was asked for.
func socketsVerdict(wanted, n, dead int) string {
	switch {
	case dead > 0:
		return fmt.Sprintf("%s: %d of %d are dead", verdict(false), dead, n)
	case n < wanted:
		return fmt.Sprintf("%s by %d, **not tried** with the %d that are wanted: raise the limit of open files", verdict(true), n, wanted)
	}
	return verdict(true)
}

// openSockets opens n of them, some at a time.
func openSockets(ctx context.Context, addr string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, n)
	var mu sync.Mutex
	var first error
	next := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range next {
				c, err := openSocket(ctx, addr)
				conns[i] = c
				if err != nil {
					mu.Lock()
					first = errors.Join(first, fmt.Errorf("WebSocket %d: %w", i, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	failed := func() error {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
	for i := range conns {
		if failed() != nil {
			break
		}
		select {
		case next <- i:
		case <-ctx.Done():
		case <-time.After(time.Minute): // all who open have failed
		}
	}
	close(next)
	wg.Wait()
	return conns, errors.Join(failed(), context.Cause(ctx))
}

func openSocket(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	_, err = fmt.Fprintf(c, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n")
	if err != nil {
		return c, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 4096), nil)
	if err != nil {
		return c, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return c, fmt.Errorf("status %d", resp.StatusCode)
	}
	return c, c.SetDeadline(time.Time{})
}

// talk says something on each and returns how many do not answer.
func talk(conns []net.Conn) (dead int) {
	for _, c := range conns {
		c.SetDeadline(time.Now().Add(10 * time.Second))
		buf := make([]byte, 5)
		if _, err := io.WriteString(c, "hello"); err != nil {
			dead++
		} else if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
			dead++
		}
	}
	return dead
}
