package main

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// get sends one request as a new browser, or as one with these cookies.
func get(t *testing.T, address string, cookies []*http.Cookie) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.example" // a pass is bound to the site's name, not to a node's address
	for _, c := range cookies {
		req.AddCookie(c)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

// getReady asks until the node answers anything but "not ready".
func getReady(t *testing.T, address string, cookies []*http.Cookie) *http.Response {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "shop.example"
		for _, c := range cookies {
			req.AddCookie(c)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // not listening yet
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			return resp
		}
	}
	t.Fatal("the node never answered")
	return nil
}

// getIn asks as a browser in the queue does, with the pass that it got, until the node lets
// the visitor in.
func getIn(t *testing.T, address string) *http.Response {
	t.Helper()
	var pass []*http.Cookie
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp := get(t, address, pass)
		if resp.Header.Get("Ropeline-State") == "" {
			return resp
		}
		if given := resp.Cookies(); given != nil {
			pass = given
		}
	}
	t.Fatal("the visitor was never let in")
	return nil
}

// moveMesh gives a stopped node another mesh port.
func (p *running) moveMesh(address string) {
	for i, a := range p.args {
		if a == "--mesh" {
			p.args[i+1] = address
		}
	}
	p.mesh = address
}
