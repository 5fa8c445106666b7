package httpfront

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// loginSite takes who has logged in for whoever speaks on the connection, as sites with NTLM
// do.
type loginSite struct {
	mu    sync.Mutex // guards the following
	begun map[net.Conn]bool
	is    map[net.Conn]string
	open  map[net.Conn]bool
}

type connKey struct{}

// serveLogins starts one with a front before it.
func serveLogins(t *testing.T, change ...func(*Config)) (*loginSite, *front) {
	t.Helper()
	s := &loginSite{}
	srv := httptest.NewUnstartedServer(s)
	s.configure(srv.Config)
	srv.Start()
	t.Cleanup(srv.Close)
	return s, serveTo(t, nil, srv.URL, change...)
}

func (s *loginSite) configure(srv *http.Server) {
	s.begun, s.is, s.open = map[net.Conn]bool{}, map[net.Conn]string{}, map[net.Conn]bool{}
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.open[c] = true
		case http.StateClosed:
			delete(s.open, c)
		}
	}
}

// connections returns how many are open on which somebody has logged in.
func (s *loginSite) connections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.is {
		if s.open[c] {
			n++
		}
	}
	return n
}

func (s *loginSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	conn := r.Context().Value(connKey{}).(net.Conn)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	name, answers := strings.CutPrefix(token, "answer-of-")
	switch {
	case token == "hello":
		s.begun[conn] = true
		w.Header().Set("WWW-Authenticate", scheme+" challenge")
		w.WriteHeader(http.StatusUnauthorized)
		return
	case answers && s.begun[conn]:
		s.is[conn] = name
	}
	if s.is[conn] == "" {
		w.Header().Add("WWW-Authenticate", "Negotiate")
		w.Header().Add("WWW-Authenticate", "NTLM")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodHead { // as IIS: the length of the page that GET has
		w.Header().Set("Content-Length", "1293")
		return
	}
	if r.URL.Path == "/long" {
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "you are %s", s.is[conn])
}

// login sends a request, with credentials if there are any, and returns the code and what the
// site says.
func (c *conn) login(method, path, credentials string) string {
	c.tb.Helper()
	if credentials != "" {
		credentials = "Authorization: " + credentials + "\r\n"
	}
	body := ""
	if method == "POST" {
		body = "item"
		credentials += "Content-Length: 4\r\n"
	}
	got := c.ask(method, method+" "+path+" HTTP/1.1\r\nHost: intranet.example\r\n"+credentials+"\r\n"+body)
	return fmt.Sprint(got.StatusCode, " ", got.body)
}

// TestALoginOfAConnectionIsItsClients: nobody else is taken for who has logged in.
func TestALoginOfAConnectionIsItsClients(t *testing.T) {
	for _, scheme := range []string{"NTLM", "Negotiate", "ntlm"} {
		t.Run(scheme, func(t *testing.T) {
			s, f := serveLogins(t)
			alice, ben := f.dial(), f.dial()
			stranger := func() {
				t.Helper()
				for _, path := range []string{"/", "/long"} {
					for _, method := range []string{"GET", "POST"} {
						if got := f.dial().login(method, path, ""); got != "401 " {
							t.Errorf("a stranger who sends %s %s gets %q", method, path, got)
						}
					}
				}
			}
			// Both at once.
			for _, c := range []*conn{alice, ben} {
				if got := c.login("GET", "/", scheme+" hello"); got != "401 " {
					t.Fatalf("begun: %q", got)
				}
			}
			stranger()
			for name, c := range map[string]*conn{"alice": alice, "ben": ben} {
				if got := c.login("GET", "/", scheme+" answer-of-"+name); got != "200 you are "+name {
					t.Fatalf("%s logs in: %q", name, got)
				}
			}
			stranger()
			for name, c := range map[string]*conn{"alice": alice, "ben": ben} {
				for _, method := range []string{"GET", "POST", "GET"} {
					if got := c.login(method, "/", ""); got != "200 you are "+name {
						t.Errorf("%s, %s: %q", name, method, got)
					}
				}
				if got := c.login("HEAD", "/", ""); got != "200 " {
					t.Errorf("%s, HEAD: %q", name, got)
				}
				if got := c.login("GET", "/long", ""); got != "200 you are "+name {
					t.Errorf("%s, a long answer: %q", name, got)
				}
			}
			stranger()
			alice.Close()
			ben.Close()
			waitFor(t, "the connections to the site are closed with those of their clients", func() bool { return s.connections() == 0 })
			stranger()
		})
	}
}

// TestALoginThroughAProxyIsNobodys: its connection brings requests of many.
func TestALoginThroughAProxyIsNobodys(t *testing.T) {
	_, f := serveLogins(t, trustLoopback)
	c := f.dial()
	c.login("GET", "/", "NTLM hello")
	if got := c.login("GET", "/", "NTLM answer-of-alice"); got != "401 " {
		t.Errorf("a login: %q", got)
	}
	for range 3 {
		if got := c.login("GET", "/", ""); got != "401 " {
			t.Errorf("who comes next by it: %q", got)
		}
	}
}
