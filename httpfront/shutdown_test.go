package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// TestShutdownServesWhatHasBegun finishes a request whose head was on its way
// when the front was told to stop, and refuses an upgrade, which would not last.
func TestShutdownServesWhatHasBegun(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	var conns []*conn
	heads := []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", fmt.Sprintf(upgradeHead, "/")}
	for _, head := range heads {
		c := f.dial()
		io.WriteString(c, head[:20])
		conns = append(conns, c)
	}
	time.Sleep(50 * time.Millisecond) // until both are being read
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	waitFor(t, "the front to stop", f.front.draining.Load)
	for i, want := range []int{200, 503} {
		io.WriteString(conns[i], heads[i][20:])
		resp := conns[i].response("GET")
		if resp.StatusCode != want || !resp.Close {
			t.Errorf("request %d: got %d, close %v, want %d and a close", i, resp.StatusCode, resp.Close, want)
		}
	}
	<-stopped
}

// TestSoonToStop: for as long as drain-delay lasts clients are served, new ones as well, and told to come by another connection.
func TestSoonToStop(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo))
	kept := f.dial()
	io.WriteString(kept, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp := kept.response("GET")
	if io.Copy(io.Discard, resp.Body); resp.Close {
		t.Error("a connection is closed before anybody stops")
	}
	f.front.Stopping()
	for name, c := range map[string]*conn{"kept": kept, "new": f.dial()} {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
		if resp := c.response("POST"); resp.StatusCode != 200 || !resp.Close {
			t.Errorf("%s: got %d, close %v", name, resp.StatusCode, resp.Close)
		}
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
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("stopped in the middle of an answer")
	case <-time.After(300 * time.Millisecond):
	}
	close(release)
	if rest, err := io.ReadAll(resp.Body); string(rest) != "two" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	<-stopped
}

func TestShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	f := serve(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}), func(c *Config) { c.Timeouts.Drain = 20 * time.Millisecond })
	failed := make(chan error, 1)
	go func() {
		resp, err := f.client.Get(f.url("/"))
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-arrived
	f.stop()
	if err := <-failed; err == nil {
		t.Error("the request was answered although nobody could")
	}
	if n := f.active(); n != 0 {
		t.Errorf("%d requests are still under way", n)
	}
}

// TestAFrontThatIsStoppedAtOnceEnds: it may not have begun when it is to end.
func TestAFrontThatIsStoppedAtOnceEnds(t *testing.T) {
	for range 20 {
		f := serve(t, nil, http.HandlerFunc(echo))
		f.stop()
	}
}

// Who lingers has been answered, and does not keep a front from stopping.
func TestWhoLingersDoesNotHoldUpAShutdown(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Timeouts.Drain = time.Hour })
	c := f.dial()
	io.WriteString(c, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp := c.response("GET"); resp.StatusCode != 400 {
		t.Fatal(resp.StatusCode)
	}
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
	ends := make(chan time.Duration, sockets)
	var begun atomic.Pointer[time.Time]
	for range sockets {
		c := f.dial()
		fmt.Fprintf(c, upgradeHead, "/")
		if resp := c.response("GET"); resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp.StatusCode)
		}
		expect(t, c.br, "\x81\x02hi")
		go func() {
			rest, err := io.ReadAll(c.br)
			if string(rest) != "\x88\x02\x03\xe9" || err != nil {
				t.Errorf("the last of a WebSocket: %q, %v", rest, err)
			}
			ends <- time.Since(*begun.Load())
			c.Close()
		}()
	}
	now := time.Now()
	begun.Store(&now)
	f.stop()
	took := time.Since(now)
	var all []time.Duration
	for range sockets {
		all = append(all, <-ends)
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
