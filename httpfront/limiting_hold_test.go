package httpfront

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// held notes how long answers are held.
type held struct {
	mu  sync.Mutex // guards the following
	all []time.Duration
}

func (h *held) sleep(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
}

// take returns how long answers were held since it was called last.
func (h *held) take() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	return all
}

// Who goes on although a limit says no gets the answers one after the other from some time
// on; the connections of others, those of proxies among them, are not held up.
func TestWhoGoesOnBeyondALimitIsHeld(t *testing.T) {
	var held held
	var clock atomic.Int64 // ms
	f := serve(t, fakeRooms{"/shop", newRoom(letIn)}, http.HandlerFunc(echo), func(c *Config) {
		c.Clock, c.sleep = func() time.Time { return time.UnixMilli(clock.Load()) }, held.sleep
		c.Edge.ProxyProtocol = loopback
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	})
	ask := func(from, path string, n int) (codes []int) {
		t.Helper()
		c := f.dial()
		fmt.Fprintf(c, "PROXY TCP4 %s %[1]s 40000 80\r\n", from)
		for range n {
			codes = append(codes, c.ask("GET", "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n").StatusCode)
		}
		return codes
	}
	limited := func(codes []int) int { return len(slices.DeleteFunc(codes, func(c int) bool { return c != 429 })) }
	f.follow(fiveAMinute())
	now := time.UnixMilli(1_700_000_000_000)
	for _, c := range []struct {
		what, from, path string
		after            time.Duration
		requests         int
		limited, held    int
	}{
		{"who keeps to it", "192.0.2.1", "/free", 0, 5, 0, 0},
		{"the first few", "192.0.2.2", "/free", 0, 15, 10, 0},
		{"those after them, on another connection", "192.0.2.2", "/free", 0, 15, 15, 15},
		{"a second later", "192.0.2.2", "/free", time.Second, 15, 15, 5},
		{"in a room, a second later", "192.0.2.3", "/shop", time.Second, 17, 12, 2},
		{"through a trusted proxy", "10.9.1.1", "/free", 0, 25, 20, 0},
		{"on this machine", "127.0.0.3", "/free", 0, 25, 20, 0},
	} {
		now = now.Add(c.after)
		clock.Store(now.UnixMilli())
		if got := limited(ask(c.from, c.path, c.requests)); got != c.limited {
			t.Errorf("%s: %d were limited, want %d", c.what, got, c.limited)
		}
		if got, want := held.take(), slices.Repeat([]time.Duration{limitedHeld}, c.held); !slices.Equal(got, want) {
			t.Errorf("%s: held for %v, want %v", c.what, got, want)
		}
	}
}

// The page of a room that a rule sends to is held as well: it costs more than a few words.
func TestWhoGoesOnBeyondALimitThatQueuesIsHeld(t *testing.T) {
	var held held
	f := serve(t, fakeRooms{"/", newRoom(letIn)}, http.HandlerFunc(echo), at(time.UnixMilli(1_700_000_000_000)), func(c *Config) {
		c.sleep = held.sleep
		c.Edge.ProxyProtocol = loopback
	})
	f.follow(fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	c := f.dial()
	fmt.Fprint(c, "PROXY TCP4 192.0.2.1 192.0.2.1 40000 80\r\n")
	for range 5 + limitedAtOnce + 2 {
		c.ask("GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	if got := held.take(); len(got) != 2 {
		t.Errorf("held for %v, want two answers", got)
	}
}

// The time for which a limited answer is held is none that the request takes.
func TestHeldAnswersTakeNoTime(t *testing.T) {
	t.Parallel()
	w := &witness{}
	f := serve(t, fakeRooms{"/shop", newRoom(letIn)}, http.HandlerFunc(echo), func(c *Config) {
		c.Clock, c.sleep = func() time.Time { return time.UnixMilli(1_700_000_000_000) }, time.Sleep
		c.Edge.ProxyProtocol = loopback
	}, w.watch)
	c := f.dial()
	fmt.Fprintf(c, "PROXY TCP4 %s %[1]s 40000 80\r\n", "192.0.2.2")
	f.follow(fiveAMinute())
	const held = 8
	for range 5 + limitedAtOnce + held {
		c.ask("GET", "GET /free HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	least := time.Hour // the machine may be busy at one of them
	w.next(t, 5+limitedAtOnce+held)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.count[5+limitedAtOnce:] {
		least = min(least, c.took)
	}
	if least >= limitedHeld {
		t.Errorf("requests that are refused at once are counted with %v or more", least)
	}
}
