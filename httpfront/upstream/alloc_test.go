//go:build !race

package upstream

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestAcquiringAKeptConnectionDoesNotAllocate(t *testing.T) {
	a, b := serve(t), serve(t)
	g, _ := open(t, Config{Origins: parsed(a.URL, b.URL)})
	work := func() {
		c := acquired(g, Tried{})
		c.Answered(200, nil)
		c.Release()
	}
	for range 4 {
		work()
	}
	equal(t, "allocations", testing.AllocsPerRun(200, work), 0)
}

func TestAskingDoesNotAllocate(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		go io.CopyBuffer(struct{ io.Writer }{o.Conn}, struct{ io.Reader }{o.Conn}, make([]byte, 4))
		request := []byte("ask\n")
		if n := testing.AllocsPerRun(200, func() {
			if err := c.Ask(request, time.Minute, func([]byte) {}); err != nil {
				t.Fatal(err)
			}
			c.br.Discard(4)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
