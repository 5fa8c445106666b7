package fast

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/integrations/middleware"
)

// visit sends one request through a gate that asks a node that answers so, to a site.
func visit(t *testing.T, cfg middleware.Config, node http.HandlerFunc, site fasthttp.RequestHandler, request string) (*http.Response, string) {
	t.Helper()
	n := httptest.NewServer(node)
	defer n.Close()
	cfg.Nodes, cfg.Logger = []string{n.URL}, slog.New(slog.DiscardHandler)
	g := must.Do(middleware.New(cfg))
	ln := fasthttputil.NewInmemoryListener()
	srv := &fasthttp.Server{Handler: Handler(g, site), StreamRequestBody: true}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	conn := must.Do(ln.Dial())
	must.Do(io.WriteString(conn, request))
	method, _, _ := strings.Cut(request, " ")
	resp := must.Do(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method}))
	body := must.Do(io.ReadAll(resp.Body))
	conn.Close()
	ln.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return resp, string(body)
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
	node := func(w http.ResponseWriter, r *http.Request) {
		expectFields(t, "to the node", r.Header, "X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/a%2Fb?c=d", "X-Forwarded-Host", "shop.example",
			"X-Forwarded-Proto", "http", "Cookie", "ropeline=mine", "Ropeline-Proof", "", "Content-Length", "")
		if got := r.Header.Get("X-Forwarded-For"); net.ParseIP(got) == nil {
			t.Errorf("the visitor is %q to the node", got)
		}
		w.Header().Set("Set-Cookie", "ropeline=pass; Path=/")
		w.Header().Set("Ropeline-Proof", "proof")
	}
	resp, body := visit(t, middleware.Config{}, node, func(ctx *fasthttp.RequestCtx) {
		if got := ctx.Request.Header.PeekAll("Ropeline-Proof"); len(got) != 1 || string(got[0]) != "proof" || string(ctx.PostBody()) != "content" {
			t.Errorf("the site gets the proofs %q and the body %q", got, ctx.PostBody())
		}
		ctx.Response.Header.Set("Cache-Control", "public, max-age=60")
		ctx.Response.Header.Add("Set-Cookie", "basket=8")
		ctx.SetBodyString("goods")
	}, "POST /a%2Fb?c=d HTTP/1.1\r\nHost: shop.example\r\nRopeline-Proof: made up\r\nCookie: ropeline=mine\r\nX-Forwarded-Proto: https\r\nContent-Length: 7\r\n\r\ncontent")
	if resp.StatusCode != http.StatusOK || body != "goods" {
		t.Errorf("code %d, %q", resp.StatusCode, body)
	}
	expectFields(t, "an answer with a pass", resp.Header, "Set-Cookie", "basket=8 and ropeline=pass; Path=/", "Cache-Control", "private, max-age=60")
}

func TestWhoHasToWaitIsShownThePage(t *testing.T) {
	node := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "ropeline=waiting; Path=/")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Refresh", "20")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, "<!doctype html>wait</html>")
	}
	site := func(*fasthttp.RequestCtx) { t.Error("the site was asked") }
	for method, want := range map[string]string{"GET": "<!doctype html>wait</html>", "HEAD": ""} {
		resp, body := visit(t, middleware.Config{}, node, site, method+" / HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		if resp.StatusCode != http.StatusTooManyRequests || body != want {
			t.Errorf("%s: code %d, %q", method, resp.StatusCode, body)
		}
		expectFields(t, method, resp.Header, "Refresh", "20", "Set-Cookie", "ropeline=waiting; Path=/", "Content-Type", "text/html; charset=utf-8")
	}
}

func TestABodyThatNobodyReadsIsNoRequest(t *testing.T) {
	node := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	for fields, closed := range map[string]bool{"Content-Length: 0\r\n": false, "Transfer-Encoding: chunked\r\n": true} {
		resp, _ := visit(t, middleware.Config{}, node, nil, "POST / HTTP/1.1\r\nHost: shop.example\r\n"+fields+"\r\n")
		if resp.Close != closed {
			t.Errorf("%q: the connection is closed: %v", fields, resp.Close)
		}
	}
}

// TestALateBodyLosesNoAnswer: whoever sends a body after its head gets the answer, and no end of the connection amid the body.
func TestALateBodyLosesNoAnswer(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer node.Close()
	g := must.Do(middleware.New(middleware.Config{Nodes: []string{node.URL}, Logger: slog.New(slog.DiscardHandler)}))
	ln := must.Do(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	srv := &fasthttp.Server{Handler: Handler(g, nil), StreamRequestBody: true}
	go srv.Serve(ln)
	conn := must.Do(net.Dial("tcp", ln.Addr().String()))
	defer conn.Close()
	must.Do(io.WriteString(conn, "POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n"))
	r := bufio.NewReader(conn)
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // an answer that does not wait comes within that
	_, _ = r.Peek(1)
	conn.SetReadDeadline(time.Time{})
	for _, part := range []string{"6\r\nitem=4\r\n", "0\r\n\r\n"} {
		must.Do(io.WriteString(conn, part))
		time.Sleep(time.Millisecond) // it arrives by itself
	}
	if resp := must.Do(http.ReadResponse(r, nil)); resp.StatusCode != http.StatusTooManyRequests || !resp.Close {
		t.Errorf("code %d, closed %v", resp.StatusCode, resp.Close)
	}
}

func TestWithoutANode(t *testing.T) {
	node := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	served := 0
	site := func(ctx *fasthttp.RequestCtx) {
		served++
		if len(ctx.Request.Header.Peek("Ropeline-Proof")) > 0 {
			t.Error("a proof that somebody made up gets through")
		}
	}
	const request = "GET / HTTP/1.1\r\nHost: shop.example\r\nRopeline-Proof: made up\r\n\r\n"
	resp, body := visit(t, middleware.Config{}, node, site, request)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "5" || body == "" || served > 0 {
		t.Errorf("code %d, %q, served %d", resp.StatusCode, body, served)
	}
	if resp, _ := visit(t, middleware.Config{Open: true}, node, site, request); resp.StatusCode != http.StatusOK || served != 1 {
		t.Errorf("open: code %d, served %d", resp.StatusCode, served)
	}
}

// TestWhatNoSiteIsToRead lets nobody in, and no node is asked about it: fasthttp takes names with a space; it takes host and
// path out of some targets, in place of the Host field, and the node would be asked about another page than the site serves; and
// it hands on versions that sites read otherwise.
func TestWhatNoSiteIsToRead(t *testing.T) {
	node := func(w http.ResponseWriter, r *http.Request) { t.Errorf("the node is asked about %v", r.Header) }
	site := func(ctx *fasthttp.RequestCtx) {
		t.Errorf("the site serves %q of %s", ctx.Request.Header.String(), ctx.Host())
	}
	for head, code := range map[string]int{
		"GET / HTTP/1.1\r\nX A: b":                          http.StatusBadRequest,
		"GET / HTTP/1.1\r\nX-A: \x01":                       http.StatusBadRequest,
		"GET / HTTP/1.1\r\nCookie: a=\x7f":                  http.StatusBadRequest,
		"GET //shop.example/tickets HTTP/1.1\r\nA: b":       http.StatusBadRequest,
		"GET //shop.example/tickets?x=:// HTTP/1.1\r\nA: b": http.StatusBadRequest,
		"GET ///tickets?x=:// HTTP/1.1\r\nA: b":             http.StatusBadRequest,
		"GET / HTTP/0.9\r\nA: b":                            http.StatusHTTPVersionNotSupported,
		"GET / HTTP/2.0\r\nA: b":                            http.StatusHTTPVersionNotSupported,
		"GET / HTTP/1.2\r\nA: b":                            http.StatusHTTPVersionNotSupported,
	} {
		resp, _ := visit(t, middleware.Config{Open: true}, node, site, head+"\r\nHost: shop.example\r\n\r\n")
		if resp.StatusCode != code || code == http.StatusHTTPVersionNotSupported && resp.Header.Get("Ropeline-State") != "refused" {
			t.Errorf("%q: code %d %v, want %d", head, resp.StatusCode, resp.Header, code)
		}
	}
}

// TestTheSiteEndsSessions, and neither are commands seen by visitors, nor passes by the site.
func TestTheSiteEndsSessions(t *testing.T) {
	const forget = "ropeline=; Path=/; Max-Age=0"
	for command, want := range map[string]string{"revoke": forget, "jump": "ropeline=pass; Path=/"} {
		node := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/revoke" {
				w.Header().Set("Set-Cookie", "ropeline=pass; Path=/")
				return
			}
			if r.Method != http.MethodPost || r.Header.Get("Cookie") != "ropeline=pass" || r.Header.Get("X-Forwarded-Host") != "shop.example" {
				t.Errorf("the node is asked %s with %v", r.Method, r.Header)
			}
			w.Header().Set("Set-Cookie", forget)
			w.WriteHeader(http.StatusNoContent)
		}
		resp, body := visit(t, middleware.Config{}, node, func(ctx *fasthttp.RequestCtx) {
			if got := string(ctx.Request.Header.Peek("Cookie")); got != "a=b; c=d" {
				t.Errorf("the site gets the cookies %q", got)
			}
			ctx.Response.Header.Set("Ropeline-Command", command)
			ctx.Response.Header.Add("Cf-Waiting-Room-Command", command)
			ctx.SetBodyStream(strings.NewReader("goods"), -1)
			if err := ctx.Response.Header.SetTrailer("Ropeline-Command, X-Sum"); err != nil {
				t.Error(err)
			}
		}, "GET / HTTP/1.1\r\nHost: shop.example\r\nCookie: a=b; ropeline=mine; c=d\r\n\r\n")
		expectFields(t, command, resp.Header, "Set-Cookie", want, "Ropeline-Command", "", "Cf-Waiting-Room-Command", "")
		if _, announced := resp.Trailer["Ropeline-Command"]; announced || body != "goods" {
			t.Errorf("%s: the visitor sees %q and %v", command, body, resp.Trailer)
		}
	}
}

// TestOnlyWebSocketsAreUpgraded, and forwarding fields are taken out where a program says so.
func TestOnlyWebSocketsAreUpgraded(t *testing.T) {
	node := func(http.ResponseWriter, *http.Request) {}
	for fields, want := range map[string]string{
		"Upgrade: websocket\r\n": "websocket", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n": "", "Upgrade: websocket, h2c\r\n": "",
		"Upgrade: websocket\r\nUpgrade: h2c\r\n": "",
	} {
		visit(t, middleware.Config{}, node, func(ctx *fasthttp.RequestCtx) {
			RemoveForwarding(&ctx.Request.Header)
			h := &ctx.Request.Header
			if string(h.Peek("Upgrade")) != want || len(h.Peek("HTTP2-Settings")) > 0 || len(h.Peek("Client-IP")) > 0 || string(h.Peek("X-A")) != "b" {
				t.Errorf("%q: the site gets %q", fields, h.String())
			}
		}, "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nClient-IP: 203.0.113.66\r\nX-A: b\r\n"+fields+"\r\n")
	}
}
