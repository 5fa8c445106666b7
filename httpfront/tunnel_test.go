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
	h := resp.Header
	got := fmt.Sprint(resp.StatusCode, h["Connection"], h["Upgrade"], h["Sec-Websocket-Accept"], h["X-Hop"], h["Content-Length"])
	equal(t, "the answer", got, "101 [Upgrade] [websocket] [k] [] []")
	expect(t, c.br, "hello one ")
	for range 3 {
		io.WriteString(c, strings.Repeat("x", 50000))
		expect(t, c.br, strings.Repeat("x", 50000))
	}
	c.CloseWrite()
	c.ends()
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
	c := serveTo(t, nil, socketOrigin(t)).dial()
	for range 2 {
		fmt.Fprintf(c, upgradeHead, "/refuse")
		equal(t, "the answer", c.read("GET").is(t, 403).body, "no")
	}
}

func TestUpgradesThatAreNoneOfOurs(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t))
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n",
	} {
		f.dial().ask("GET", raw).is(t, 200) // a plain request at the origin
	}
}

func TestWaitingVisitorsGetNoUpgrade(t *testing.T) {
	f := serveTo(t, fakeRooms{room: newRoom(never)}, socketOrigin(t))
	_, resp := f.upgrade("/")
	equal(t, "the answer", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get(stateField)), "200 waiting")
}

func TestUpgradesCarryThePass(t *testing.T) {
	f := serveTo(t, fakeRooms{room: newRoom(letIn)}, socketOrigin(t))
	for path, want := range map[string]int{"/": 101, "/refuse": 403} {
		_, resp := f.upgrade(path)
		equal(t, "the code for "+path, resp.StatusCode, want)
		if k := resp.Cookies(); len(k) != 1 || k[0].Name != "ropeline" {
			t.Errorf("%s: got %v, want one pass", path, k)
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
	c.ends()
	if d := time.Since(quiet); d < idle/2 || d > 4*time.Second {
		t.Errorf("ended after %v of silence, want about %v", d, idle)
	}
}

func TestTunnelsAreBounded(t *testing.T) {
	f := serveTo(t, nil, socketOrigin(t), func(c *Config) { c.Limits.Upstream.Tunnels = 1 })
	for _, want := range []int{101, 503} {
		_, resp := f.upgrade("/")
		equal(t, "the code", resp.StatusCode, want)
	}
}

// TestVisitorsWhoLeaveDuringAnUpgrade go away before the origin agrees, so that
// its answer cannot be written. Nothing of them may be left.
func TestVisitorsWhoLeaveDuringAnUpgrade(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	f := serveTo(t, nil, httpOrigin(t, func(int, *http.Request) (string, bool) {
		asked <- struct{}{}
		<-gone
		return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true
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
	o, f := serveRaw(t, nil, okAnswer)
	f.dial().ask("GET", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, X-Gone, X-Forwarded-For\r\nUpgrade: websocket\r\nX-Gone: 1\r\n"+
		"Proxy-Authorization: 1\r\nKeep_Alive: 1\r\nRopeline-Proof: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Stays: 1\r\n\r\n")
	lacks(t, "the origin", o.head(), "X-Gone", "Proxy-", "Keep_Alive", "Ropeline-Proof", "6.6.6.6")
	has(t, "the origin", o.head(), "\r\nUpgrade: websocket\r\n", "\r\nX-Stays: 1\r\n", "\r\nX-Forwarded-For: 127.0.0.1\r\n")
}
