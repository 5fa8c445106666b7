//go:build !race

package upstream

import (
	"testing"
	"time"
)

func TestAcquiringAKeptConnectionDoesNotAllocate(t *testing.T) {
	a, b := serve(t), serve(t)
	g, _ := open(t, Config{Origins: parsed(t, a.URL, b.URL)})
	work := func() {
		var tried Tried
		c, err := g.Acquire(&tried)
		if err != nil {
			t.Fatal(err)
		}
		c.Answered()
		c.Release()
	}
	for range 4 {
		work()
	}
	if n := testing.AllocsPerRun(200, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestChoosingDoesNotAllocate(t *testing.T) {
	ms := weights(5, 3, 1)
	if n := testing.AllocsPerRun(100, func() { choose(ms, start, time.Second, 1, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
