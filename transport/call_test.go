package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair starts two nodes; change may alter the second.
func pairOf(t *testing.T, w *wire, change func(*Config)) (a, b *testNode) {
	t.Helper()
	c := newCluster(t, w)
	a = c.start(c.config(1, 1, 0))
	cfg := c.config(2, 1, 0)
	cfg.Seeds = []string{a.addr.String()}
	if change != nil {
		change(&cfg)
	}
	b = c.start(cfg)
	a.waitAlive(1, 10*time.Second)
	b.waitAlive(1, 10*time.Second)
	return a, b
}

// Methods of the test handler.
const (
	methodEcho = iota
	methodRefuse
	methodFail
	methodPanic
	methodHang
	methodHuge
)

// handler answers calls in every way there is. gone is closed when a hanging
// call was given up by its caller.
func handler(gone chan<- struct{}) func(context.Context, Peer, uint8, []byte) ([]byte, error) {
	return func(ctx context.Context, from Peer, method uint8, req []byte) ([]byte, error) {
		switch method {
		case methodEcho:
			return append([]byte(from.Name+"@"+from.Site+":"), req...), nil
		case methodRefuse:
			return nil, &RemoteError{Code: 42, Text: "refused"}
		case methodFail:
			return nil, errors.New(strings.Repeat("long ", 1000))
		case methodPanic:
			panic("broken")
		case methodHuge:
			return make([]byte, MaxCall+1), nil
		}
		<-ctx.Done()
		close(gone)
		return nil, ctx.Err()
	}
}

func TestCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone := make(chan struct{})
		a, b := pairOf(t, newWire(lanDelay), func(c *Config) { c.OnCall = handler(gone) })

		got, err := a.mesh.Call(t.Context(), b.id, methodEcho, []byte("hello"))
		if err != nil || string(got) != "node-1@site-1:hello" {
			t.Errorf("echo: got %q, %v", got, err)
		}
		big := bytes.Repeat([]byte("x"), MaxCall-64)
		if got, err = a.mesh.Call(t.Context(), b.id, methodEcho, big); err != nil || !bytes.HasSuffix(got, big) {
			t.Errorf("big echo: got %d bytes, %v", len(got), err)
		}
		if _, err = a.mesh.Call(t.Context(), b.id, methodEcho, make([]byte, MaxCall+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("request too large: got %v", err)
		}
		for method, want := range map[uint8]RemoteError{
			methodRefuse: {Code: 42, Text: "refused"},
			methodFail:   {Text: strings.Repeat("long ", 1000)[:maxErrorText]},
			methodPanic:  {Code: CodePanic, Text: "handler panicked"},
			methodHuge:   {Code: CodeTooLarge, Text: "answer of 1048577 bytes"},
		} {
			_, err := a.mesh.Call(t.Context(), b.id, method, nil)
			if remote, ok := errors.AsType[*RemoteError](err); !ok || *remote != want {
				t.Errorf("method %d: got %v, want %+v", method, err, want)
			}
		}
		_, err = b.mesh.Call(t.Context(), a.id, methodEcho, nil)
		if remote, ok := errors.AsType[*RemoteError](err); !ok || remote.Code != CodeNoHandler {
			t.Errorf("peer without handler: got %v", err)
		}
		if _, err = a.mesh.Call(t.Context(), testID(99), methodEcho, nil); !errors.Is(err, ErrUnreachable) {
			t.Errorf("unknown peer: got %v, want ErrUnreachable", err)
		}
		if s := b.mesh.Stats(); s.HandlerPanics != 1 || s.CallsIn != 6 || s.MalformedFrames != 0 {
			t.Errorf("stats of the callee: %+v", s)
		}

		began := time.Now()
		if _, err = a.mesh.Call(t.Context(), b.id, methodHang, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hanging call: got %v, want a deadline", err)
		}
		if took := time.Since(began); took != LAN().Timing.CallTimeout {
			t.Errorf("hanging call took %v, want the default of %v", took, LAN().Timing.CallTimeout)
		}
		<-gone // or the bubble reports a deadlock
	})
}

// TestCallerGivesUp cancels a call and expects its handler to hear of it
// long before the deadline.
func TestCallerGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone := make(chan struct{})
		a, b := pairOf(t, newWire(lanDelay), func(c *Config) { c.OnCall = handler(gone) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		if _, err := a.mesh.Call(ctx, b.id, methodHang, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		<-gone
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("the handler heard after %v", took)
		}
	})
}

func TestCallAcrossACut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		a, b := pairOf(t, w, func(c *Config) { c.OnCall = handler(nil) })
		w.isolate(b)
		began := time.Now()
		_, err := a.mesh.Call(t.Context(), b.id, methodEcho, nil)
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > LAN().Timing.CallTimeout {
			t.Errorf("took %v", took)
		}
		w.isolate()
		waitUntil(t, detectionGoal, "calls work again", func() bool {
			_, err := a.mesh.Call(t.Context(), b.id, methodEcho, nil)
			return err == nil
		})
	})
}

// TestManyCallsAtOnce asks more than QUIC has streams.
func TestManyCallsAtOnce(t *testing.T) {
	a, b := pairOf(t, nil, func(c *Config) { c.OnCall = handler(nil) })
	var wg sync.WaitGroup
	for range 300 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if _, err := a.mesh.Call(ctx, b.id, methodEcho, []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// collector takes messages.
type collector struct {
	mu   sync.Mutex // guards the following
	got  []uint64
	from []Peer
}

func (c *collector) take(from Peer, kind uint8, msg []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == 7 && len(msg) == 8 {
		c.got = append(c.got, binary.BigEndian.Uint64(msg))
		c.from = append(c.from, from)
	}
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

func number(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }

func TestSendKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c collector
		a, b := pairOf(t, newWire(lanDelay), func(cfg *Config) { cfg.OnMessage = c.take })
		for i := range uint64(500) {
			a.mesh.Send(b.id, 7, i, number(i))
		}
		waitUntil(t, 5*time.Second, "all arrived", func() bool { return c.count() == 500 })
		for i, v := range c.got {
			if v != uint64(i) {
				t.Fatalf("message %d is %d", i, v)
			}
		}
		if p := c.from[0]; p.ID != a.id || p.Site != "site-1" || p.Boot != 1 || p.State != Alive {
			t.Errorf("sender: %+v", p)
		}
		a.mesh.Send(testID(99), 7, 0, nil)
		a.mesh.Send(b.id, 7, 0, make([]byte, MaxMessage+1))
		if s := a.mesh.Stats(); s.MessagesDropped != 2 || s.MessagesOut != 500 {
			t.Errorf("stats: %+v", s)
		}
	})
}

// TestSlowReaderSeesNewestState blocks the reader: what waits meanwhile must
// be replaced by newer state and stay within the bounds.
func TestSlowReaderSeesNewestState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var c collector
		a, b := pairOf(t, newWire(lanDelay), func(cfg *Config) {
			cfg.OnMessage = func(from Peer, kind uint8, msg []byte) {
				<-release
				c.take(from, kind, msg)
			}
		})
		pad := make([]byte, 100<<10) // fills the windows of the stream
		for range 12 {
			a.mesh.Send(b.id, 1, 1, pad)
			time.Sleep(50 * time.Millisecond)
		}
		for i := range uint64(1000) {
			a.mesh.Send(b.id, 7, 5, number(i))
		}
		s := a.mesh.Stats()
		if s.MessagesReplaced < 999 || s.QueuedMessages > 3 {
			t.Errorf("stats while blocked: %+v", s)
		}
		close(release)
		waitUntil(t, 5*time.Second, "the newest state arrives", func() bool { return c.count() > 0 })
		if c.count() != 1 || c.got[0] != 999 {
			t.Errorf("got %v, want the newest state once", c.got)
		}
	})
}

func TestPanicInMessageHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c collector
		a, b := pairOf(t, newWire(lanDelay), func(cfg *Config) {
			cfg.OnMessage = func(from Peer, kind uint8, msg []byte) {
				if kind == 1 {
					panic("broken")
				}
				c.take(from, kind, msg)
			}
		})
		a.mesh.Send(b.id, 1, 0, nil)
		a.mesh.Send(b.id, 7, 0, number(3))
		waitUntil(t, time.Second, "the next message arrives", func() bool { return c.count() == 1 })
		if s := b.mesh.Stats(); s.HandlerPanics != 1 {
			t.Errorf("panics: got %d, want 1", s.HandlerPanics)
		}
	})
}

func TestRTTAndOffset(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pairOf(t, newWire(25*time.Millisecond), func(c *Config) {
			c.Clock = func() time.Time { return time.Now().Add(-400 * time.Millisecond) }
		})
		waitUntil(t, 5*time.Second, "measured", func() bool { _, ok := a.mesh.RTT(b.id); return ok })
		rtt, _ := a.mesh.RTT(b.id)
		offset, ok := a.mesh.Offset(b.id)
		if rtt < 50*time.Millisecond || rtt > 55*time.Millisecond {
			t.Errorf("RTT: got %v, want 50ms", rtt)
		}
		if !ok || (offset+400*time.Millisecond).Abs() > 5*time.Millisecond {
			t.Errorf("offset: got %v, want -400ms", offset)
		}
		if _, ok := a.mesh.RTT(testID(99)); ok {
			t.Error("an unknown peer has a distance")
		}
	})
}
