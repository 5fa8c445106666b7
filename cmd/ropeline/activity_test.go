package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// echoSocket serves a site that accepts upgrades and says everything back.
func echoSocket(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			io.WriteString(w, "the site")
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(c, rw)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return "http://" + l.Addr().String()
}

// TestAWebSocketKeepsItsPlace has one visitor talk in a WebSocket for several sessions,
// in a room for one, while another wants to get in. Once nothing is said any more the other
// one does, and what is said then ends the connection.
func TestAWebSocketKeepsItsPlace(t *testing.T) {
	inTestAll(t)
	t.Parallel()
	const session = 5 * time.Second
	p := serveNode(t, "one", "a", "--origin", echoSocket(t), "--data-dir", t.TempDir(), "--total-active-users", "1",
		"--session-duration", session.String(), "--refresh-interval", "1s", "--bucket-span", "1s")
	first := get(t, p.http, nil)
	if first.StatusCode != 200 || first.Header.Get("Ropeline-State") != "" {
		t.Fatalf("the first visitor gets %d, state %q", first.StatusCode, first.Header.Get("Ropeline-State"))
	}
	c, err := net.Dial("tcp", p.http)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	pass := first.Cookies()[0]
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCookie: %s=%s\r\n\r\n", "shop.example", pass.Name, pass.Value)
	br := bufio.NewReader(c)
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 101 {
		t.Fatalf("the upgrade gets %v, %v", resp, err)
	}

	var second []*http.Cookie
	comesIn := func() bool {
		resp := get(t, p.http, second)
		if k := resp.Cookies(); len(k) > 0 {
			second = k
		}
		return resp.Header.Get("Ropeline-State") != "waiting"
	}
	for begin := time.Now(); time.Since(begin) < 5*session/2; time.Sleep(session / 20) {
		io.WriteString(c, "x")
		if b, err := br.ReadByte(); b != 'x' || err != nil {
			t.Fatalf("after %v of talk: %q, %v", time.Since(begin), b, err)
		}
		if comesIn() {
			t.Fatalf("the second visitor got in after %v, while the first one talked", time.Since(begin))
		}
	}
	// The pass is that of the first answer: no other has reached the browser.
	if resp := get(t, p.http, first.Cookies()); resp.Header.Get("Ropeline-State") != "" {
		t.Errorf("the first visitor's next request: state %q", resp.Header.Get("Ropeline-State"))
	}

	for deadline := time.Now().Add(6 * session); !comesIn(); time.Sleep(session / 20) {
		if time.Now().After(deadline) {
			t.Fatal("the second visitor never gets in")
		}
	}
	io.WriteString(c, "x")
	if rest, err := io.ReadAll(br); len(rest) > 1 || err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("the first one's connection goes on after %q", rest)
		}
	}
}
