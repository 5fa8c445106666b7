package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestALimitSetWhileAReadBeginsHolds: an upload that ends sets one while the answer is
// awaited by another goroutine.
func TestALimitSetWhileAReadBeginsHolds(t *testing.T) {
	for name, c := range map[string]struct{ before, meanwhile time.Duration }{
		"from none to one":  {0, time.Minute},
		"from one to none":  {time.Minute, 0},
		"to a longer one":   {time.Minute, time.Hour},
		"to a shorter one":  {time.Hour, time.Minute},
		"once it had ended": {time.Nanosecond, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			for range 200 {
				limitMeanwhile(t, name, c.before, c.meanwhile)
			}
		})
	}
}

func limitMeanwhile(t *testing.T, name string, before, meanwhile time.Duration) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	conn := newConn(near, &pool{group: &Group{cfg: Config{Timeouts: Timeouts{Send: time.Minute}}}})
	conn.Limit(before)
	start := time.Now()
	ended := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		for before == time.Nanosecond && errors.Is(err, os.ErrDeadlineExceeded) && time.Since(start) <= before {
			_, err = conn.Read(make([]byte, 1))
		}
		ended <- err
	}()
	conn.Limit(meanwhile)
	if meanwhile == 0 {
		time.Sleep(24 * time.Hour)
		far.Write([]byte("x"))
		equal(t, name+": what ended the read", <-ended, nil)
	} else if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != meanwhile {
		t.Errorf("%s: the read ended after %v with %v, and had to end after %v", name, time.Since(start), err, meanwhile)
	}
}

// origin is the other end of a connection of a group.
type origin struct {
	net.Conn
	br *bufio.Reader
}

// toAsk returns a connection of a group to ask on.
func toAsk(g *Group) *Conn { return must(g.AcquireToAsk(new(Tried), Request)) }

// dialled returns a connection of a group, and its other end.
func dialled(t *testing.T, g *Group, ln net.Listener) (*Conn, *origin) {
	c := toAsk(g)
	far := must(ln.Accept())
	t.Cleanup(func() { far.Close() })
	return c, &origin{far, bufio.NewReader(far)}
}

func asked(t *testing.T) (*Group, net.Listener) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { ln.Close() })
	g, _ := open(t, Config{Origins: parsed("http://" + ln.Addr().String())})
	return g, ln
}

// fewAndMany runs a test of asking, with few requests under way and with many.
func fewAndMany(t *testing.T, test func(t *testing.T, g *Group, ln net.Listener)) {
	for name, many := range map[string]int{"few": 1 << 30, "many": -1} {
		t.Run(name, func(t *testing.T) {
			g, ln := asked(t)
			g.pools[0].many = many
			test(t, g, ln)
		})
	}
}

// answers has the origin answer requests of so many bytes, one after the other.
func (o *origin) answers(size int, answers ...string) {
	buf := make([]byte, size)
	for _, a := range answers {
		if _, err := io.ReadFull(o.br, buf); err != nil {
			return
		}
		o.Write([]byte(a))
	}
}

// asks sends a request of four bytes, and expects an answer.
func (c *Conn) asks(t *testing.T, want string) {
	t.Helper()
	if err := c.Ask([]byte("ask\n"), time.Minute, func([]byte) {}); err != nil {
		t.Fatal(err)
	}
	c.expects(t, want)
}

func (c *Conn) expects(t *testing.T, want string) {
	t.Helper()
	got, err := c.Reader().Peek(len(want))
	if err != nil || string(got) != want || !c.Received() {
		t.Fatalf("read %q, %v, want %q; received is %v", got, err, want, c.Received())
	}
	c.Reader().Discard(len(want))
}

func TestAskingAgainAndAgain(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		go o.answers(4, "one", "two", "three")
		for _, want := range []string{"one", "two", "three"} {
			c.asks(t, want)
			c.Release()
			if again := toAsk(g); again != c {
				t.Fatal("another connection")
			}
		}
	})
}

// A request that the kernel does not take at once is sent all the same.
func TestAskingAtLength(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		c.Conn.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(4 << 10)
		request := make([]byte, 1<<20)
		go o.answers(len(request), "there")
		if err := c.Ask(request, time.Minute, func([]byte) {}); err != nil {
			t.Fatal(err)
		}
		c.expects(t, "there")
	})
}

// What is sent on a connection of which nothing is expected must not be taken for an answer,
// and what is closed must not be given a request.
func TestAskingWhereTheOriginHasSpokenOrClosed(t *testing.T) {
	for name, does := range map[string]func(*origin){
		"spoken": func(o *origin) { o.Write([]byte("another's answer")) },
		"closed": func(o *origin) { o.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			g, ln := asked(t)
			c, o := dialled(t, g, ln)
			go o.answers(4, "one")
			c.asks(t, "one")
			c.Release()
			does(o)
			waitFor(t, "the kernel to have it", func() bool { return !c.look.isQuiet() })
			if again := toAsk(g); again != c {
				t.Fatal("another connection")
			}
			equal(t, "asked", c.Ask([]byte("ask\n"), time.Minute, func([]byte) {}), ErrStale)
			c.Discard()
			if name == "spoken" {
				o.SetReadDeadline(time.Now().Add(time.Minute))
				if n, err := o.br.Read(make([]byte, 1)); n > 0 {
					t.Errorf("the origin got a request (%v)", err)
				}
			}
		})
	}
}

// An origin that speaks before it is asked for the first time has had nothing of others that
// it could speak of.
func TestAskingWhoSpeaksFirst(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		o.Write([]byte("hello"))
		waitFor(t, "the kernel to have it", func() bool { return !c.look.isQuiet() })
		c.asks(t, "hello")
	})
}

func TestAskingEnds(t *testing.T) {
	fewAndMany(t, func(t *testing.T, g *Group, ln net.Listener) {
		c, o := dialled(t, g, ln)
		if err := c.Ask([]byte("ask\n"), 20*time.Millisecond, func([]byte) {}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("asked with %v", err)
		}
		c.Discard()
		c, o = dialled(t, g, ln)
		go func() {
			o.br.ReadByte()
			o.Close()
		}()
		if err := c.Ask([]byte("ask\n"), time.Minute, func([]byte) {}); err == nil || !c.Broken() || c.Received() {
			t.Errorf("an origin that closes: %v, broken %v, received %v", err, c.Broken(), c.Received())
		}
		c.Discard()
		c, _ = dialled(t, g, ln)
		aborted := make(chan error)
		go func() { aborted <- c.Ask([]byte("ask\n"), 0, func([]byte) {}) }()
		c.Abort()
		if err := <-aborted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("aborted with %v", err)
		}
		c.Discard()
	})
}
