package middleware

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/gate/pass"
	"github.com/ropeline/ropeline/httpfront/integrations/verdict"
	"github.com/ropeline/ropeline/node/room"
)

// node is a verdict listener that says what it is told to, and remembers what it was asked.
type node struct {
	*httptest.Server
	mu       sync.Mutex // each connection has a goroutine of its own
	requests []*http.Request
}

// asked returns what it was asked since it was called last.
func (n *node) asked() []*http.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	requests := n.requests
	n.requests = nil
	return requests
}

func newNode(t *testing.T, answer http.HandlerFunc) *node {
	t.Helper()
	n := &node{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.requests = append(n.requests, r)
		n.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

// gate asks a node, and lets nobody in without it.
func (n *node) gate() *Gate { return newGate(Config{Nodes: []string{n.URL}}) }

func newGate(cfg Config) *Gate {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return must.Do(New(cfg))
}

// says answers with fields given as name, value, name, value, ….
func says(code int, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(fields); i += 2 {
			w.Header().Set(fields[i], fields[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

var (
	admit = says(200, "", "Set-Cookie", "ropeline=pass; Path=/", "Ropeline-Proof", "proof")
	hold  = says(429, "<!doctype html>wait</html>", "Set-Cookie", "ropeline=waiting; Path=/", "Refresh", "20",
		"Cache-Control", "private, no-store", "Connection", "X-Hop", "X-Hop", "1")
)

func silence(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func get(target string, fields ...string) *http.Request {
	return with(httptest.NewRequest(http.MethodGet, target, nil), fields...)
}

// with adds fields to a request, given as name, value, name, value, ….
func with(r *http.Request, fields ...string) *http.Request {
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

// visit sends a request through a gate to a site.
func visit(g *Gate, site http.HandlerFunc, r *http.Request) (resp *http.Response, body string) {
	srv := httptest.NewServer(g.Handler(site))
	defer srv.Close()
	r.URL.Scheme, r.URL.Host, r.RequestURI = "http", srv.Listener.Addr().String(), ""
	resp = must.Do(srv.Client().Do(r))
	defer resp.Body.Close()
	return resp, string(must.Do(io.ReadAll(resp.Body)))
}

// expectFields takes names and values; those of several fields of a name are joined by " and ".
func expectFields(t *testing.T, what string, h http.Header, want ...string) {
	t.Helper()
	for i := 0; i < len(want); i += 2 {
		if got := strings.Join(h.Values(want[i]), " and "); got != want[i+1] {
			t.Errorf("%s: %s is %q, want %q", what, want[i], got, want[i+1])
		}
	}
}

func TestWhoIsLetInIsServed(t *testing.T) {
	n := newNode(t, admit)
	r := with(httptest.NewRequest(http.MethodPut, "http://shop.example/a%2Fb?c=d", strings.NewReader("content")), "Ropeline-Proof", "made up",
		"Cookie", "ropeline=mine; basket=7", "X-Forwarded-For", "192.0.2.9", "X-Forwarded-Proto", "https", "Forwarded", "for=192.0.2.9")
	resp, body := visit(n.gate(), func(w http.ResponseWriter, r *http.Request) {
		expectFields(t, "to the site", r.Header, "Ropeline-Proof", "proof")
		if b, _ := io.ReadAll(r.Body); string(b) != "content" {
			t.Errorf("the site gets the body %q", b)
		}
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("Set-Cookie", "basket=8")
		io.WriteString(w, "goods")
	}, r)
	if resp.StatusCode != http.StatusOK || body != "goods" {
		t.Errorf("code %d, %q", resp.StatusCode, body)
	}
	expectFields(t, "an answer with a pass", resp.Header, "Set-Cookie", "basket=8 and ropeline=pass; Path=/", "Cache-Control", "private, max-age=60")
	asked := n.asked()
	if len(asked) != 1 {
		t.Fatalf("the node was asked %d times", len(asked))
	}
	q := asked[0]
	expectFields(t, "to the node", q.Header, "X-Forwarded-Method", "PUT", "X-Forwarded-Uri", "/a%2Fb?c=d", "X-Forwarded-Host", "shop.example",
		"X-Forwarded-Proto", "http", "X-Forwarded-For", "127.0.0.1", "Forwarded", "", "Ropeline-Proof", "",
		"Cookie", "ropeline=mine; basket=7", "Content-Length", "")
	if q.Method != http.MethodGet || q.URL.Path != "/forward" || q.ContentLength > 0 {
		t.Errorf("the node was asked %s %s with %d bytes", q.Method, q.URL, q.ContentLength)
	}
}

// TestAnswersWithoutAPassAreTheSites: caches may keep them as the site says.
func TestAnswersWithoutAPassAreTheSites(t *testing.T) {
	resp, _ := visit(newNode(t, says(200, "")).gate(), func(w http.ResponseWriter, r *http.Request) {
		if _, ok := r.Header["Ropeline-Proof"]; ok {
			t.Error("a proof that nobody made")
		}
		w.Header().Set("Cache-Control", "public, max-age=60")
	}, get("/"))
	expectFields(t, "the answer", resp.Header, "Cache-Control", "public, max-age=60", "Set-Cookie", "")
}

// answers are the ways in which a site writes an answer.
var answers = map[string]http.HandlerFunc{
	"nothing":       func(http.ResponseWriter, *http.Request) {},
	"a code":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
	"early hints":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(204) },
	"written":       func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") },
	"flushed":       func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); io.WriteString(w, "x") },
	"copied":        func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("x")) },
	"by controller": func(w http.ResponseWriter, _ *http.Request) { http.NewResponseController(w).Flush() },
	"a file": func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader("x"))
	},
}

// TestThePassIsInEveryAnswer of a site, however it is written.
func TestThePassIsInEveryAnswer(t *testing.T) {
	g := newNode(t, admit).gate()
	sites := maps.Clone(answers)
	sites["fields removed"] = func(w http.ResponseWriter, _ *http.Request) { clear(w.Header()); io.WriteString(w, "x") }
	for name, site := range sites {
		resp, _ := visit(g, site, get("/"))
		expectFields(t, name, resp.Header, "Set-Cookie", "ropeline=pass; Path=/")
	}
}

func TestWhoHasToWaitIsShownThePage(t *testing.T) {
	g := newNode(t, hold).gate()
	site := func(http.ResponseWriter, *http.Request) { t.Error("the site was asked") }
	const page = "<!doctype html>wait</html>"
	for method, want := range map[string]string{http.MethodGet: page, http.MethodHead: "", http.MethodPost: page} {
		resp, body := visit(g, site, httptest.NewRequest(method, "/", nil))
		if resp.StatusCode != http.StatusTooManyRequests || body != want {
			t.Errorf("%s: code %d, %q", method, resp.StatusCode, body)
		}
		expectFields(t, method, resp.Header, "Set-Cookie", "ropeline=waiting; Path=/", "Refresh", "20", "Cache-Control", "private, no-store", "X-Hop", "")
	}
}

// closed is a room about which nobody can say anything yet.
type closed struct{ httpfront.Room }

func (closed) Settings() *room.Settings               { return &room.Settings{Name: "shop"} }
func (closed) Route(host, path string) httpfront.Room { return closed{} }

// notReady is a node's verdict listener while the node waits for the state of its site.
func notReady() *verdict.Server {
	keys := must.Do(pass.NewKeyring(pass.Key{ID: 1, Secret: [32]byte{1}}))
	log, here := slog.New(slog.DiscardHandler), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	front := must.Do(httpfront.New(httpfront.Config{
		Rooms: closed{}, Keys: keys, TrustedProxies: here, Logger: log,
		Ready: func() error { return errors.New("waiting for the state of the site") },
	}))
	return must.Do(verdict.New(verdict.Config{Listener: httptest.NewUnstartedServer(nil).Listener, Judge: front, TrustedProxies: here, Logger: log}))
}

// TestTheNextNodeIsAsked where one has no verdict, and nobody comes in if none has one,
// unless the program wants it so.
func TestTheNextNodeIsAsked(t *testing.T) {
	late := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	good := newNode(t, admit)
	q := Question{Method: "GET", Target: "/", Host: "shop.example", Scheme: "http"}
	for name, answer := range map[string]http.HandlerFunc{
		"breaks off": silence, "is broken": says(503, ""), "is starting": notReady().ServeHTTP, "does not trust us": says(403, ""),
		"says too much": says(429, strings.Repeat("a", maxAnswer+1)), "is slow": late,
	} {
		bad := newNode(t, answer)
		cfg := Config{Nodes: []string{bad.URL, good.URL + "/"}, Timeout: time.Second}
		if v := newGate(cfg).Ask(t.Context(), q); !v.Admitted || v.Cookie == "" {
			t.Errorf("one that %s is not passed over: %+v", name, v)
		}
		cfg.Nodes = cfg.Nodes[:1]
		if v := newGate(cfg).Ask(t.Context(), q); v.Admitted || v.Code != 503 || v.Header.Get("Retry-After") != "5" {
			t.Errorf("with one that %s: %+v", name, v)
		}
		cfg.Open = true
		if v := newGate(cfg).Ask(t.Context(), q); v.Admitted != (name != "does not trust us") || v.Proof != "" {
			t.Errorf("with one that %s, though the program is open: %+v", name, v)
		}
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the visitor has gone"))
	good.asked()
	for _, open := range []bool{false, true} {
		if v := newGate(Config{Nodes: []string{good.URL}, Open: open}).Ask(gone, q); v.Admitted || len(good.asked()) != 0 {
			t.Errorf("open %v, of a visitor who has gone: %+v", open, v)
		}
	}
}

func TestAProxyOfOursIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		by, host, proto             string // of the proxy; those of several fields are joined by " and "
		wantBy, wantHost, wantProto string // to the node, which sees who asks behind all that the proxy says
	}{
		"one":                {"192.0.2.9", "shop.example", "https", "192.0.2.9, 127.0.0.1", "shop.example", "https"},
		"of a WebSocket":     {"192.0.2.9", "", "WSS", "192.0.2.9, 127.0.0.1", "inside", "https"},
		"of one without TLS": {"192.0.2.9", "", "ws", "192.0.2.9, 127.0.0.1", "inside", "http"},
		"two":                {"192.0.2.9, 10.0.0.1", "shop.example, inner.example", "https,http", "192.0.2.9, 10.0.0.1, 127.0.0.1", "inner.example", "https, http, http"},
		"two, in fields of their own": {
			"192.0.2.9 and 10.0.0.1", "shop.example and inner.example", "wss and http",
			"192.0.2.9, 10.0.0.1, 127.0.0.1", "inner.example", "https, http, http",
		},
		"none":                 {"", "", "", "127.0.0.1", "inside", "http"},
		"no scheme of the web": {"", " , ", "gopher", "127.0.0.1", "inside", "http"},
	} {
		n := newNode(t, admit)
		r := get("http://inside/")
		for field, values := range map[string]string{"X-Forwarded-For": c.by, "X-Forwarded-Host": c.host, "X-Forwarded-Proto": c.proto} {
			if values != "" {
				r.Header[field] = strings.Split(values, " and ")
			}
		}
		visit(newGate(Config{Nodes: []string{n.URL}, TrustForwarded: true, TrustForwardedHost: true}), answers["nothing"], r)
		expectFields(t, name+", to the node", n.asked()[0].Header,
			"X-Forwarded-For", c.wantBy, "X-Forwarded-Host", c.wantHost, "X-Forwarded-Proto", c.wantProto)
	}
}

// TestNobodyChoosesTheirOwnCountry where no proxy is in front that could say it.
func TestNobodyChoosesTheirOwnCountry(t *testing.T) {
	for trusts, want := range map[bool]string{false: "", true: "CH"} {
		n := newNode(t, admit)
		g := newGate(Config{Nodes: []string{n.URL}, CountryHeader: "CF-IPCountry", TrustForwarded: trusts})
		r := get("/", "CF-IPCountry", "CH")
		r.Header["cf-ipcountry"] = []string{"CH"} // as a handler in front may leave it
		visit(g, answers["nothing"], r)
		if got := n.asked()[0].Header.Get("CF-IPCountry"); got != want {
			t.Errorf("trusting %v: the node is told %q, want %q", trusts, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	const good = "http://127.0.0.1:9081"
	cfgs := []Config{{}, {Nodes: []string{good}, Timeout: -1}, {Nodes: []string{good}, TrustForwardedHost: true}, {Nodes: []string{good, "http://"}}}
	for _, node := range []string{"", "127.0.0.1:9081", "ftp://127.0.0.1:9081", good + "/nginx", good + "?x=y"} {
		cfgs = append(cfgs, Config{Nodes: []string{node}})
	}
	for _, cfg := range cfgs {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "ropeline: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
