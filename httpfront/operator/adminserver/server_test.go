package adminserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/operator/admin"
	"github.com/ropeline/ropeline/httpfront/operator/admin/admintest"
)

const (
	readToken  = "reading-0123456789"
	writeToken = "writing-0123456789"
)

// noted is a Part that says who it was asked by.
type noted struct{ served int }

func (n *noted) Needs(method, path string) (Scope, bool) {
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

func (n *noted) Serve(ctx *fasthttp.RequestCtx) {
	n.served++
	fmt.Fprintf(ctx, "%s %d bytes", ctx.Method(), len(ctx.PostBody()))
}

// start runs a server on loopback and returns where it is.
func start(t *testing.T, change func(*Config)) (base string, s *Server) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listener: ln, Parts: []Part{&noted{}}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&cfg)
	}
	if s, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return "http://" + ln.Addr().String(), s
}

func withTokens(c *Config) {
	c.Tokens = new(Tokens)
	if err := errors.Join(c.Tokens.Add(readToken, Read), c.Tokens.Add(writeToken, Write)); err != nil {
		panic(err)
	}
}

// ask sends one request with header fields, two by two.
func ask(t *testing.T, method, url, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			req.Host = fields[i+1]
		}
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(got)
}

// shortListener has no descriptors left for its first connections.
type shortListener struct {
	net.Listener
	left atomic.Int32
}

func (l *shortListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestDescriptorsComeBack(t *testing.T) {
	var short shortListener
	short.left.Store(3)
	base, _ := start(t, func(c *Config) {
		short.Listener = c.Listener
		c.Listener = &short
	})
	if _, body := ask(t, "GET", base+"/thing", ""); !strings.HasPrefix(body, "GET") || short.left.Load() >= 0 {
		t.Errorf("got %q after %d failures", body, 3-short.left.Load())
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	base, _ := start(t, withTokens)
	if resp, _ := ask(t, "GET", base+"/thing", "", "Authorization", readToken); resp.StatusCode != 401 {
		t.Errorf("a token without its scheme: %d, want 401", resp.StatusCode)
	}
	for _, c := range []struct {
		method, path, token string
		want                int
		says                string
	}{
		{"GET", "/thing", "", 401, "needs a token"},
		{"GET", "/thing", "", 401, `"code":10000`},
		{"GET", "/nothing", readToken, 404, `"code":7003`},
		{"GET", "/thing", "wrong-0123456789ab", 401, "not good"},
		{"GET", "/thing", readToken, 200, "GET"},
		{"GET", "/thing", writeToken, 200, "GET"},
		{"POST", "/thing", readToken, 403, "scope write; the one that was sent has read"},
		{"POST", "/thing", writeToken, 200, "POST"},
		{"GET", "/thing/open", "", 200, "GET"},
		{"GET", "/nothing", "", 401, "needs a token"},
		{"GET", "/nothing", readToken, 404, "nothing at /nothing"},
		{"POST", "/client/v4/x", "", 401, `"success":false`},
	} {
		var fields []string
		if c.token != "" {
			fields = []string{"Authorization", "Bearer " + c.token}
		}
		resp, body := ask(t, c.method, base+c.path, "", fields...)
		if resp.StatusCode != c.want || !strings.Contains(body, c.says) {
			t.Errorf("%s %s with %q: %d %s, want %d with %q", c.method, c.path, c.token, resp.StatusCode, body, c.want, c.says)
		}
		if resp.StatusCode == 401 && resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s: 401 without WWW-Authenticate", c.method, c.path)
		}
		if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: header %v", c.method, c.path, resp.Header)
		}
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
		if resp, body := ask(t, c.method, base+"/thing", "", c.fields...); resp.StatusCode != c.want {
			t.Errorf("%s with %v: %d %s, want %d", c.method, c.fields, resp.StatusCode, body, c.want)
		}
	}
}

// exchange sends a request as it is written, and returns all that comes back.
func exchange(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, request)
	got, _ := io.ReadAll(conn)
	return string(got)
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
		if got := exchange(t, addr, "GET "+target+" HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
			t.Errorf("%s: got %q, want %s", target, got, want)
		}
	}
}

// TestAnybodyMayAskWhatNeedsNothing, by whatever name: balancers ask by HTTP/1.0 and none.
func TestAnybodyMayAskWhatNeedsNothing(t *testing.T) {
	base, _ := start(t, func(c *Config) {
		c.Health = ready()
		part := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "anybody's") })
		c.Parts = []Part{NewPaths(part, map[string]Scope{"/page": Nothing, "/thing": Read})}
	})
	addr := strings.TrimPrefix(base, "http://")
	for request, want := range map[string]string{
		"GET /readyz HTTP/1.0\r\n\r\n":                                            "200",
		"OPTIONS /readyz HTTP/1.0\r\n\r\n":                                        "200",
		"GET /readyz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n": "200",
		"GET /page HTTP/1.0\r\n\r\n":                                              "200",
		"GET /thing HTTP/1.0\r\n\r\n":                                             "421",
	} {
		if got := exchange(t, addr, request); !strings.HasPrefix(got, "HTTP/1.1 "+want+" ") {
			t.Errorf("%.30q: got %q, want %s", request, got, want)
		}
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
	withTLS := func(c *Config) { withTokens(c); c.TLS = &tls.Config{} }
	for _, c := range []struct {
		listen string
		change func(*Config)
		ok     bool
	}{
		{"127.0.0.1:0", nil, true},
		{"127.9.9.9:80", nil, true},
		{"[::1]:9080", nil, true},
		{"localhost:9080", nil, true},
		{":9080", nil, false},
		{"0.0.0.0:9080", nil, false},
		{"[::]:9080", nil, false},
		{"192.0.2.1:9080", nil, false},
		{"example.org:80", nil, false},
		{"localhost", nil, false},
		{"127.0.0.1.:9080", nil, false},
		{":9080", withTokens, false},
		{":9080", withTLS, true},
		{"127.0.0.1:9080", withTokens, true},
		{":9080", func(c *Config) { c.TLS = &tls.Config{} }, false},
	} {
		cfg := Config{Listener: at{addr: c.listen}}
		if c.change != nil {
			c.change(&cfg)
		}
		if _, err := New(cfg); (err == nil) != c.ok {
			t.Errorf("listen on %q: error %v, want ok %v", c.listen, err, c.ok)
		}
	}
}

// TestGuessingIsSlow has somebody try tokens: before long they have to wait, and who has
// one does not.
func TestGuessingIsSlow(t *testing.T) {
	base, _ := start(t, withTokens)
	tries := 0
	for ; tries < 100; tries++ {
		resp, _ := ask(t, "GET", base+"/thing", "", "Authorization", fmt.Sprintf("Bearer guess-%016d", tries))
		if resp.StatusCode == http.StatusTooManyRequests {
			if resp.Header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
			break
		}
	}
	if tries < 5 || tries > 30 {
		t.Errorf("%d tokens were tried before it said no", tries)
	}
	if resp, body := ask(t, "GET", base+"/thing", "", "Authorization", "bearer "+readToken); resp.StatusCode != 200 {
		t.Errorf("with a good token: %d %s", resp.StatusCode, body)
	}
}

func TestFloodIsBounded(t *testing.T) {
	base, _ := start(t, nil)
	for i := range 20 * askBurst { // more may be asked meanwhile, on a slow machine many
		if resp, _ := ask(t, "GET", base+"/thing/open", ""); resp.StatusCode == http.StatusTooManyRequests {
			if i < askBurst {
				t.Errorf("request %d of a burst of %d is refused", i, askBurst)
			}
			return
		}
	}
	t.Errorf("%d requests at once, and none is refused", 20*askBurst)
}

func TestLargeBodies(t *testing.T) {
	base, _ := start(t, nil)
	if resp, body := ask(t, "POST", base+"/thing", strings.Repeat("x", MaxBody)); resp.StatusCode != 200 {
		t.Errorf("a body of %d bytes: %d %s", MaxBody, resp.StatusCode, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/thing", strings.NewReader(strings.Repeat("x", MaxBody+1)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it was cut off while it was sent
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), `"code":1007`) {
		t.Errorf("a body that is too large: %d %s, want 413 with the code 1007", resp.StatusCode, body)
	}
}

func TestTokensChange(t *testing.T) {
	base, s := start(t, withTokens)
	next := new(Tokens)
	if err := next.Add("another-0123456789", Read); err != nil {
		t.Fatal(err)
	}
	if err := s.SetTokens(next); err != nil {
		t.Fatal(err)
	}
	if resp, _ := ask(t, "GET", base+"/thing", "", "Authorization", "Bearer "+readToken); resp.StatusCode != 401 {
		t.Errorf("a token that is good no more: %d", resp.StatusCode)
	}
	if resp, _ := ask(t, "GET", base+"/thing", "", "Authorization", "Bearer another-0123456789"); resp.StatusCode != 200 {
		t.Errorf("the token that is good now: %d", resp.StatusCode)
	}
	if s.SetTokens(nil) == nil {
		t.Error("a listener with tokens is opened to everybody")
	}
}

func TestOverTLS(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS()
	defer pair.Close()
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.TLS = &tls.Config{Certificates: pair.TLS.Certificates}
	})
	pool := x509.NewCertPool()
	pool.AddCert(pair.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}}, Timeout: 10 * time.Second}
	req, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(base, "http:", "https:", 1)+"/thing", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+readToken)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("over TLS: %d", resp.StatusCode)
	}
	client.CloseIdleConnections()
}

func TestTokensAreParsed(t *testing.T) {
	good := "\ufeff# for people\n\nread " + readToken + " the night shift\n  write\t" + writeToken + "\n"
	tokens, err := ParseTokens(good)
	if err != nil {
		t.Fatal(err)
	}
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
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", text, err, says)
		}
		if err != nil && strings.Contains(err.Error(), readToken) {
			t.Errorf("the error tells the token: %v", err)
		}
	}
}

// TestPartsByPath has net/http handlers and the dashboard be found.
func TestPartsByPath(t *testing.T) {
	paths := NewPaths(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }),
		map[string]Scope{"/status": Read, "/readyz": Nothing})
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.Parts = []Part{paths, Dashboard{page{}}}
	})
	for path, want := range map[string]int{
		"/readyz": 200, "/status": 401, "/dashboard/": 200, "/dashboard/app.js": 200,
		"/api/v1/watch": 401, "/api/v1/rooms/x/watch": 401, "/api/v1/rooms/x/history": 401, "/": 200,
	} {
		if resp, body := ask(t, "GET", base+path, ""); resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, resp.StatusCode, body, want)
		}
	}
	for path, want := range map[string]int{"/status": 200, "/api/v1/watch": 200, "/api/v1/rooms/x/watch": 200, "/api/v1/rooms/x": 404} {
		if resp, body := ask(t, "GET", base+path, "", "Authorization", "Bearer "+readToken); resp.StatusCode != want {
			t.Errorf("%s with a token: %d %s, want %d", path, resp.StatusCode, body, want)
		}
	}
}

// TestPathsMeanOneThing: what a token has to be good for is found by the path, so nobody may
// take another one out of it afterwards.
func TestPathsMeanOneThing(t *testing.T) {
	api, err := admin.New(admin.Config{Mesh: &admintest.Mesh{}})
	if err != nil {
		t.Fatal(err)
	}
	base, _ := start(t, func(c *Config) {
		withTokens(c)
		c.Parts = []Part{Dashboard{page{}}, API{api}}
	})
	const bypass = `{"search_engine_crawler_bypass":true}`
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/api/v1/zones/..", readToken, 400},
		{"/api/v1/zones/%2e%2E", readToken, 400},
		{"/api/v1/zones/x/../y", writeToken, 400},
		{"/api/v1//zones/x", writeToken, 400},
		{"/client/v4/zones/../waiting_rooms/settings", readToken, 400},
		{"/client/v4/zones/x%2F..%2Fy/waiting_rooms/settings", readToken, 400},
		{"/dashboard/..%2f..%2fapi/v1/zones/x", "", 400},
		{"/api/v1/zones/%zz", readToken, 400},
		{"/api/v1/zones/a%2Fb", readToken, 403},
		{"/api/v1/zones/.", readToken, 403},
		{"/api/v1/zones/%78", readToken, 403},
		{"/api/v1/zones/%78", writeToken, 200},
		{"/api/v1/zones/x..y", writeToken, 200},
	} {
		req := httptest.NewRequest(http.MethodPut, base, strings.NewReader(bypass))
		req.RequestURI, req.URL.Opaque = "", strings.TrimPrefix(base, "http:")+c.path // as it stands
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s with %q: %d, want %d", c.path, c.token, resp.StatusCode, c.want)
		}
	}
}

type page struct{}

func (page) Serve(ctx *fasthttp.RequestCtx) bool { fmt.Fprint(ctx, "page"); return true }

// TestRequestsOutliveTheStop: fasthttp changes, unguarded, what would tell a request that the
// server stops, so nobody may wait for it.
func TestRequestsOutliveTheStop(t *testing.T) {
	says := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Context().Done() == nil) })
	base, _ := start(t, func(c *Config) {
		c.Parts = []Part{NewPaths(says, map[string]Scope{"/one": Read, "/below/": Read})}
	})
	for _, path := range []string{"/one", "/below/x"} {
		if resp, body := ask(t, "GET", base+path, ""); resp.StatusCode != 200 || body != "true" {
			t.Errorf("%s: %d, waits for nothing: %s", path, resp.StatusCode, body)
		}
	}
}

// TestRunThatIsToEndBeforeItBegan ends all the same. Which of the two comes first is up to the scheduler, so it is tried often.
func TestRunThatIsToEndBeforeItBegan(t *testing.T) {
	for range 200 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{Listener: ln, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
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
