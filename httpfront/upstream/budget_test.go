package upstream

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestABudgetBoundsAllGroups: of connections of all of them, the one that was unused for longest makes room; who finds
// none unused waits. Requests, upgrades and connections that are kept count alike.
func TestABudgetBoundsAllGroups(t *testing.T) {
	budget := NewBudget(2)
	group := func() *Group {
		g, _ := open(t, Config{Origins: parsed(serve(t).URL), Budget: budget, Timeouts: Timeouts{Wait: 20 * time.Millisecond}})
		return g
	}
	a, b := group(), group()
	first, second := acquired(a, Tried{}), acquired(a, Tried{})
	first.Release()
	second.Release()
	if got := acquired(b, Tried{}); a.pools[0].idle[0] != second || len(a.pools[0].idle) != 1 || got.reused {
		t.Errorf("not the connection that was unused for longest made room: %d are left", len(a.pools[0].idle))
	}
	tunnel, err := b.AcquireTunnel(new(Tried))
	if err != nil || len(a.pools[0].idle) != 0 {
		t.Fatalf("an upgrade found no room: %v, %d unused", err, len(a.pools[0].idle))
	}
	if _, err := a.Acquire(new(Tried), Request); !errors.Is(err, ErrBusy) || len(budget.places) != 2 {
		t.Errorf("beyond the budget: %v, %d connections", err, len(budget.places))
	}
	if state := a.Status().Origins[0]; state.State != "in" || state.Failures != 0 {
		t.Errorf("an origin is blamed for what it has no part in: %+v", state)
	}
	tunnel.Discard()
	tunnel.Discard() // counts once
	kept := acquired(a, Tried{})
	if !kept.Keep() {
		t.Fatal("a connection cannot be kept")
	}
	if _, err := a.AcquireTunnel(new(Tried)); !errors.Is(err, ErrBusy) {
		t.Errorf("a connection that is kept does not count: %v", err)
	}
	kept.Drop()
	acquired(a, Tried{}).Discard()
	equal(t, "those that count, of one that is open", len(budget.places), 1)
	must(a.AcquireTunnel(new(Tried))) // no place was lost on the way
}

// TestABudgetLosesNothing has many requests of two groups come at once, some to an origin that is not there.
func TestABudgetLosesNothing(t *testing.T) {
	const conns = 4
	budget := NewBudget(conns)
	var groups []*Group
	for _, at := range []string{serve(t).URL, serve(t).URL, nowhere} {
		g, _ := open(t, Config{Origins: parsed(at), Budget: budget})
		groups = append(groups, g)
	}
	var all sync.WaitGroup
	for i := range 2 * conns {
		all.Go(func() {
			for k := range 50 {
				if c, err := groups[(i+k)%3].Acquire(new(Tried), Request); err == nil && k%7 == 0 {
					c.Discard()
				} else if err == nil {
					c.Release()
				}
			}
		})
	}
	all.Wait()
	open := 0
	for _, g := range groups {
		open += len(g.pools[0].open)
	}
	if len(budget.places) != open || open > conns {
		t.Errorf("%d count, of %d that are open", len(budget.places), open)
	}
}

// TestWantOfDescriptorsIsNotTheOrigins: it is no failure of an origin, which has others do without it.
func TestWantOfDescriptorsIsNotTheOrigins(t *testing.T) {
	g, _ := open(t, Config{Origins: parsed("http://127.0.0.1:1")})
	for err, blamed := range map[syscall.Errno]bool{syscall.EMFILE: false, syscall.ENFILE: false, syscall.ECONNREFUSED: true} {
		got := g.pools[0].notConnected(&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)})
		if _, is := errors.AsType[*DialError](got); is != blamed || errors.Is(got, ErrBusy) == blamed || !errors.Is(got, err) {
			t.Errorf("%v: the origin is blamed: %v; the error: %v", err, is, got)
		}
	}
}
