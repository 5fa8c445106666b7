package httpfront

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// held notes how long answers are held, of which there is one at a time.
type held []time.Duration

func (h *held) sleep(d time.Duration) { *h = append(*h, d) }

// balanced is a front whose visitors are told of by a balancer, that notes in h how long it holds answers.
func (h *held) balanced(c *Config) {
	behindBalancer(c)
	c.sleep = h.sleep
}

// codes are those of answers to n requests on a connection.
func (c *conn) codes(n int, path string) (codes []int) {
	for range n {
		codes = append(codes, c.ask("GET", "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n").StatusCode)
	}
	return codes
}

// Who goes on although a limit says no gets the answers one after the other from some time
// on; the connections of others, those of proxies among them, are not held up.
func TestWhoGoesOnBeyondALimitIsHeld(t *testing.T) {
	var held held
	var clock atomic.Int64 // ms
	f := serve(t, fakeRooms{"/shop", newRoom(letIn)}, http.HandlerFunc(echo), held.balanced, trusts(prefixes("10.9.0.0/16")),
		func(c *Config) { c.Clock = func() time.Time { return time.UnixMilli(clock.Load()) } })
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
		limited := slices.DeleteFunc(f.through(c.from).codes(c.requests, c.path), func(c int) bool { return c != 429 })
		equal(t, c.what+": limited", len(limited), c.limited)
		equal(t, c.what+": held for", fmt.Sprint(held), fmt.Sprint(slices.Repeat([]time.Duration{limitedHeld}, c.held)))
		held = nil
	}
}

// The page of a room that a rule sends to is held as well: it costs more than a few words.
func TestWhoGoesOnBeyondALimitThatQueuesIsHeld(t *testing.T) {
	var held held
	f := serve(t, fakeRooms{"/", newRoom(letIn)}, http.HandlerFunc(echo), at(time.UnixMilli(1_700_000_000_000)), held.balanced)
	f.follow(fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	f.through("192.0.2.1").codes(5+limitedAtOnce+2, "/")
	equal(t, "answers that are held", len(held), 2)
}

// The time for which a limited answer is held is none that the request takes.
func TestHeldAnswersTakeNoTime(t *testing.T) {
	t.Parallel()
	w := &witness{}
	f := serve(t, fakeRooms{"/shop", newRoom(letIn)}, http.HandlerFunc(echo), at(time.UnixMilli(1_700_000_000_000)),
		func(c *Config) { c.sleep = time.Sleep }, behindBalancer, w.watch)
	f.follow(fiveAMinute())
	const held = 8
	f.through("192.0.2.2").codes(5+limitedAtOnce+held, "/free")
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
