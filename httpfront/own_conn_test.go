package httpfront

import (
	"bufio"
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

// loginClient is a connection of somebody.
type loginClient struct {
	t    *testing.T
	conn net.Conn
	br   *bufio.Reader
}

func (f *front) asSomebody(t *testing.T) *loginClient {
	t.Helper()
	conn := f.dial()
	return &loginClient{t, conn, bufio.NewReader(conn)}
}

// ask sends a request, with credentials if there are any, and returns the code and what the
// site says.
func (c *loginClient) ask(method, path, credentials string) string {
	c.t.Helper()
	if credentials != "" {
		credentials = "Authorization: " + credentials + "\r\n"
	}
	body := ""
	if method == "POST" {
		body = "item"
		credentials += "Content-Length: 4\r\n"
	}
	fmt.Fprintf(c.conn, "%s %s HTTP/1.1\r\nHost: intranet.example\r\n%s\r\n%s", method, path, credentials, body)
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(text))
}

// TestALoginOfAConnectionIsItsClients: nobody else is taken for who has logged in.
func TestALoginOfAConnectionIsItsClients(t *testing.T) {
	for _, scheme := range []string{"NTLM", "Negotiate", "ntlm"} {
		t.Run(scheme, func(t *testing.T) {
			s, f := serveLogins(t)
			alice, ben := f.asSomebody(t), f.asSomebody(t)
			stranger := func() {
				t.Helper()
				for _, path := range []string{"/", "/long"} {
					for _, method := range []string{"GET", "POST"} {
						if got := f.asSomebody(t).ask(method, path, ""); got != "401 " {
							t.Errorf("a stranger who sends %s %s gets %q", method, path, got)
						}
					}
				}
			}
			// Both at once.
			for _, c := range []*loginClient{alice, ben} {
				if got := c.ask("GET", "/", scheme+" hello"); got != "401 " {
					t.Fatalf("begun: %q", got)
				}
			}
			stranger()
			for name, c := range map[string]*loginClient{"alice": alice, "ben": ben} {
				if got := c.ask("GET", "/", scheme+" answer-of-"+name); got != "200 you are "+name {
					t.Fatalf("%s logs in: %q", name, got)
				}
			}
			stranger()
			for name, c := range map[string]*loginClient{"alice": alice, "ben": ben} {
				for _, method := range []string{"GET", "POST", "GET"} {
					if got := c.ask(method, "/", ""); got != "200 you are "+name {
						t.Errorf("%s, %s: %q", name, method, got)
					}
				}
				if got := c.ask("HEAD", "/", ""); got != "200 " {
					t.Errorf("%s, HEAD: %q", name, got)
				}
				if got := c.ask("GET", "/long", ""); got != "200 you are "+name {
					t.Errorf("%s, a long answer: %q", name, got)
				}
			}
			stranger()
			alice.conn.Close()
			ben.conn.Close()
			waitFor(t, "the connections to the site are closed with those of their clients", func() bool { return s.connections() == 0 })
			stranger()
		})
	}
}

// TestALoginThroughAProxyIsNobodys: its connection brings requests of many.
func TestALoginThroughAProxyIsNobodys(t *testing.T) {
	_, f := serveLogins(t, func(c *Config) { c.TrustedProxies = loopback })
	c := f.asSomebody(t)
	c.ask("GET", "/", "NTLM hello")
	if got := c.ask("GET", "/", "NTLM answer-of-alice"); got != "401 " {
		t.Errorf("a login: %q", got)
	}
	for range 3 {
		if got := c.ask("GET", "/", ""); got != "401 " {
			t.Errorf("who comes next by it: %q", got)
		}
	}
}
