package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// socketOrigin accepts every upgrade, greets in the same packet as its answer,
// and then echoes.
func socketOrigin(t *testing.T) string {
	return tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if req.Header.Get("Upgrade") == "" {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				continue
			}
			if req.URL.Path == "/refuse" {
				io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
				continue
			}
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nUpgrade: %s\r\nSec-WebSocket-Accept: %s\r\nContent-Length: 5\r\n\r\nhello ",
				req.Header.Get("Upgrade"), req.Header.Get("Sec-WebSocket-Key"))
			io.Copy(c, br)
			return
		}
	})
}

const upgradeHead = "GET %s HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\nCookie: ropeline=x\r\n\r\n"

// upgrade asks for a tunnel on a connection of its own, and returns what is answered.
func (f *front) upgrade(path string) (*conn, *http.Response) {
	f.tb.Helper()
	c := f.dial()
	fmt.Fprintf(c, upgradeHead, path)
	return c, c.response("GET")
}

// tunnelsEnd waits until all tunnels are given back.
func (f *front) tunnelsEnd() {
	f.tb.Helper()
	waitFor(f.tb, "the tunnels to be given back", func() bool {
		s := f.front.Origins()[0].Origins[0]
		return s.Tunnels == 0 && s.Active == 0
	})
}

func TestWebSocket(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	c := f.dial()
	// The first bytes come in one packet with the head.
	fmt.Fprintf(c, upgradeHead+"one ", "/")
	resp := c.response("GET")
	if resp.StatusCode != 101 || resp.Header.Get("Connection") != "Upgrade" || resp.Header.Get("Upgrade") != "websocket" ||
		resp.Header.Get("Sec-WebSocket-Accept") != "k" || resp.Header.Get("X-Hop") != "" || resp.Header.Get("Content-Length") != "" {
		t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
	}
	expect(t, c.br, "hello one ")
	for range 3 {
		io.WriteString(c, strings.Repeat("x", 50000))
		expect(t, c.br, strings.Repeat("x", 50000))
	}
	c.CloseWrite()
	if rest, err := io.ReadAll(c.br); len(rest) != 0 || err != nil {
		t.Errorf("after the client has ended: got %q, %v", rest, err)
	}
	f.tunnelsEnd()
}

func expect(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("got %.80q, %v, want %.80q", got[:n], err, want)
	}
}

func TestRefusedUpgrade(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	c := f.dial()
	for range 2 {
		fmt.Fprintf(c, upgradeHead, "/refuse")
		if got := c.read("GET"); got.StatusCode != 403 || got.body != "no" {
			t.Fatalf("got %d %q", got.StatusCode, got.body)
		}
	}
}

func TestUpgradesThatAreNoneOfOurs(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
	} {
		c := f.dial()
		io.WriteString(c, raw)
		if resp := c.response("GET"); resp.StatusCode != 200 {
			t.Errorf("%q: got %d, want a plain request at the origin", raw, resp.StatusCode)
		}
	}
}

func TestWaitingVisitorsGetNoUpgrade(t *testing.T) {
	f := serveTo(t, fakeRooms{room: newRoom(never)}, socketOrigin(t))
	if _, resp := f.upgrade("/"); resp.StatusCode != 200 || resp.Header.Get("Ropeline-State") != "waiting" {
		t.Errorf("got %d %v", resp.StatusCode, resp.Header)
	}
}

func TestUpgradesCarryThePass(t *testing.T) {
	f := serveTo(t, fakeRooms{room: newRoom(letIn)}, socketOrigin(t))
	for path, want := range map[string]int{"/": 101, "/refuse": 403} {
		_, resp := f.upgrade(path)
		if k := resp.Cookies(); resp.StatusCode != want || len(k) != 1 || k[0].Name != "ropeline" {
			t.Errorf("%s: got %d %v, want %d and one pass", path, resp.StatusCode, k, want)
		}
	}
}

func TestIdleTunnelsEnd(t *testing.T) {
	t.Parallel()
	const idle = 500 * time.Millisecond
	f := serveTo(t, nil, socketOrigin(t), func(c *Config) { c.Timeouts.Tunnel = idle })
	c := upgraded(t, f, "/")
	// Traffic in either direction keeps it open for longer than the limit.
	start := time.Now()
	for time.Since(start) < 3*idle {
		time.Sleep(idle / 5)
		io.WriteString(c, "x")
		expect(t, c.br, "x")
	}
	quiet := time.Now()
	if _, err := c.br.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	if d := time.Since(quiet); d < idle/2 || d > 4*time.Second {
		t.Errorf("ended after %v of silence, want about %v", d, idle)
	}
}

func TestTunnelsAreBounded(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t), func(c *Config) { c.Limits.Upstream.Tunnels = 1 })
	for _, want := range []int{101, 503} {
		if _, resp := f.upgrade("/"); resp.StatusCode != want {
			t.Errorf("got %d, want %d", resp.StatusCode, want)
		}
	}
}

// TestVisitorsWhoLeaveDuringAnUpgrade go away before the origin agrees, so that
// its answer cannot be written. Nothing of them may be left.
func TestVisitorsWhoLeaveDuringAnUpgrade(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	f := serveTo(t, nil, tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		asked <- struct{}{}
		<-gone
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(io.Discard, br)
	}))
	for range 3 {
		c := f.dial()
		fmt.Fprintf(c, upgradeHead, "/")
		<-asked
		c.SetLinger(0) // a reset, as from a browser that was closed
		c.Close()
		gone <- struct{}{}
	}
	f.tunnelsEnd()
}

func TestShutdownEndsTunnels(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	c := upgraded(t, f, "/")
	f.stop()
	if _, err := c.br.ReadByte(); err == nil {
		t.Error("the tunnel is still open")
	}
}

// TestUpgradesCarryNoFieldsOfTheConnection looks at the head that the origin gets.
func TestUpgradesCarryNoFieldsOfTheConnection(t *testing.T) {
	o := newRawOrigin(t, okAnswer)
	f := serveTo(t, nil, o.url)
	f.dial().ask("GET", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, X-Gone, X-Forwarded-For\r\nUpgrade: websocket\r\nX-Gone: 1\r\n"+
		"Proxy-Authorization: 1\r\nKeep_Alive: 1\r\nRopeline-Proof: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Stays: 1\r\n\r\n")
	head := o.head()
	for _, gone := range []string{"X-Gone", "Proxy-", "Keep_Alive", "Ropeline-Proof", "6.6.6.6"} {
		if strings.Contains(head, gone) {
			t.Errorf("%s reached the origin: %q", gone, head)
		}
	}
	for _, stays := range []string{"\r\nUpgrade: websocket\r\n", "\r\nX-Stays: 1\r\n", "\r\nX-Forwarded-For: 127.0.0.1\r\n"} {
		if !strings.Contains(head, stays) {
			t.Errorf("%q is missing: %q", stays, head)
		}
	}
}
