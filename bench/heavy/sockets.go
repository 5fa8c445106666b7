//go:build linux

package heavy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// reserve is how many files a node needs besides those of its WebSockets.
const reserve = 200

// fit returns how many WebSockets a node has files for: each is two of them.
func fit(wanted int) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	// The node raises its own to the hard limit, as every Go program does. Who may
	// raise that as well gets as many as are wanted.
	need := uint64(2*wanted + reserve)
	raised := syscall.Rlimit{Cur: need, Max: need}
	switch {
	case limit.Max >= need, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil:
		return wanted, nil
	case limit.Max < reserve+2:
		return 0, fmt.Errorf("the limit of %d open files leaves none for WebSockets: raise it (ulimit -Hn) to %d for %d of them", limit.Max, need, wanted)
	}
	return int(limit.Max-reserve) / 2, nil
}

// measureSockets opens WebSockets, leaves them alone, and then talks on each. Fewer than are wanted have not
// shown what is asked for.
func (s *stack) measureSockets(ctx context.Context) {
	n := rig.Got(fit(s.sockets))
	if n < s.sockets {
		s.run.Note("The limit of open files allows %d WebSockets, each being two: raise it (`ulimit -Hn`) for %d.", n, s.sockets)
	}
	before := rig.Got(s.node.Memory())
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range n {
		conns = append(conns, openSocket(ctx, s.addr))
	}
	busy := rig.Got(s.node.CPU())
	rig.Must(rig.Sleep(ctx, s.hold))
	idle := rig.Got(s.node.CPU()) - busy
	grew := rig.Got(s.node.Memory()).Total - before.Total
	s.row("sockets", talk(conns) == 0, measurement.Values{
		"sockets": float64(n), "untried": float64(s.sockets - n),
		"B/socket": float64(grew) / float64(n), "cpu-sec/s": idle.Seconds() / s.hold.Seconds(),
	})
}

func openSocket(ctx context.Context, addr string) net.Conn {
	var d net.Dialer
	c := rig.Got(d.DialContext(ctx, "tcp", addr))
	rig.Must(c.SetDeadline(time.Now().Add(time.Minute)))
	rig.Got(io.WriteString(c, "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"))
	if resp := rig.Got(http.ReadResponse(bufio.NewReaderSize(c, 4096), nil)); resp.StatusCode != http.StatusSwitchingProtocols {
		rig.Must(fmt.Errorf("status %d", resp.StatusCode))
	}
	rig.Must(c.SetDeadline(time.Time{}))
	return c
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
