package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// TestANodeTellsOfCrowdsAndSharedPasses: what the file says of them is done, and whoever
// reads the status sees how often.
func TestANodeTellsOfCrowdsAndSharedPasses(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "the site")
	}))
	defer origin.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "ropeline.yaml")
	if err := os.WriteFile(file, []byte(`
origin: `+origin.URL+`
trusted-proxies: 127.0.0.1
rooms:
  - room: tickets
    path: /tickets
    cookie-suffix: tickets
    queue-all: true
    max-new-visitors-per-address: 2
  - room: shop
    shared-passes: queue
    addresses-per-pass: 1
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serveNode(t, "a", "one", "--config", file, "--data-dir", filepath.Join(dir, "data"))

	for i, want := range []int{200, 200, 429, 429} {
		resp, body := visit(t, "http://"+p.http+"/tickets", "X-Forwarded-For", "198.51.100.7")
		if resp.StatusCode != want || (len(resp.Cookies()) == 0) != (want == 429) || resp.Header.Get("Retry-After") == "" {
			t.Errorf("visitor %d of one address: %s, cookies %v, Retry-After %q, want %d: %.200s",
				i+1, resp.Status, resp.Cookies(), resp.Header.Get("Retry-After"), want, body)
		}
	}
	if resp, _ := visit(t, "http://"+p.http+"/tickets", "X-Forwarded-For", "198.51.100.8"); resp.StatusCode != 200 {
		t.Errorf("a visitor of another address: %s", resp.Status)
	}

	resp, body := visit(t, "http://"+p.http+"/", "X-Forwarded-For", "198.51.100.1")
	if body != "the site" || len(resp.Cookies()) != 1 {
		t.Fatalf("first visitor of the shop: %s, cookies %v: %.200s", resp.Status, resp.Cookies(), body)
	}
	pass := resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	for _, tt := range []struct {
		from string
		own  bool // takes a place of their own, as somebody new
	}{{"198.51.100.1", false}, {"198.51.100.2", true}, {"198.51.100.1", false}} {
		resp, body := visit(t, "http://"+p.http+"/", "X-Forwarded-For", tt.from, "Cookie", pass)
		if own := len(resp.Cookies()) == 1; body != "the site" || own != tt.own {
			t.Errorf("the pass from %s: a place of their own %v, want %v: %.200s", tt.from, own, tt.own, body)
		}
	}

	p.await("has counted for whom the line was crowded, and who shares", 10*time.Second, func(s node.Status) bool {
		crowded, shared := map[string]uint64{}, map[string]uint64{}
		for _, r := range s.Rooms {
			crowded[r.Name], shared[r.Name] = r.Crowded, r.Shared
		}
		return crowded["tickets"] == 2 && shared["tickets"] == 0 && crowded["shop"] == 0 && shared["shop"] == 1
	})
	for _, want := range []string{"room=tickets network=198.51.100.0/24 limit=2", "room=shop network=198.51.100.0/24 limit=1"} {
		if !strings.Contains(p.Log(), want) {
			t.Errorf("the log does not say %q:\n%s", want, p.Log())
		}
	}
	if strings.Contains(p.Log(), "198.51.100.7") {
		t.Errorf("the log tells an address:\n%s", p.Log())
	}
}
