package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// stops stops a front, and returns what is closed then.
func (f *front) stops() <-chan struct{} {
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	return stopped
}

// TestShutdownServesWhatHasBegun finishes a request whose head was on its way
// when the front was told to stop, and refuses an upgrade, which would not last.
func TestShutdownServesWhatHasBegun(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	var conns []*conn
	heads := []string{plainGet, fmt.Sprintf(upgradeHead, "/")}
	for _, head := range heads {
		c := f.dial()
		io.WriteString(c, head[:20])
		conns = append(conns, c)
	}
	time.Sleep(50 * time.Millisecond) // until both are being read
	stopped := f.stops()
	waitFor(t, "the front to stop", f.front.draining.Load)
	for i, want := range []int{200, 503} {
		io.WriteString(conns[i], heads[i][20:])
		equal(t, "that the connection closes", conns[i].read("GET").is(t, want).Close, true)
	}
	<-stopped
}

// TestSoonToStop: for as long as drain-delay lasts clients are served, new ones as well, and told to come by another connection.
func TestSoonToStop(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo))
	kept := f.dial()
	equal(t, "that the connection closes before anybody stops", kept.ask("GET", plainGet).Close, false)
	f.front.Stopping()
	for name, c := range map[string]*conn{"kept": kept, "new": f.dial()} {
		got := c.ask("POST", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab").is(t, 200)
		equal(t, "that the connection closes: "+name, got.Close, true)
	}
}

// TestShutdownLetsOldClientsEnd is the same for an answer that goes on until the
// connection ends.
func TestShutdownLetsOldClientsEnd(t *testing.T) {
	release := make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		<-release
		io.WriteString(w, "two")
	}))
	c := f.dial()
	io.WriteString(c, "GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	resp := c.response("GET")
	expect(t, resp.Body, "one ")
	stopped := f.stops()
	select {
	case <-stopped:
		t.Error("stopped in the middle of an answer")
	case <-time.After(300 * time.Millisecond):
	}
	close(release)
	equal(t, "what comes then", rest(t, resp.Body), "two")
	<-stopped
}

func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	f := serve(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}), func(c *Config) { c.Timeouts.Drain = 20 * time.Millisecond })
	c := f.dial()
	io.WriteString(c, plainGet)
	<-arrived
	f.stop()
	if _, err := c.br.ReadByte(); err == nil {
		t.Error("the request was answered although nobody could")
	}
	equal(t, "requests that are under way", f.active(), 0)
}

// TestAFrontThatIsStoppedAtOnceEnds: it may not have begun when it is to end.
func TestAFrontThatIsStoppedAtOnceEnds(t *testing.T) {
	for range 20 {
		serve(t, nil, http.HandlerFunc(echo)).stop()
	}
}

// Who lingers has been answered, and does not keep a front from stopping.
func TestWhoLingersDoesNotHoldUpAShutdown(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Timeouts.Drain = time.Hour })
	c := f.dial()
	c.ask("GET", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n").is(t, 400)
	io.Copy(io.Discard, c.br) // up to where the front says no more, and lingers
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			c.Write([]byte("x"))
		}
	}()
	f.stop() // fails the test if it waits for the time to drain
}

// TestWebSocketsEndOneAfterAnother: each is told that the node goes away, and not all of them in one moment.
func TestWebSocketsEndOneAfterAnother(t *testing.T) {
	const sockets, drain = 5, 2 * time.Second
	origin := tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if req, err := http.ReadRequest(br); err == nil {
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n\x81\x02hi", req.Header.Get("Sec-WebSocket-Key"))
			io.Copy(io.Discard, br)
		}
	})
	f := serveTo(t, nil, origin, func(c *Config) { c.Timeouts.Drain = drain })
	ends := make(chan time.Time, sockets)
	for range sockets {
		c := f.dial()
		fmt.Fprintf(c, upgradeHead, "/")
		equal(t, "the code", c.response("GET").StatusCode, http.StatusSwitchingProtocols)
		expect(t, c.br, "\x81\x02hi")
		go func() {
			equal(t, "the last of a WebSocket", rest(t, c.br), "\x88\x02\x03\xe9")
			ends <- time.Now()
			c.Close()
		}()
	}
	begun := time.Now()
	f.stop()
	took := time.Since(begun)
	var all []time.Duration
	for range sockets {
		all = append(all, (<-ends).Sub(begun))
	}
	slices.Sort(all)
	for i, at := range all {
		if due := time.Duration(endingPart * float64(drain) * float64(i) / sockets); at < due-10*time.Millisecond {
			t.Errorf("WebSocket %d ends after %v, want not before %v", i, at, due)
		}
	}
	if took > drain {
		t.Errorf("it took %v to stop", took)
	}
}
