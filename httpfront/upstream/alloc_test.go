//go:build !race

package upstream

import (
	"testing"
	"time"
)

func TestAcquiringAKeptConnectionDoesNotAllocate(t *testing.T) {
	a, b := serve(t), serve(t)
	g, _ := open(t, Config{Origins: parsed(a.URL, b.URL)})
	work := func() {
		c := acquired(g, Tried{})
		c.Answered(200)
		c.Release()
	}
	for range 4 {
		work()
	}
	if n := testing.AllocsPerRun(200, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAskingDoesNotAllocate(t *testing.T) {
	g, ln := asked(t)
	c, o := dialled(t, g, ln)
	go func() {
		buf := make([]byte, 4)
		for {
			if _, err := o.Read(buf); err != nil {
				return
			}
			o.Write(buf)
		}
	}()
	request := []byte("ask\n")
	if n := testing.AllocsPerRun(200, func() {
		if err := c.Ask(request, time.Minute); err != nil {
			t.Fatal(err)
		}
		c.br.Discard(4)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestChoosingDoesNotAllocate(t *testing.T) {
	ms := weights(5, 3, 1)
	if n := testing.AllocsPerRun(100, func() { choose(ms, start, time.Second, 1, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
