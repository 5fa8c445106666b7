package httpfront

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestWhoLeavesFreesThePlace: the only place at the origin comes free when its client closes the connection, however long the
// origin would work, and the origin has not failed.
func TestWhoLeavesFreesThePlace(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	const asks = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, tt := range map[string]struct {
		asks   string
		begins string // what the origin says before it works on
		status string // in the access log
	}{
		"before the answer":          {asks, "", `" 499 `},
		"after a body":               {"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", "", `" 499 `},
		"with the next request sent": {asks + plainGet, "", `" 499 `},
		"an event stream":            {asks, "data: 1\n\n", `" 200 `},
		"over TLS":                   {asks, "", `" 499 `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, gone := make(chan struct{}), make(chan struct{})
			w := &witness{}
			f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/slow" {
					return
				}
				io.Copy(io.Discard, r.Body)
				if tt.begins != "" {
					io.WriteString(w, tt.begins)
					w.(http.Flusher).Flush()
				}
				arrived <- struct{}{}
				<-r.Context().Done()
				close(gone)
			}), w.watch, func(c *Config) {
				c.Limits.Upstream.Conns = 1
				if name == "over TLS" {
					c.TLS = &tls.Config{Certificates: cert.TLS.Certificates}
				}
			})
			var c net.Conn = f.dial()
			if name == "over TLS" {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is our own
			}
			io.WriteString(c, tt.asks)
			<-arrived
			if tt.begins != "" {
				expect(t, c, "HTTP/1.1 200 ")
			}
			c.Close()
			<-gone
			_, line := w.next(t, 1)
			has(t, "the access log", line, tt.status)
			waitFor(t, "the place to be free", func() bool { return f.active() == 0 })
			if o := f.front.Origins()[0].Origins[0]; o.Failures != 0 || o.State != "in" {
				t.Errorf("the origin is said to have failed: %+v", o)
			}
		})
	}
}

// TestWhoStaysIsServed: an answer that takes longer than several looks arrives, and so does one after it.
func TestWhoStaysIsServed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		io.WriteString(w, "ok")
	}))
	c := f.dial()
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"+plainGet)
	left := f.dial() // who leaves meanwhile shows that all have been looked at
	io.WriteString(left, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	waitFor(t, "both requests to be at the origin", func() bool { return f.active() == 2 })
	left.Close()
	waitFor(t, "one of them to be ended", func() bool { return f.active() == 1 })
	close(release)
	for range 2 {
		equal(t, "the answer", c.read("GET").is(t, 200).body, "ok")
	}
}
