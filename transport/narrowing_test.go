package transport

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// relay is a path between two nodes, by real sockets. Each node is known to the other by the socket that stands for it.
type relay struct {
	socks [2]*net.UDPConn
	nodes [2]atomic.Pointer[net.UDPAddr] // where they listen
	room  atomic.Int64                   // bytes of the largest packet that it carries; 0: any
}

func newRelay(t *testing.T) *relay {
	r := &relay{}
	for i := range r.socks {
		s, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		r.socks[i] = s
	}
	for to := range r.socks {
		go r.carry(to)
	}
	return r
}

// carry takes what is for a node, and sends it from the socket of the other one.
func (r *relay) carry(to int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.socks[to].Read(buf)
		if err != nil {
			return
		}
		at := r.nodes[to].Load()
		if room := r.room.Load(); at != nil && (room == 0 || int64(n) <= room) {
			_, _ = r.socks[1-to].WriteToUDP(buf[:n], at) // who does not listen gets nothing
		}
	}
}

// TestAPathThatNarrows has the path between two nodes carry less from one moment to the next, as when a route changes to
// a tunnel: calls go on.
func TestAPathThatNarrows(t *testing.T) {
	t.Parallel() // it waits most of the time
	c, r := newCluster(t, nil), newRelay(t)
	var ns []*testNode
	for i := range 2 {
		cfg := c.config(i+1, 1, 0)
		cfg.Advertise = r.socks[i].LocalAddr().String()
		cfg.OnCall = handler(nil)
		if i > 0 {
			cfg.Seeds = []string{r.socks[0].LocalAddr().String()}
		}
		n := c.start(cfg)
		r.nodes[i].Store(net.UDPAddrFromAddrPort(n.addr))
		ns = append(ns, n)
	}
	for _, n := range ns {
		n.waitAlive(1, 20*time.Second)
	}
	question := bytes.Repeat([]byte("x"), 200_000)
	call := func(when string) {
		answer, err := ns[0].mesh.Call(t.Context(), ns[1].id, methodEcho, question)
		if err != nil || !bytes.HasSuffix(answer, question) {
			t.Errorf("%s: an answer of %d bytes, %v, want one that ends in the question of %d", when, len(answer), err, len(question))
		}
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		call("on a wide path") // of which more is found out with time
	}
	r.room.Store(1280 - 48)
	call("on a path that has become narrow")
}
