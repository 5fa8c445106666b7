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
	mu    sync.Mutex             // guards the following
	conns map[net.Conn]*loggedIn // those that are open
}

// loggedIn is who has logged in on a connection, if anybody has.
type loggedIn struct {
	begun bool
	name  string
}

type connKey struct{}

// serveLogins starts one with a front before it.
func serveLogins(t *testing.T, change ...func(*Config)) (*loginSite, *front) {
	t.Helper()
	s := &loginSite{conns: map[net.Conn]*loggedIn{}}
	srv := httptest.NewUnstartedServer(s)
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.conns[c] = &loggedIn{}
		case http.StateClosed:
			delete(s.conns, c)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return s, serveTo(t, nil, srv.URL, change...)
}

// connections returns how many are open on which somebody has logged in.
func (s *loginSite) connections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, who := range s.conns {
		if who.name != "" {
			n++
		}
	}
	return n
}

func (s *loginSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	who := s.conns[r.Context().Value(connKey{}).(net.Conn)]
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	name, answers := strings.CutPrefix(token, "answer-of-")
	switch {
	case token == "hello":
		who.begun = true
		w.Header().Set("WWW-Authenticate", scheme+" challenge")
		w.WriteHeader(http.StatusUnauthorized)
		return
	case answers && who.begun:
		who.name = name
	}
	if who.name == "" {
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
	fmt.Fprintf(w, "you are %s", who.name)
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
			both := map[string]*conn{"alice": alice, "ben": ben}
			stranger := func() {
				t.Helper()
				for _, request := range []string{"GET /", "POST /", "GET /long", "POST /long"} {
					method, path, _ := strings.Cut(request, " ")
					equal(t, "a stranger who sends "+request, f.dial().login(method, path, ""), "401 ")
				}
			}
			for name, c := range both { // at once
				equal(t, name+" begins", c.login("GET", "/", scheme+" hello"), "401 ")
			}
			stranger()
			for name, c := range both {
				equal(t, name+" logs in", c.login("GET", "/", scheme+" answer-of-"+name), "200 you are "+name)
			}
			stranger()
			for name, c := range both {
				for _, method := range []string{"GET", "POST", "GET"} {
					equal(t, name+": "+method, c.login(method, "/", ""), "200 you are "+name)
				}
				equal(t, name+": HEAD", c.login("HEAD", "/", ""), "200 ")
				equal(t, name+": a long answer", c.login("GET", "/long", ""), "200 you are "+name)
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
	equal(t, "a login", c.login("GET", "/", "NTLM answer-of-alice"), "401 ")
	for range 3 {
		equal(t, "who comes next by it", c.login("GET", "/", ""), "401 ")
	}
}
