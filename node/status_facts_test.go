package node

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
)

// TestFactsThatFindNoRoom: a node whose facts are nearly full says so, and again, once,
// when one of its own is not taken. What is known stays.
func TestFactsThatFindNoRoom(t *testing.T) {
	single.Goroutine(t)
	c, now := loneCore(t, openRooms(1))
	var logs syncBuffer
	n := &Node{core: c, log: slog.New(slog.NewTextHandler(&logs, nil))}
	look := func() {
		now = now.Add(tickInterval)
		c.Tick(now)
		n.watchFacts()
		n.watchFacts()
	}
	fill := func(to int) {
		for i := c.replica.MapLen(); i < to; i++ {
			if err := c.replica.Set(fmt.Sprint("fact/", i), []byte{1}, now); err != nil {
				t.Fatal(err)
			}
		}
		look()
	}
	look()
	if logs.count("level=") > 0 {
		t.Errorf("an empty map is worth a word:\n%s", &logs.b)
	}
	fill(crdt.MaxKeys * 4 / 5)
	if logs.count("level=WARN") != 1 || logs.count("level=ERROR") > 0 {
		t.Errorf("want one warning of a map that is four fifths full:\n%s", &logs.b)
	}
	fill(crdt.MaxFacts)
	c.setFact("fact/more", []byte{1}, now)
	look()
	c.setFact("fact/0", []byte{1}, now) // known already
	if got := c.factsKnown.Load(); got != crdt.MaxFacts || c.factsFull.Load() != 1 {
		t.Errorf("%d facts are known and %d were refused, want %d and 1", got, c.factsFull.Load(), crdt.MaxFacts)
	}
	if logs.count("level=WARN") != 1 || logs.count("level=ERROR") != 1 {
		t.Errorf("want one error of a map that is full:\n%s", &logs.b)
	}
}
