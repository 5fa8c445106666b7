package main

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// within has a node start with so many descriptors.
func (p *running) within(descriptors string) {
	p.shell = []string{"bash", "-c", `ulimit -n ` + descriptors + `; exec "$0" "$@"`}
}

// TestFewDescriptorsAndManyClients holds more connections of visitors than a node has descriptors for: whatever else it
// opens is opened meanwhile.
func TestFewDescriptorsAndManyClients(t *testing.T) {
	t.Parallel()
	const descriptors, clients = 256, 400
	lines := filepath.Join(t.TempDir(), "access")
	p := newRunning(t, "one", "a", freeAddress(t), "--origin", startOrigin(t), "--data-dir", t.TempDir(), "--access-log", lines,
		"--max-requests-per-origin-connection", "1", "--head-timeout", "5m", "--idle-timeout", "5m")
	p.within("256")
	p.start()
	p.endWithTest()
	p.await("is ready", 20*time.Second, ready)
	if log := p.Log(); !strings.Contains(log, "limit=256") || !strings.Contains(log, "max_connections=85") {
		t.Errorf("the log does not say what holds: %s", log)
	}

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	visitor := &http.Client{Jar: jar, Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 30 * time.Second}
	defer visitor.CloseIdleConnections()
	visit := func() (reused bool) {
		t.Helper()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(is httptrace.GotConnInfo) { reused = is.Reused }})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.http+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "Welcome to the shop") {
			t.Fatalf("a visitor who is on the site gets %d: %s", resp.StatusCode, body)
		}
		return reused
	}
	visit()

	held := make([]net.Conn, clients)
	for i := range held {
		c, err := net.Dial("tcp", p.http)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held[i] = c
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.example\r\n") // and no more
	}
	stranger := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	await(t, "no more connections are taken", func() bool {
		resp, err := stranger.Get("http://" + p.http + "/")
		if err != nil {
			return true // more are refused than are told so
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})

	for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics"} {
		resp, err := stranger.Get("http://" + p.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if _, got := p.metrics(); got["process_max_fds"] != descriptors || got["process_open_fds"] >= descriptors || got["ropeline_connections_max"] != 85 {
		t.Errorf("%v descriptors of %v are open, with at most %v visitors", got["process_open_fds"], got["process_max_fds"], got["ropeline_connections_max"])
	}
	change, err := http.NewRequest(http.MethodPatch, "http://"+p.admin+"/api/v1/rooms/default", strings.NewReader(`{"total_active_users": 60}`))
	if err != nil {
		t.Fatal(err)
	}
	change.Header.Set("Content-Type", "application/json")
	resp, err := stranger.Do(change)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Errorf("a change that the store keeps: %d %s", resp.StatusCode, body)
	}
	if err := os.Rename(lines, lines+".1"); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGHUP)
	await(t, "a visitor is served on a connection that was kept, and the access log, opened again, tells of it", func() bool {
		if !visit() {
			t.Fatal("the visitor's connection was not kept")
		}
		text, _ := os.ReadFile(lines)
		return strings.Contains(string(text), "GET / ")
	})
	if strings.Contains(p.Log(), "no connection can be accepted") || strings.Contains(p.Log(), "too many open files") {
		t.Error("descriptors ran out")
	}
	for _, c := range held { // a head that was begun may end while the node stops
		c.Close()
	}
	if code := p.stop(); code != 0 {
		t.Errorf("ended with %d", code)
	}
}

// TestTooFewDescriptors: a node does not start to be of no use, and says what to do.
func TestTooFewDescriptors(t *testing.T) {
	t.Parallel()
	p := newRunning(t, "one", "a", freeAddress(t), "--origin", startOrigin(t), "--data-dir", t.TempDir())
	p.within("64")
	p.start()
	p.endWithTest()
	select {
	case <-p.Ended():
	case <-time.After(30 * time.Second):
		t.Fatal("it runs")
	}
	if log := p.Log(); p.Code() != 1 || !strings.Contains(log, "the limit of open files is 64") || !strings.Contains(log, "LimitNOFILE") {
		t.Errorf("it ends with %d and says %s", p.Code(), log)
	}
}
