package memnet_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ropeline/ropeline/transport"
	"github.com/ropeline/ropeline/transport/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mesh is all that both meshes can do.
type mesh interface {
	Run(ctx context.Context) error
	Close() error
	Addr() netip.AddrPort
	Join(ctx context.Context, seeds ...string) (int, error)
	Members() []transport.Peer
	SetReady(ready bool)
	Call(ctx context.Context, to transport.PeerID, method uint8, req []byte) ([]byte, error)
	Send(to transport.PeerID, kind uint8, slot uint64, msg []byte)
	RTT(id transport.PeerID) (time.Duration, bool)
	Offset(id transport.PeerID) (time.Duration, bool)
	Stats() transport.Stats
}

var (
	_ mesh = (*transport.Mesh)(nil)
	_ mesh = (*memnet.Mesh)(nil)
)

type node struct {
	*memnet.Mesh
	id     transport.PeerID
	done   chan error
	cancel context.CancelFunc

	mu     sync.Mutex // guards the following
	events []transport.Event
	got    []string
}

func nodeID(i int) transport.PeerID { return transport.PeerID{0: byte(i), 1: 1} }

func start(t *testing.T, n *memnet.Network, i int, boot uint64, change func(*transport.Config), seeds ...string) *node {
	t.Helper()
	nd := &node{id: nodeID(i), done: make(chan error, 1)}
	cfg := transport.LAN()
	cfg.ID, cfg.Boot, cfg.Name, cfg.Site, cfg.Seeds = nd.id, boot, fmt.Sprint("node-", i), "here", seeds
	cfg.OnEvent = func(ev transport.Event) {
		nd.mu.Lock()
		defer nd.mu.Unlock()
		nd.events = append(nd.events, ev)
	}
	cfg.OnMessage = func(from transport.Peer, kind uint8, msg []byte) {
		nd.mu.Lock()
		defer nd.mu.Unlock()
		nd.got = append(nd.got, fmt.Sprintf("%s/%d/%s", from.Name, kind, msg))
	}
	cfg.OnCall = func(ctx context.Context, from transport.Peer, method uint8, req []byte) ([]byte, error) {
		switch method {
		case 1:
			return append([]byte(from.Name+": "), req...), nil
		case 2:
			return nil, &transport.RemoteError{Code: 7, Text: "no"}
		case 3:
			panic("broken handler")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if change != nil {
		change(&cfg)
	}
	m, err := n.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	nd.Mesh = m
	var ctx context.Context
	ctx, nd.cancel = context.WithCancel(context.Background())
	go func() { nd.done <- m.Run(ctx) }()
	t.Cleanup(func() {
		nd.cancel()
		nd.done <- <-nd.done
	})
	return nd
}

func trio(t *testing.T, n *memnet.Network) (a, b, c *node) {
	t.Helper()
	a = start(t, n, 1, 1, nil)
	b = start(t, n, 2, 1, nil, a.Addr().String())
	c = start(t, n, 3, 1, nil, a.Addr().String())
	time.Sleep(2 * time.Second)
	for _, nd := range []*node{a, b, c} {
		if nd.alive() != 2 {
			t.Fatalf("%s sees %v, want two living peers", nd.id.Short(), nd.Members())
		}
	}
	return a, b, c
}

func (n *node) alive() int {
	return len(slices.DeleteFunc(n.Members(), func(p transport.Peer) bool { return p.State != transport.Alive }))
}

func (n *node) eventsOf(id transport.PeerID) []transport.EventType {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ts []transport.EventType
	for _, ev := range n.events {
		if ev.Peer.ID == id {
			ts = append(ts, ev.Type)
		}
	}
	return ts
}

func (n *node) received() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.got)
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := trio(t, memnet.NewNetwork(1, memnet.Link{Delay: 10 * time.Millisecond}))
		began := time.Now()
		got, err := a.Call(t.Context(), b.id, 1, []byte("hello"))
		if err != nil || string(got) != "node-1: hello" {
			t.Errorf("call: got %q, %v", got, err)
		}
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("call took %v, want twice the delay", took)
		}
		_, err = a.Call(t.Context(), b.id, 2, nil)
		if remote, ok := errors.AsType[*transport.RemoteError](err); !ok || remote.Code != 7 {
			t.Errorf("refused call: got %v, want code 7", err)
		}
		_, err = a.Call(t.Context(), b.id, 3, nil)
		if remote, ok := errors.AsType[*transport.RemoteError](err); !ok || remote.Code != transport.CodePanic {
			t.Errorf("panic: got %v, want CodePanic", err)
		}
		began = time.Now()
		if _, err = a.Call(t.Context(), b.id, 4, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("hanging call: got %v after %v, want a deadline after 2 s", err, time.Since(began))
		}
		if _, err = a.Call(t.Context(), nodeID(99), 1, nil); !errors.Is(err, transport.ErrUnreachable) {
			t.Errorf("unknown peer: got %v, want ErrUnreachable", err)
		}
	})
}

func TestMessagesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := trio(t, memnet.NewNetwork(1, memnet.Link{Delay: 10 * time.Millisecond}))
		var want []string
		for i := range 50 {
			a.Send(b.id, 9, 0, []byte{byte('A' + i%26)})
			want = append(want, fmt.Sprintf("node-1/9/%c", 'A'+i%26))
		}
		time.Sleep(time.Second)
		if got := b.received(); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestDuplicatesAndLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.NewNetwork(1, memnet.Link{})
		a, b, c := trio(t, n)
		n.SetLink(a.id, b.id, memnet.Link{Duplicate: 1})
		n.SetLink(a.id, c.id, memnet.Link{Loss: 0.5})
		for range 1000 {
			a.Send(b.id, 1, 0, nil)
			a.Send(c.id, 1, 0, nil)
		}
		time.Sleep(time.Second)
		if got := len(b.received()); got != 2000 {
			t.Errorf("doubled: got %d, want 2000", got)
		}
		if got := len(c.received()); got < 400 || got > 600 {
			t.Errorf("half lost: got %d of 1000", got)
		}
	})
}

func TestPartitionAndHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.NewNetwork(1, memnet.Link{Delay: time.Millisecond})
		a, b, c := trio(t, n)
		n.Partition([]transport.PeerID{a.id, b.id}, []transport.PeerID{c.id})
		time.Sleep(10 * time.Minute)
		if a.alive() != 1 || b.alive() != 1 || c.alive() != 0 {
			t.Fatalf("cut: %d, %d, %d alive, want 1, 1, 0", a.alive(), b.alive(), c.alive())
		}
		n.Heal()
		time.Sleep(time.Second)
		if a.alive() != 2 || c.alive() != 2 {
			t.Errorf("healed: %d, %d alive, want 2, 2", a.alive(), c.alive())
		}
		want := []transport.EventType{transport.Join, transport.Fail, transport.Rejoin}
		if got := a.eventsOf(c.id); !slices.Equal(got, want) {
			t.Errorf("events: got %v, want %v", got, want)
		}
	})
}

func TestOneWayCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.NewNetwork(1, memnet.Link{Delay: time.Millisecond})
		a, b, _ := trio(t, n)
		n.Cut(a.id, b.id)
		a.Send(b.id, 1, 0, []byte("lost"))
		b.Send(a.id, 1, 0, []byte("arrives"))
		time.Sleep(time.Second)
		if got := b.received(); len(got) != 0 {
			t.Errorf("through the cut: %v", got)
		}
		if got := a.received(); !slices.Equal(got, []string{"node-2/1/arrives"}) {
			t.Errorf("the other way: got %v", got)
		}
	})
}

func TestLeaveCrashRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.NewNetwork(1, memnet.Link{Delay: time.Millisecond})
		a, b, c := trio(t, n)
		b.cancel()
		if !n.Crash(c.id) || n.Crash(nodeID(99)) {
			t.Error("Crash reports the wrong nodes")
		}
		err := <-c.done
		c.done <- err
		if !errors.Is(err, memnet.ErrCrashed) {
			t.Errorf("Run of the crashed node: %v", err)
		}
		time.Sleep(6 * time.Second)
		again := start(t, n, 3, 2, nil, a.Addr().String())
		time.Sleep(2 * time.Second)
		if got, want := a.eventsOf(b.id), []transport.EventType{transport.Join, transport.Leave}; !slices.Equal(got, want) {
			t.Errorf("left: got %v, want %v", got, want)
		}
		if got, want := a.eventsOf(c.id), []transport.EventType{transport.Join, transport.Fail, transport.Rejoin}; !slices.Equal(got, want) {
			t.Errorf("crashed: got %v, want %v", got, want)
		}
		for _, p := range a.Members() {
			if p.ID == c.id && (p.Boot != 2 || p.Addr != again.Addr()) {
				t.Errorf("restarted: got %+v", p)
			}
		}
	})
}

func TestClockAndReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.NewNetwork(1, memnet.Link{Delay: 15 * time.Millisecond})
		a := start(t, n, 1, 1, nil)
		b := start(t, n, 2, 1, func(c *transport.Config) {
			c.Clock = func() time.Time { return time.Now().Add(300 * time.Millisecond) }
		}, a.Addr().String())
		b.SetReady(true)
		time.Sleep(3 * time.Second)
		if rtt, ok := a.RTT(b.id); !ok || rtt != 30*time.Millisecond {
			t.Errorf("RTT: got %v, %v, want 30ms", rtt, ok)
		}
		if off, ok := a.Offset(b.id); !ok || off != 300*time.Millisecond {
			t.Errorf("offset: got %v, %v, want 300ms", off, ok)
		}
		if ps := a.Members(); len(ps) != 1 || !ps[0].Ready {
			t.Errorf("members: got %+v, want one that is ready", ps)
		}
	})
}

func TestSeedMatters(t *testing.T) {
	run := func(seed uint64) int {
		var got int
		synctest.Test(t, func(t *testing.T) {
			n := memnet.NewNetwork(seed, memnet.Link{Delay: time.Millisecond})
			a, b, _ := trio(t, n)
			n.SetLink(a.id, b.id, memnet.Link{Loss: 0.3})
			for range 500 {
				a.Send(b.id, 1, 0, nil)
			}
			time.Sleep(100 * time.Millisecond)
			got = len(b.received())
		})
		return got
	}
	if a, b := run(7), run(8); a == b && run(9) == a {
		t.Errorf("three seeds, one outcome: %d", a)
	}
}
