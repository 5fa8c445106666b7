package fast

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/ropeline/ropeline/httpfront/integrations/middleware"
)

// visit sends one request through a gate that asks a node that answers so, to a site.
func visit(t *testing.T, cfg middleware.Config, node http.HandlerFunc, site fasthttp.RequestHandler, request string) (*http.Response, string) {
	t.Helper()
	n := httptest.NewServer(node)
	defer n.Close()
	cfg.Nodes, cfg.Logger = []string{n.URL}, slog.New(slog.DiscardHandler)
	g := must(middleware.New(cfg))
	ln := fasthttputil.NewInmemoryListener()
	srv := &fasthttp.Server{Handler: Handler(g, site)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	conn := must(ln.Dial())
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp := must(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method}))
	body := must(io.ReadAll(resp.Body))
	conn.Close()
	ln.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return resp, string(body)
}

func TestWhoIsLetInIsServed(t *testing.T) {
	node := func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{
			"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/a%2Fb?c=d", "X-Forwarded-Host": "shop.example",
			"X-Forwarded-Proto": "http", "Cookie": "ropeline=mine", "Ropeline-Proof": "", "Content-Length": "",
		} {
			if got := strings.Join(r.Header.Values(name), " and "); got != want {
				t.Errorf("%s is %q to the node, want %q", name, got, want)
			}
		}
		if got := r.Header.Get("X-Forwarded-For"); net.ParseIP(got) == nil {
			t.Errorf("the visitor is %q to the node", got)
		}
		w.Header().Set("Set-Cookie", "ropeline=pass; Path=/")
		w.Header().Set("Ropeline-Proof", "proof")
	}
	resp, body := visit(t, middleware.Config{}, node, func(ctx *fasthttp.RequestCtx) {
		if got := ctx.Request.Header.PeekAll("Ropeline-Proof"); len(got) != 1 || string(got[0]) != "proof" {
			t.Errorf("the site gets the proofs %q", got)
		}
		if got := string(ctx.PostBody()); got != "content" {
			t.Errorf("the site gets the body %q", got)
		}
		ctx.Response.Header.Set("Cache-Control", "public, max-age=60")
		ctx.Response.Header.Add("Set-Cookie", "basket=8")
		ctx.SetBodyString("goods")
	}, "POST /a%2Fb?c=d HTTP/1.1\r\nHost: shop.example\r\nRopeline-Proof: made up\r\nCookie: ropeline=mine\r\nX-Forwarded-Proto: https\r\nContent-Length: 7\r\n\r\ncontent")
	if resp.StatusCode != http.StatusOK || body != "goods" {
		t.Errorf("code %d, %q", resp.StatusCode, body)
	}
	if got := resp.Header.Values("Set-Cookie"); !slices.Equal(got, []string{"basket=8", "ropeline=pass; Path=/"}) {
		t.Errorf("cookies %q", got)
	}
	if got := resp.Header.Values("Cache-Control"); !slices.Equal(got, []string{"private, no-store"}) {
		t.Errorf("Cache-Control %q of an answer with a pass", got)
	}
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
		h := resp.Header
		if resp.StatusCode != http.StatusTooManyRequests || body != want || h.Get("Refresh") != "20" ||
			!slices.Equal(h.Values("Set-Cookie"), []string{"ropeline=waiting; Path=/"}) || !slices.Equal(h.Values("Content-Type"), []string{"text/html; charset=utf-8"}) {
			t.Errorf("%s: code %d, %q, fields %v", method, resp.StatusCode, body, h)
		}
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

// TestFieldsThatNoNodeTakesLetNobodyIn: fasthttp takes names with a space.
func TestFieldsThatNoNodeTakesLetNobodyIn(t *testing.T) {
	node := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	site := func(ctx *fasthttp.RequestCtx) { t.Errorf("the site serves %q", ctx.Request.Header.String()) }
	for _, field := range []string{"X A: b", "X-A: \x01", "Cookie: a=\x7f"} {
		resp, _ := visit(t, middleware.Config{Open: true}, node, site, "GET / HTTP/1.1\r\nHost: shop.example\r\n"+field+"\r\n\r\n")
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: code %d", field, resp.StatusCode)
		}
	}
}

// TestAddressesNameNoOtherHost: fasthttp takes host and path out of these, in place of the Host
// field, and the node would be asked about another page than the site serves.
func TestAddressesNameNoOtherHost(t *testing.T) {
	node := func(w http.ResponseWriter, r *http.Request) { t.Errorf("the node is asked about %v", r.Header) }
	site := func(ctx *fasthttp.RequestCtx) { t.Errorf("the site serves %s of %s", ctx.Path(), ctx.Host()) }
	for _, target := range []string{"//shop.example/tickets", "//shop.example/tickets?x=://", "///tickets?x=://"} {
		resp, _ := visit(t, middleware.Config{Open: true}, node, site, "GET "+target+" HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: code %d", target, resp.StatusCode)
		}
	}
}

// TestVersionsThatSitesReadOtherwise are refused: fasthttp takes them, and hands them on.
func TestVersionsThatSitesReadOtherwise(t *testing.T) {
	node := func(w http.ResponseWriter, r *http.Request) { t.Errorf("the node is asked about %v", r.Header) }
	site := func(ctx *fasthttp.RequestCtx) { t.Errorf("the site serves %q", ctx.Request.Header.Protocol()) }
	for _, version := range []string{"HTTP/0.9", "HTTP/2.0", "HTTP/1.2"} {
		resp, _ := visit(t, middleware.Config{Open: true}, node, site, "GET / "+version+"\r\nHost: shop.example\r\n\r\n")
		if resp.StatusCode != http.StatusHTTPVersionNotSupported || resp.Header.Get("Ropeline-State") != "refused" {
			t.Errorf("%s: code %d %v", version, resp.StatusCode, resp.Header)
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
		if got := resp.Header.Values("Set-Cookie"); !slices.Equal(got, []string{want}) || body != "goods" {
			t.Errorf("%s: cookies %q, %q", command, got, body)
		}
		_, announced := resp.Trailer["Ropeline-Command"]
		if announced || resp.Header.Get("Ropeline-Command") != "" || resp.Header.Get("Cf-Waiting-Room-Command") != "" {
			t.Errorf("%s: the visitor sees %v and %v", command, resp.Header, resp.Trailer)
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
			if got := ctx.Request.Header.Peek("Upgrade"); string(got) != want || len(ctx.Request.Header.Peek("HTTP2-Settings")) > 0 {
				t.Errorf("%q: the site gets %q", fields, ctx.Request.Header.String())
			}
			if got := ctx.Request.Header.Peek("Client-IP"); len(got) > 0 || string(ctx.Request.Header.Peek("X-A")) != "b" {
				t.Errorf("the site gets %q", ctx.Request.Header.String())
			}
		}, "GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nClient-IP: 203.0.113.66\r\nX-A: b\r\n"+fields+"\r\n")
	}
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
