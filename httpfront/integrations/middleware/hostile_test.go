package middleware

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

// TestWhoClosesTheirHalfIsNotLetIn: net/http ends the context of such a request, and no
// node is heard then.
func TestWhoClosesTheirHalfIsNotLetIn(t *testing.T) {
	// The node has not answered when the program notices.
	n := newNode(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	g := newGate(Config{Nodes: []string{n.URL}, Open: true})
	srv := httptest.NewServer(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the site serves %s", r.Method)
	})))
	defer srv.Close()
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n",
	} {
		c := must.Do(net.Dial("tcp", srv.Listener.Addr().String()))
		must.Do(io.WriteString(c, request))
		must.OK(c.(*net.TCPConn).CloseWrite())
		if answer := must.Do(io.ReadAll(c)); !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") {
			t.Errorf("%.20q: %q", request, answer)
		}
		c.Close()
	}
}

// TestWhatNoNodeTakesIsRefused, and is not taken for nodes that are down.
func TestWhatNoNodeTakesIsRefused(t *testing.T) {
	n := newNode(t, admit)
	g := newGate(Config{Nodes: []string{n.URL}, Open: true})
	fit := Question{Method: "GET", Target: "/", Host: "shop.example", Scheme: "http", For: "192.0.2.1"}
	many := http.Header{}
	for i := range fieldsMax / 10 {
		many[fmt.Sprint("X-", i)] = []string{"b"}
	}
	for name, c := range map[string]struct {
		change func(q *Question)
		code   int
	}{
		"a name with a space":         {func(q *Question) { q.Header["X A"] = []string{"b"} }, 400},
		"a name of control bytes":     {func(q *Question) { q.Header["\x01"] = []string{"b"} }, 400},
		"a value with a control byte": {func(q *Question) { q.Header["X-A"] = []string{"b", "\x01"} }, 400},
		"a value with DEL":            {func(q *Question) { q.Header["Cookie"] = []string{"a=\x7f"} }, 400},
		"a value with a line break":   {func(q *Question) { q.Header["X-A"] = []string{"b\r\nX-B: c"} }, 400},
		"such a path":                 {func(q *Question) { q.Target = "/\x01" }, 400},
		"a path that is a host":       {func(q *Question) { q.Target = "//shop.example/tickets" }, 400},
		"such a method":               {func(q *Question) { q.Method = "G\nT" }, 400},
		"such a host":                 {func(q *Question) { q.Host = "shop\x00.example" }, 400},
		"a large field":               {func(q *Question) { q.Header["X-A"] = []string{strings.Repeat("b", fieldsMax)} }, 431},
		"a long path":                 {func(q *Question) { q.Target = "/" + strings.Repeat("b", fieldsMax) }, 431},
		"many fields":                 {func(q *Question) { q.Header = many }, 431},
	} {
		q := fit
		q.Header = http.Header{}
		c.change(&q)
		v := g.Ask(t.Context(), q)
		if v.Admitted || v.Code != c.code || v.Header.Get("Ropeline-State") != "refused" || len(v.Body) == 0 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if asked := n.asked(); len(asked) != 0 {
		t.Errorf("the node was asked %d times", len(asked))
	}
	fit.Header = http.Header{"X-A": {"\xff\t"}}
	if v := g.Ask(t.Context(), fit); !v.Admitted || v.Cookie == "" {
		t.Errorf("of what a field may hold: %+v", v)
	}
}

// TestNobodyChoosesTheirRoom by a field that a proxy in front passes on.
func TestNobodyChoosesTheirRoom(t *testing.T) {
	for _, trusts := range []bool{false, true} {
		n := newNode(t, admit)
		r := get("http://shop.example/", "X-Forwarded-Host", "free.example", "X-Forwarded-For", "192.0.2.9")
		visit(newGate(Config{Nodes: []string{n.URL}, TrustForwarded: trusts}), func(_ http.ResponseWriter, r *http.Request) {
			if r.Host != "shop.example" {
				t.Errorf("trusting %v: the site serves %s", trusts, r.Host)
			}
		}, r)
		expectFields(t, fmt.Sprint("to the node, trusting ", trusts), n.asked()[0].Header, "X-Forwarded-Host", "shop.example")
	}
}
