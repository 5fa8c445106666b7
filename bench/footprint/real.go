//go:build linux

package footprint

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/load"
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
		fmt.Fprintf(b, "  - room: %s\n    host: %s\n", roomOf(i), hostOf(i))
	}
}

// idle is what a node takes that nobody asks.
type idle struct {
	resident rig.Memory
	ready    time.Duration // from its start until it took requests
}

// measureIdle starts a node with n rooms that nobody asks, and looks at it after a time.
func measureIdle(ctx context.Context, binary string, n int, after time.Duration) (i idle) {
	startNode(ctx, binary, idleConfig(n), func(p *process) {
		rig.Must(p.Sleep(ctx, after))
		i = idle{resident: rig.Got(p.Memory()), ready: p.ready}
	})
	return i
}

// measureTunnels returns how many bytes a node has resident for each of so many WebSockets that say nothing for a while.
func measureTunnels(ctx context.Context, binary string, n int, after time.Duration) (each float64) {
	site, stop, err := rig.Serve(&http.Server{Handler: http.HandlerFunc(upgrade)}, "")
	rig.Must(err)
	defer stop()
	startNode(ctx, binary, fmt.Sprintf("origin: http://%s\ntotal-active-users: 1000000\nnew-users-per-minute: 1000000\nmax-connections-per-address: 100000\n", site), func(p *process) {
		open := func() net.Conn {
			c := rig.Got(net.Dial("tcp", p.listen))
			rig.Must(c.SetDeadline(time.Now().Add(time.Minute)))
			rig.Got(io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"))
			if resp := rig.Got(http.ReadResponse(bufio.NewReaderSize(c, 4096), nil)); resp.StatusCode != http.StatusSwitchingProtocols {
				rig.Must(fmt.Errorf("a WebSocket got status %d", resp.StatusCode))
			}
			return c
		}
		rig.Must(open().Close()) // what the first one takes is not of each
		before := rig.Got(p.Memory())
		for range n {
			c := open()
			defer c.Close()
		}
		rig.Must(p.Sleep(ctx, after))
		each = float64(rig.Got(p.Memory()).Total-before.Total) / float64(n)
	})
	return each
}

// upgrade is a site that takes an upgrade, and waits for the end of the connection.
func upgrade(w http.ResponseWriter, _ *http.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = rw.ReadByte()
}

// full is what a node with many rooms and visitors has resident.
type full struct {
	active, waiting     int // as the node counts them
	before, peak, after rig.Memory
	took                time.Duration // until all had come
}

// measureFull has visitors come to all rooms of a node through HTTP, each a new one: in each
// room, some are let in and the others wait. They do not come again, so they are drawn at
// random: by order, those who are next would be told to come at once, and be given up.
func measureFull(ctx context.Context, binary string, rooms, active, waiting int, after time.Duration) (f full) {
	site := rig.Got(net.Listen("tcp", "127.0.0.1:0"))
	origin := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.SetBodyString("inside") }}
	go origin.Serve(site)
	defer origin.Shutdown()
	var b strings.Builder
	fmt.Fprintf(&b, "origin: http://%s\nmax-connections-per-address: 100000\nmax-new-visitors: 0\nmax-new-visitors-per-address: 0\n", site.Addr())
	fmt.Fprintf(&b, "total-active-users: %d\nnew-users-per-minute: 10000\nsession-duration: 30m\nrefresh-interval: 10m\nqueueing-method: random\n", active/rooms)
	writeRooms(&b, rooms)
	startNode(ctx, binary, b.String(), func(p *process) {
		rig.Must(p.Sleep(ctx, 10*time.Second))
		f.before = rig.Got(p.Memory())
		began := time.Now()
		rig.Must(crowdOf(ctx, p, rooms, (active+waiting)/rooms))
		f.took, f.peak = time.Since(began), rig.Got(p.Memory())
		rig.Must(p.Sleep(ctx, after))
		f.after = rig.Got(p.Memory())
		f.active, f.waiting = p.inside(ctx)
	})
	return f
}

// together is to how many rooms visitors come at the same time.
const together = 64

// crowdOf sends so many new visitors to each room, to some rooms after the other.
func crowdOf(ctx context.Context, p *process, rooms, each int) error {
	head := func(i int) []byte {
		first := i / (together * each) * together
		return fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n\r\n", hostOf(first+i%min(together, rooms-first)))
	}
	return load.Newcomers(ctx, p.listen, rooms*each, head, func(_ int, r *fasthttp.Response) error {
		if body := r.Body(); !bytes.Equal(body, []byte("inside")) && !bytes.Contains(body, []byte("inWaitingRoom")) {
			return fmt.Errorf("a visitor was neither let in nor told to wait: %d %.100q", r.StatusCode(), body)
		}
		return nil
	})
}
