package adminserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
)

const (
	readToken  = "reading-0123456789"
	writeToken = "writing-0123456789"
)

// noted is a Part that says who it was asked by.
type noted struct{}

func (noted) Needs(method, path string) (Scope, bool) {
	switch {
	case !strings.HasPrefix(path, "/thing"):
		return Nothing, false
	case path == "/thing/open":
		return Nothing, true
	case method == "GET":
		return Read, true
	}
	return Write, true
}

func (noted) Serve(ctx *fasthttp.RequestCtx) {
	fmt.Fprintf(ctx, "%s %d bytes", ctx.Method(), len(ctx.PostBody()))
}

func listen() net.Listener { return must.Do(net.Listen("tcp", "127.0.0.1:0")) }

// start runs a server on loopback and returns where it is.
func start(t *testing.T, change func(*Config)) (base string, s *Server) {
	ln := listen()
	cfg := Config{Listener: ln, Parts: []Part{noted{}}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&cfg)
	}
	s = must.Do(New(cfg))
	must.Run(t, s.Run)
	return "http://" + ln.Addr().String(), s
}

func withTokens(c *Config) {
	c.Tokens = must.Do(ParseTokens("read " + readToken + "\nwrite " + writeToken))
}

// with returns the header field that has a token; none: there is none.
func with(token string) []string {
	if token == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + token}
}

// ask sends one request with header fields, two by two.
func ask(t *testing.T, method, url string, body io.Reader, fields ...string) (*http.Response, string) {
	req := must.Do(http.NewRequestWithContext(t.Context(), method, url, body))
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			req.Host = fields[i+1]
		}
		req.Header.Set(fields[i], fields[i+1])
	}
	resp := must.Do(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	return resp, string(must.Do(io.ReadAll(resp.Body)))
}

// wants is ask, and fails where the answer has another status, does not say something, or lacks a field that such answers have.
func wants(t *testing.T, code int, says, method, url string, body io.Reader, fields ...string) {
	t.Helper()
	resp, got := ask(t, method, url, body, fields...)
	if resp.StatusCode != code || !strings.Contains(got, says) {
		t.Errorf("%s %s with %q: %d %s, want %d with %q", method, url, fields, resp.StatusCode, got, code, says)
	}
	h := resp.Header
	if code == 401 && h.Get("WWW-Authenticate") != "Bearer" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s %s: header %v", method, url, h)
	}
}

func dial(t *testing.T, base string) net.Conn {
	c := must.Do(net.Dial("tcp", strings.TrimPrefix(base, "http://")))
	c.SetDeadline(time.Now().Add(time.Minute))
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends a request as it is written, and returns all that comes back.
func exchange(t *testing.T, base, request string) string {
	conn := dial(t, base)
	io.WriteString(conn, request)
	conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	return string(got)
}

// wantStatus sends a request as it is written, and fails where the answer has another status.
func wantStatus(t *testing.T, base, request, want string) {
	t.Helper()
	if got := exchange(t, base, request); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
		t.Errorf("%.80q: got %q, want %s", request, got, want)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	base, s := start(t, withTokens)
	wants(t, 401, "needs a token", "GET", base+"/thing", nil)
	wants(t, 401, `"code":10000`, "GET", base+"/thing", nil)
	wants(t, 404, `"code":7003`, "GET", base+"/nothing", nil, with(readToken)...)
	wants(t, 401, "not good", "GET", base+"/thing", nil, with("wrong-0123456789ab")...)
	wants(t, 200, "GET", "GET", base+"/thing", nil, with(readToken)...)
	wants(t, 200, "GET", "GET", base+"/thing", nil, with(writeToken)...)
	wants(t, 403, "scope write; the one that was sent has read", "POST", base+"/thing", nil, with(readToken)...)
	wants(t, 200, "POST", "POST", base+"/thing", nil, with(writeToken)...)
	wants(t, 200, "GET", "GET", base+"/thing/open", nil)
	wants(t, 401, "needs a token", "GET", base+"/nothing", nil)
	wants(t, 404, "nothing at /nothing", "GET", base+"/nothing", nil, with(readToken)...)
	wants(t, 401, `"success":false`, "POST", base+"/client/v4/x", nil)
	wants(t, 401, "", "GET", base+"/thing", nil, "Authorization", readToken)
	wants(t, 200, "", "GET", base+"/thing", nil, "Authorization", "bearer "+readToken)
	wants(t, 200, "", "POST", base+"/thing", nil, "X-Auth-Key", writeToken, "X-Auth-Email", "operator@shop.example")
	wants(t, 403, "", "POST", base+"/thing", nil, "X-Auth-Key", readToken)
	wants(t, 401, "not good", "GET", base+"/thing", nil, "X-Auth-Key", "wrong-0123456789ab")
	wants(t, 401, "not good", "GET", base+"/thing", nil, "X-Auth-Key", readToken, "Authorization", "Bearer wrong-0123456789ab")
	next := new(Tokens)
	must.OK(errors.Join(next.Add("another-0123456789", Read), s.SetTokens(next)))
	wants(t, 401, "", "GET", base+"/thing", nil, with(readToken)...)
	wants(t, 200, "", "GET", base+"/thing", nil, with("another-0123456789")...)
	if s.SetTokens(nil) == nil {
		t.Error("a listener with tokens is opened to everybody")
	}
}

// TestWithoutTokens is open to programs of this machine, and not to pages of other sites.
func TestWithoutTokens(t *testing.T) {
	base, _ := start(t, nil)
	for _, c := range []struct {
		method string
		fields []string
		want   int
	}{
		{"GET", nil, 200},
		{"POST", nil, 200},
		{"GET", []string{"Host", "evil.example"}, 421},
		{"GET", []string{"Host", "evil.example:9080"}, 421},
		{"GET", []string{"Host", "localhost:9080"}, 200},
		{"GET", []string{"Host", "[::1]:9080"}, 200},
		{"GET", []string{"Origin", "https://evil.example"}, 200}, // it cannot read the answer
		{"POST", []string{"Origin", "https://evil.example"}, 403},
		{"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"DELETE", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"PATCH", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", []string{"Origin", base}, 200},
	} {
		wants(t, c.want, "", c.method, base+"/thing", nil, c.fields...)
	}
}

// TestAddressesNameNoHost: the server takes the host out of some addresses, in place of the Host
// field, by which pages of other sites are known.
func TestAddressesNameNoHost(t *testing.T) {
	base, _ := start(t, nil)
	addr := strings.TrimPrefix(base, "http://")
	for target, want := range map[string]string{
		"/thing":                              "421",
		"//" + addr + "/thing":                "421",
		"//" + addr + "/thing?x=://":          "400",
		"//localhost/thing?x=://":             "400",
		"///thing?x=://":                      "400",
		"http://" + addr + "/thing":           "400",
		"http://evil.example/thing":           "421",
		"/thing?x=://" + addr:                 "421",
		"/" + addr + "//" + addr + "/t?x=://": "421",
	} {
		wantStatus(t, base, "GET "+target+" HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", want)
	}
}

// TestAnybodyMayAskWhatNeedsNothing, by whatever name: balancers ask by HTTP/1.0 and none.
func TestAnybodyMayAskWhatNeedsNothing(t *testing.T) {
	base, _ := start(t, func(c *Config) {
		c.Health = ready()
		part := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "anybody's") })
		c.Parts = []Part{NewPaths(part, map[string]Scope{"/page": Nothing, "/thing": Read})}
	})
	for request, want := range map[string]string{
		"GET /readyz HTTP/1.0\r\n\r\n":                                            "200",
		"OPTIONS /readyz HTTP/1.0\r\n\r\n":                                        "200",
		"GET /readyz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n": "200",
		"GET /page HTTP/1.0\r\n\r\n":                                              "200",
		"GET /thing HTTP/1.0\r\n\r\n":                                             "421",
	} {
		wantStatus(t, base, request, want)
	}
}

// at is a listener at an address.
type at struct {
	net.Listener
	addr string
}

func (a at) Addr() net.Addr  { return a }
func (a at) Network() string { return "tcp" }
func (a at) String() string  { return a.addr }

func TestWhereItListens(t *testing.T) {
	listens := func(listen string, tokens *Tokens, tls *tls.Config, ok bool) {
		t.Helper()
		if _, err := New(Config{Listener: at{addr: listen}, Tokens: tokens, TLS: tls}); (err == nil) != ok {
			t.Errorf("listen on %q: error %v, want ok %v", listen, err, ok)
		}
	}
	for _, loopback := range []string{"127.0.0.1:0", "127.9.9.9:80", "[::1]:9080", "localhost:9080"} {
		listens(loopback, nil, nil, true)
	}
	for _, elsewhere := range []string{":9080", "0.0.0.0:9080", "[::]:9080", "192.0.2.1:9080", "example.org:80", "localhost", "127.0.0.1.:9080"} {
		listens(elsewhere, nil, nil, false)
	}
	var c Config
	withTokens(&c)
	listens(":9080", c.Tokens, nil, false)
	listens(":9080", c.Tokens, &tls.Config{}, true)
	listens(":9080", nil, &tls.Config{}, false)
	listens("127.0.0.1:9080", c.Tokens, nil, true)
}

// untilLimited asks for something at once, each time with another token that is none if guesses is set, and returns how often
// that was before it was refused, and the refusal. On a slow machine many may be asked meanwhile.
func untilLimited(t *testing.T, url string, guesses bool) (n int, refusal *http.Response) {
	t.Helper()
	for n = range 20 * askBurst {
		token := ""
		if guesses {
			token = fmt.Sprintf("guess-%016d", n)
		}
		if resp, _ := ask(t, "GET", url, nil, with(token)...); resp.StatusCode == http.StatusTooManyRequests {
			return n, resp
		}
	}
	t.Fatalf("%d requests at once, and none is refused", n)
	return n, nil
}

// TestGuessingIsSlow has somebody try tokens: before long they have to wait, and who has
// one does not.
func TestGuessingIsSlow(t *testing.T) {
	base, _ := start(t, withTokens)
	n, refusal := untilLimited(t, base+"/thing", true)
	if n < 5 || n > 30 || refusal.Header.Get("Retry-After") == "" {
		t.Errorf("%d tokens were tried before it said no: %v", n, refusal.Header)
	}
	wants(t, 200, "", "GET", base+"/thing", nil, with(readToken)...)
}

func TestFloodIsBounded(t *testing.T) {
	base, _ := start(t, nil)
	if n, _ := untilLimited(t, base+"/thing/open", false); n < askBurst {
		t.Errorf("request %d of a burst of %d is refused", n, askBurst)
	}
}

func TestLargeBodies(t *testing.T) {
	base, _ := start(t, nil)
	wants(t, 200, "", "POST", base+"/thing", strings.NewReader(strings.Repeat("x", MaxBody)))
	resp, err := http.Post(base+"/thing", "text/plain", strings.NewReader(strings.Repeat("x", MaxBody+1)))
	if err != nil {
		return // it was cut off while it was sent
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), `"code":1007`) {
		t.Errorf("a body that is too large: %d %s, want 413 with the code 1007", resp.StatusCode, body)
	}
}

func TestOverTLS(t *testing.T) {
	pair := httptest.NewTLSServer(nil)
	defer pair.Close()
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.TLS = &tls.Config{Certificates: pair.TLS.Certificates}
	})
	req := must.Do(http.NewRequestWithContext(t.Context(), "GET", strings.Replace(base, "http:", "https:", 1)+"/thing", nil))
	req.Header.Set("Authorization", "Bearer "+readToken)
	resp := must.Do(pair.Client().Do(req)) // which takes its certificate
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("over TLS: %d", resp.StatusCode)
	}
	pair.Client().CloseIdleConnections()
}

func TestTokensAreParsed(t *testing.T) {
	tokens := must.Do(ParseTokens("\ufeff# for people\n\nread " + readToken + " the night shift\n  write\t" + writeToken + "\n"))
	for token, want := range map[string]Scope{readToken: Read, writeToken: Write, "": Nothing, "other-0123456789": Nothing} {
		if got := tokens.Scope(token); got != want {
			t.Errorf("%q is good for %s, want %s", token, got, want)
		}
	}
	for text, says := range map[string]string{
		"":                                  "no token",
		"admin " + readToken:                "line 1: its first word is to be read or write",
		"\nread":                            "line 2: after \"read\" a token is missing",
		"read short":                        "5 characters; want 16 to 512",
		"write 0123456789abcdé0":            "none of those",
		"read " + strings.Repeat("x", 513):  "513 characters",
		readToken + "\nwrite " + writeToken: "line 1",
	} {
		_, err := ParseTokens(text)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), readToken) {
			t.Errorf("%q: error %v, want %q, and no token in it", text, err, says)
		}
	}
}

// TestPartsByPath has net/http handlers be found.
func TestPartsByPath(t *testing.T) {
	paths := NewPaths(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }),
		map[string]Scope{"/status": Read, "/readyz": Nothing, "/dashboard/": Nothing})
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.Parts = []Part{paths}
	})
	for path, want := range map[string]struct{ stranger, operator int }{
		"/readyz": {200, 200}, "/status": {401, 200}, "/dashboard/": {200, 200}, "/dashboard/app.js": {200, 200},
		"/": {401, 404}, "/api/v1/rooms/x": {401, 404},
	} {
		wants(t, want.stranger, "", "GET", base+path, nil)
		wants(t, want.operator, "", "GET", base+path, nil, with(readToken)...)
	}
}

// TestPathsMeanOneThing: what a token has to be good for is found by the path, so nobody may
// take another one out of it afterwards.
func TestPathsMeanOneThing(t *testing.T) {
	api := must.Do(admin.New(admin.Config{Mesh: &admintest.Mesh{}}))
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.Parts = []Part{NewPaths(http.NotFoundHandler(), map[string]Scope{"/dashboard/": Nothing}), API{api}}
	})
	const bypass = `{"search_engine_crawler_bypass":true}`
	for _, c := range []struct{ path, token, want string }{
		{"/api/v1/zones/..", readToken, "400"},
		{"/api/v1/zones/%2e%2E", readToken, "400"},
		{"/api/v1/zones/x/../y", writeToken, "400"},
		{"/api/v1//zones/x", writeToken, "400"},
		{"/client/v4/zones/../waiting_rooms/settings", readToken, "400"},
		{"/client/v4/zones/x%2F..%2Fy/waiting_rooms/settings", readToken, "400"},
		{"/dashboard/..%2f..%2fapi/v1/zones/x", "", "400"},
		{"/api/v1/zones/%zz", readToken, "400"},
		{"/api/v1/zones/a%2Fb", readToken, "403"},
		{"/api/v1/zones/.", readToken, "403"},
		{"/api/v1/zones/%78", readToken, "403"},
		{"/api/v1/zones/%78", writeToken, "200"},
		{"/api/v1/zones/x..y", writeToken, "200"},
	} {
		wantStatus(t, base, fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", c.path, c.token, len(bypass), bypass), c.want)
	}
}

// TestRequestsOutliveTheStop: fasthttp changes, unguarded, what would tell a request that the
// server stops, so nobody may wait for it.
func TestRequestsOutliveTheStop(t *testing.T) {
	says := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Context().Done() == nil) })
	base, _ := start(t, func(c *Config) {
		c.Parts = []Part{NewPaths(says, map[string]Scope{"/one": Read, "/below/": Read})}
	})
	for _, path := range []string{"/one", "/below/x"} {
		wants(t, 200, "true", "GET", base+path, nil) // it waits for nothing
	}
}

// TestRunThatIsToEndBeforeItBegan ends all the same. Which of the two comes first is up to the scheduler, so it is tried often.
func TestRunThatIsToEndBeforeItBegan(t *testing.T) {
	for range 200 {
		s := must.Do(New(Config{Listener: listen(), Logger: slog.New(slog.DiscardHandler)}))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it serves, though it was to end before it began")
		}
	}
}
