package middleware

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// revoker lets visitors in, and answers /revoke with a code.
func revoker(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/revoke":
			admit(w, r)
		case code == http.StatusNoContent:
			says(code, "", "Set-Cookie", "ropeline=; Path=/; Max-Age=0")(w, r)
		default:
			w.WriteHeader(code)
		}
	}
}

// TestTheSiteEndsSessions, however it writes its answer, and visitors see nothing of it.
func TestTheSiteEndsSessions(t *testing.T) {
	n := newNode(t, revoker(http.StatusNoContent))
	g := n.gate()
	sites := map[string]http.HandlerFunc{
		"in a spelling of its own": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["cf-waiting-room-command"] = []string{"a, REVOKE"}
		},
	}
	for name, answer := range answers {
		sites[name] = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Ropeline-Command", "revoke")
			answer(w, r)
		}
	}
	for name, site := range sites {
		resp, _ := visit(g, site, get("http://shop.example/cart?a=b", "Cookie", "ropeline=waited; a=b"))
		expectFields(t, name, resp.Header, "Set-Cookie", "ropeline=; Path=/; Max-Age=0", "Ropeline-Command", "", "Cf-Waiting-Room-Command", "")
		asked := n.asked()
		if len(asked) != 2 || asked[1].Method != http.MethodPost || asked[1].URL.Path != "/revoke" {
			t.Fatalf("%s: the node was asked %d times", name, len(asked))
		}
		expectFields(t, name+", to the node", asked[1].Header, "Cookie", "ropeline=pass", "X-Forwarded-Host", "shop.example",
			"X-Forwarded-Proto", "http", "X-Forwarded-Uri", "/cart?a=b")
	}
}

// TestCommandsThatDoNotCount reach nobody either.
func TestCommandsThatDoNotCount(t *testing.T) {
	n := newNode(t, revoker(http.StatusForbidden))
	g := n.gate()
	for name, c := range map[string]struct {
		asked int
		site  http.HandlerFunc
	}{
		"one that nobody knows":  {1, says(200, "", "Ropeline-Command", "jump")},
		"one that is not wanted": {2, says(200, "", "Ropeline-Command", "revoke")},
		"a trailer": {1, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Ropeline-Command, X-Sum")
			io.WriteString(w, "x")
			w.Header().Set("Ropeline-Command", "revoke")
			w.Header().Set("X-Sum", "1")
		}},
		"a trailer that was not announced": {1, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"Ropeline-Command", "revoke")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		}},
	} {
		resp, _ := visit(g, c.site, get("/"))
		expectFields(t, name, resp.Header, "Set-Cookie", "ropeline=pass; Path=/", "Ropeline-Command", "")
		if _, ok := resp.Trailer["Ropeline-Command"]; ok {
			t.Errorf("%s: the visitor sees %v", name, resp.Trailer)
		}
		if strings.HasPrefix(name, "a trailer") {
			expectFields(t, name, resp.Trailer, "X-Sum", "1") // the site's own
		}
		if got := len(n.asked()); got != c.asked {
			t.Errorf("%s: the node was asked %d times, want %d", name, got, c.asked)
		}
	}
}

// TestTheNodeThatLetSomebodyInIsAskedFirst to end the session, and another one if it is gone.
func TestTheNodeThatLetSomebodyInIsAskedFirst(t *testing.T) {
	down := newNode(t, silence)
	bare := newNode(t, func(w http.ResponseWriter, r *http.Request) { // no pass of its own
		if r.URL.Path == "/revoke" {
			panic(http.ErrAbortHandler)
		}
	})
	other := newNode(t, revoker(http.StatusNoContent))
	g := newGate(Config{Nodes: []string{down.URL, bare.URL, other.URL}})
	q := Question{Method: "GET", Target: "/", Host: "shop.example", Scheme: "http", Header: http.Header{"Cookie": {"ropeline=mine"}}}
	v := g.Ask(t.Context(), q)
	if cookie, err := g.Revoke(t.Context(), q, v); !v.Admitted || err != nil || cookie != "ropeline=; Path=/; Max-Age=0" {
		t.Errorf("%+v, %q, %v", v, cookie, err)
	}
	var paths []string
	for _, n := range []*node{bare, other} {
		for _, r := range n.asked() {
			paths = append(paths, r.URL.Path+" "+r.Header.Get("Cookie"))
		}
	}
	if !slices.Equal(paths, []string{"/forward ropeline=mine", "/revoke ropeline=mine", "/revoke ropeline=mine"}) {
		t.Errorf("asked %q", paths)
	}
}

// TestPassesDoNotReachTheSite, which could leak them.
func TestPassesDoNotReachTheSite(t *testing.T) {
	n := newNode(t, admit)
	r := get("/")
	r.Header["Cookie"] = []string{"a=b; __Host-ropeline=secret", "ropeline_shop=secret", "c=d"}
	visit(n.gate(), func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Header["Cookie"]; !slices.Equal(got, []string{"a=b", "c=d"}) && !slices.Equal(got, []string{"a=b; c=d"}) {
			t.Errorf("the site gets the cookies %q", got)
		}
	}, r)
	if got := strings.Join(n.asked()[0].Header["Cookie"], "; "); strings.Count(got, "secret") != 2 {
		t.Errorf("the node gets the cookies %q", got)
	}
}

// TestOnlyWebSocketsAreUpgraded: a switch to any other protocol would carry requests past the
// node.
func TestOnlyWebSocketsAreUpgraded(t *testing.T) {
	for asked, want := range map[string]string{ // fields that are joined by " and "
		"websocket": "websocket", "WebSocket": "WebSocket", "h2c": "", "websocket, h2c": "", "h2c, websocket": "", "websocket and h2c": "", "TLS/1.3": "", "": "",
	} {
		r := get("http://shop.example/", "Connection", "Upgrade, HTTP2-Settings", "HTTP2-Settings", "AAMAAABkAAQAAP__")
		if asked != "" {
			r.Header["Upgrade"] = strings.Split(asked, " and ")
		}
		visit(newNode(t, admit).gate(), func(_ http.ResponseWriter, r *http.Request) {
			expectFields(t, fmt.Sprintf("%q, to the site", asked), r.Header, "Upgrade", want, "HTTP2-Settings", "")
		}, r)
	}
}

func TestRemoveForwarding(t *testing.T) {
	h := http.Header{"X-Forwarded-For": {"a"}, "Client-Ip": {"a"}, "X_forwarded_host": {"a"}, "Ropeline-Proof": {"b"}, "Accept": {"c"}}
	RemoveForwarding(h)
	if len(h) != 2 || h.Get("Ropeline-Proof") != "b" || h.Get("Accept") != "c" {
		t.Errorf("left: %v", h)
	}
}
