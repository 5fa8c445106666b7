package upstream

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// TestASilentResolverTakesNoOriginOut has a resolver stop answering, and answer again: meanwhile connections go where
// the name led last, the first after a wait, and others at once.
func TestASilentResolverTakesNoOriginOut(t *testing.T) {
	_, port, _ := net.SplitHostPort(serve(t).Listener.Addr().String())
	addr := "shop.example:" + port
	g, _ := open(t, Config{Origins: parsed("http://" + addr), Timeouts: Timeouts{Connect: 300 * time.Millisecond}})
	g.resolver = nameServer(t, [4]byte{127, 0, 0, 1})
	answers := g.resolver.Dial
	var silent atomic.Bool
	var asked atomic.Int64
	g.resolver.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		asked.Add(1)
		if silent.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answers(ctx, network, address)
	}
	connects := func() { acquired(g, Tried{}).Discard() }
	silent.Store(true)
	if _, err := g.Acquire(&Tried{}, Request); err == nil {
		t.Fatal("a name that never led anywhere leads somewhere")
	}
	silent.Store(false)
	connects()
	silent.Store(true)
	connects() // once it is silent
	before := asked.Load()
	connects() // while it is silent
	if n := asked.Load() - before; n > 0 {
		t.Errorf("it was asked %d times more, and somebody waited", n)
	}
	silent.Store(false)
	is := func() name {
		g.names.mu.Lock()
		defer g.names.mu.Unlock()
		return *g.names.of[addr]
	}
	g.names.mu.Lock()
	g.names.of[addr].silent = time.Now().Add(-time.Second)
	g.names.mu.Unlock()
	connects() // once it answers again
	waitFor(t, "somebody to notice that it answers again", func() bool { return !is().asking && is().silent.IsZero() })
	before = asked.Load()
	connects() // while it answers
	if asked.Load() == before {
		t.Error("it is not asked, although it answers")
	}
}
