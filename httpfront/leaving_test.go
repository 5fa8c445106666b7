package httpfront

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhoLeavesFreesThePlace: the only place at the origin comes free when its client closes the connection, however long the
// origin would work, and the origin has not failed.
func TestWhoLeavesFreesThePlace(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	plain := func(f *front) net.Conn { return f.dial() }
	for name, tt := range map[string]struct {
		dial   func(*front) net.Conn
		asks   string
		begins string // what the origin says before it works on
		status string // in the access log
	}{
		"before the answer": {plain, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", "", `" 499 `},
		"after a body":      {plain, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", "", `" 499 `},
		"with the next request sent": {
			plain, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "", `" 499 `,
		},
		"an event stream": {plain, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", "data: 1\n\n", `" 200 `},
		"over TLS": {func(f *front) net.Conn {
			return tls.Client(f.dial(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is our own
		}, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", "", `" 499 `},
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
			c := tt.dial(f)
			io.WriteString(c, tt.asks)
			<-arrived
			if tt.begins != "" {
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			c.Close()
			<-gone
			if _, line := w.next(t, 1); !strings.Contains(line, tt.status) {
				t.Errorf("logged as %s", line)
			}
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
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
	left := f.dial() // who leaves meanwhile shows that all have been looked at
	io.WriteString(left, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	waitFor(t, "both requests to be at the origin", func() bool { return f.active() == 2 })
	left.Close()
	waitFor(t, "one of them to be ended", func() bool { return f.active() == 1 })
	close(release)
	for range 2 {
		if got := c.read("GET"); got.StatusCode != 200 || got.body != "ok" {
			t.Errorf("got %d, %q", got.StatusCode, got.body)
		}
	}
}
