package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodeOf starts a node of a file behind a site that says its name, for which $ORIGIN
// stands in the file.
func nodeOf(t *testing.T, file string) *running {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "the site") }))
	t.Cleanup(site.Close)
	dir := t.TempDir()
	name := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(file, "$ORIGIN", site.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serveNode(t, "a", "one", "--config", name, "--data-dir", filepath.Join(dir, "data"))
	return p
}

// askRaw sends a request for a target as it is written; without a host, of HTTP/1.0.
func askRaw(t *testing.T, addr, host, target string) (*http.Response, string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if host == "" {
		fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", target)
	} else {
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// TestRoutesHoldWhatTheySay: however a route is written, requests in any spelling are
// found there.
func TestRoutesHoldWhatTheySay(t *testing.T) {
	t.Parallel()
	p := nodeOf(t, `
origin: $ORIGIN
queue-all: true
rooms:
  - room: shop
    host: Shop.example.
    path: /x//y
    cookie-suffix: shop
    additional-routes:
      - path: /caf%C3%A9
      - host: two.example.
        path: /größe
`)
	for _, c := range []struct {
		host, target string
		waits        bool
	}{
		{"shop.example", "/x/y", true},
		{"SHOP.example.:80", "/x//y/z", true},
		{"shop.example", "/x", false},
		{"any.example", "/caf%C3%A9", true},
		{"any.example", "/café/menu", true},
		{"two.example", "/gr%c3%b6%C3%9Fe", true},
		{"two.example.", "/größe", true},
		{"three.example", "/größe", false},
	} {
		resp, body := askRaw(t, p.http, c.host, c.target)
		if waits := resp.Header.Get("Ropeline-State") == "waiting"; waits != c.waits || !waits && body != "the site" {
			t.Errorf("%s%s: waits %v: %d %.200q", c.host, c.target, waits, resp.StatusCode, body)
		}
	}
}

// TestHostsThatNoRoomIsFor: they pass unless the operator refuses them, and a node of which
// every room names a host says so.
func TestHostsThatNoRoomIsFor(t *testing.T) {
	t.Parallel()
	const warning = "--unknown-hosts refuse keeps them out"
	for name, c := range map[string]struct {
		settings string
		warns    bool
		other    int // status for hosts that no room is for
	}{
		"by default":            {"host: shop.example", true, 200},
		"refused":               {"host: shop.example\nunknown-hosts: refuse", false, 421},
		"a room for every host": {"unknown-hosts: refuse\nrooms:\n  - {room: a, host: shop.example, cookie-suffix: a}\n  - {room: b, path: /b, cookie-suffix: b}", false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			p := nodeOf(t, "origin: $ORIGIN\nqueue-all: true\n"+c.settings+"\n")
			if resp, _ := askRaw(t, p.http, "shop.example", "/"); resp.Header.Get("Ropeline-State") != "waiting" {
				t.Errorf("the room's host: got %d %v", resp.StatusCode, resp.Header)
			}
			for _, host := range []string{p.http, "www.shop.example", ""} {
				resp, body := askRaw(t, p.http, host, "/")
				if resp.StatusCode != c.other || c.other == 200 && body != "the site" || c.other == 421 && !strings.Contains(body, "not served here") {
					t.Errorf("host %q: got %d %q", host, resp.StatusCode, body)
				}
			}
			if warns := strings.Contains(p.Log(), warning); warns != c.warns {
				t.Errorf("warns: %v, want %v", warns, c.warns)
			}
		})
	}
}
