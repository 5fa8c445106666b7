//go:build linux

package footprint

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/rig"
)

// idleConfig is that of a node with n rooms and no other settings than it takes.
func idleConfig(n int) string {
	var b strings.Builder
	b.WriteString("origin: http://127.0.0.1:9\n")
	writeRooms(&b, n)
	return b.String()
}

// writeRooms names n rooms; one is the room that a node has by itself.
func writeRooms(b *strings.Builder, n int) {
	if n == 1 {
		return
	}
	b.WriteString("rooms:\n")
	for i := range n {
		fmt.Fprintf(b, "  - room: room-%05d\n    host: %s\n", i, hostOf(i))
	}
}

func hostOf(i int) string { return fmt.Sprintf("shop-%05d.example", i) }

// idle is what a node takes that nobody asks.
type idle struct {
	resident rig.Memory
	heap     int64
	ready    time.Duration // from its start until it took requests
}

// measureIdle starts a node with n rooms that nobody asks, and looks at it after a time.
func measureIdle(ctx context.Context, binary string, n int, after time.Duration) (i idle, err error) {
	p, err := startNode(ctx, binary, idleConfig(n))
	if err != nil {
		return i, err
	}
	defer p.stop()
	i.ready = p.ready
	if err := p.Sleep(ctx, after); err != nil {
		return i, err
	}
	if i.resident, err = p.Memory(); err != nil {
		return i, err
	}
	i.heap, err = p.heap()
	return i, err
}

// full is what a node with many rooms and visitors has resident.
type full struct {
	rooms, active, waiting int // as the node counts them
	before, peak, after    rig.Memory
	took                   time.Duration // until all had come
}

const (
	clients  = 512 // visitors who come at the same time
	together = 64  // rooms to which they come then
)

// measureFull has visitors come to all rooms of a node through HTTP, each a new one: in each
// room, some are let in and the others wait. They do not come again, so they are drawn at
// random: by order, those who are next would be told to come at once, and be given up.
func measureFull(ctx context.Context, binary string, rooms, active, waiting int, after time.Duration) (f full, err error) {
	site, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return f, err
	}
	origin := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.SetBodyString("inside") }}
	go origin.Serve(site)
	defer origin.Shutdown()
	var b strings.Builder
	fmt.Fprintf(&b, "origin: http://%s\nmax-connections-per-address: 100000\nmax-new-visitors: 0\nmax-new-visitors-per-address: 0\n", site.Addr())
	fmt.Fprintf(&b, "total-active-users: %d\nnew-users-per-minute: 10000\nsession-duration: 30m\nrefresh-interval: 10m\nqueueing-method: random\n", active/rooms)
	writeRooms(&b, rooms)
	p, err := startNode(ctx, binary, b.String())
	if err != nil {
		return f, err
	}
	defer p.stop()
	if err := p.Sleep(ctx, 10*time.Second); err != nil {
		return f, err
	}
	if f.before, err = p.Memory(); err != nil {
		return f, err
	}
	f.rooms = rooms
	began := time.Now()
	if err := crowdOf(ctx, p, rooms, (active+waiting)/rooms); err != nil {
		return f, err
	}
	f.took = time.Since(began)
	if f.peak, err = p.Memory(); err != nil {
		return f, err
	}
	if err := p.Sleep(ctx, after); err != nil {
		return f, err
	}
	if f.after, err = p.Memory(); err != nil {
		return f, err
	}
	f.active, f.waiting, err = p.inside()
	return f, err
}

// crowdOf sends so many new visitors to each room, to some rooms after the other.
func crowdOf(ctx context.Context, p *process, rooms, each int) error {
	client := &fasthttp.HostClient{Addr: p.listen, MaxConns: clients}
	var next, refused atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= rooms*each {
					return
				}
				first := i / (together * each) * together
				among := min(together, rooms-first)
				req.SetRequestURI("http://" + hostOf(first+i%among) + "/")
				req.Header.Set("Accept", "application/json")
				if err := client.DoTimeout(req, resp, time.Minute); err != nil || !expected(resp) {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := refused.Load(); n > 0 {
		return fmt.Errorf("%d of %d visitors were neither let in nor told to wait", n, rooms*each)
	}
	return context.Cause(ctx)
}

// expected reports whether somebody was let in, or waits.
func expected(resp *fasthttp.Response) bool {
	return bytes.Equal(resp.Body(), []byte("inside")) || bytes.Contains(resp.Body(), []byte("inWaitingRoom"))
}
