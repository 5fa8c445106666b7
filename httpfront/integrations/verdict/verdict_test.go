package verdict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeJudge answers as a test says, and keeps what it was asked.
type fakeJudge struct {
	answer httpfront.Answer
	cookie string
	err    error
	jwks   []byte

	mu    sync.Mutex // guards the following
	asked []httpfront.Question
}

func (j *fakeJudge) Judge(q *httpfront.Question) httpfront.Answer {
	j.keep(q)
	return j.answer
}

func (j *fakeJudge) Revoke(q *httpfront.Question) (string, error) {
	j.keep(q)
	return j.cookie, j.err
}

func (j *fakeJudge) JWKS() []byte { return j.jwks }

func (j *fakeJudge) keep(q *httpfront.Question) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, *q)
}

// take returns what was asked since it was called last.
func (j *fakeJudge) take() []httpfront.Question {
	j.mu.Lock()
	defer j.mu.Unlock()
	asked := j.asked
	j.asked = nil
	return asked
}

// expectAsked returns what was asked since it was called last: once, about
// POST https://shop.example/cart?a=%2F of 192.0.2.1.
func (j *fakeJudge) expectAsked(t *testing.T, what string) httpfront.Question {
	t.Helper()
	asked := j.take()
	if len(asked) != 1 {
		t.Fatalf("%s: asked %d times", what, len(asked))
	}
	q := asked[0]
	if q.Method != "POST" || q.Target != "/cart?a=%2F" || q.Host != "shop.example" || q.Scheme != "https" || q.For != "192.0.2.1" ||
		q.Peer != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%s: asked %+v", what, q)
	}
	return q
}

func (j *fakeJudge) expectNotAsked(t *testing.T) {
	t.Helper()
	if asked := j.take(); len(asked) != 0 {
		t.Errorf("asked %+v", asked)
	}
}

var (
	admitted = httpfront.Answer{Outcome: httpfront.Admitted, Cookie: "ropeline=in; Path=/"}
	queued   = httpfront.Answer{
		Outcome: httpfront.Queued, Cookie: "ropeline=waits; Path=/", Status: 200, Body: []byte("<h1>You are in line</h1>"),
		Fields: []httpfront.AnswerField{
			{Name: "Content-Type", Value: "text/html; charset=utf-8"},
			{Name: "Cache-Control", Value: "private, no-store"},
			{Name: "Refresh", Value: "20"},
			{Name: "Retry-After", Value: "20"},
		},
	}
	malformed   = httpfront.Answer{Outcome: httpfront.Malformed, Status: 431, Body: []byte("431 too many header fields\n")}
	unavailable = httpfront.Answer{
		Outcome: httpfront.Unavailable, Status: 503, Body: []byte("<h1>This server is starting</h1>"),
		Fields: []httpfront.AnswerField{{Name: "Cache-Control", Value: "private, no-store"}, {Name: "Retry-After", Value: "2"}},
	}
)

// serve runs a server for a judge, and returns its address.
func serve(t *testing.T, j Judge, trusted string, change ...func(*Config)) string {
	addr, _ := serveUntil(t, j, trusted, change...)
	return addr
}

// serveUntil is serve, until stop is called.
func serveUntil(t *testing.T, j Judge, trusted string, change ...func(*Config)) (addr string, stop func()) {
	ln := must.Do(net.Listen("tcp", "127.0.0.1:0"))
	cfg := Config{
		Listener: ln, Judge: j, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(trusted)},
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	return ln.Addr().String(), must.Run(t, must.Do(New(cfg)).Run)
}

// judged runs a server that trusts those of a network, for a judge that answers so.
func judged(t *testing.T, answer httpfront.Answer, trusted string) (j *fakeJudge, addr string) {
	j = &fakeJudge{answer: answer}
	return j, serve(t, j, trusted)
}

// h2c speaks HTTP/2 without TLS.
func h2c() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: protocols}
}

// ask sends one request with fields given as name, value, name, value, ….
func ask(t *testing.T, method, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	req := must.Do(http.NewRequestWithContext(t.Context(), method, url, nil))
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			req.Host = fields[i+1]
			continue
		}
		req.Header.Add(fields[i], fields[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp := must.Do(client.Do(req))
	defer resp.Body.Close()
	return resp, string(must.Do(io.ReadAll(resp.Body)))
}

// wantCode is ask, and fails where the answer has another code.
func wantCode(t *testing.T, code int, method, url string, fields ...string) {
	t.Helper()
	resp, _ := ask(t, method, url, fields...)
	equal(t, method+" "+url, resp.StatusCode, code)
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// How proxies ask in each dialect about POST https://shop.example/cart?a=%2F of
// 192.0.2.1.
var (
	asAll     = []string{"X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.1", "Cookie", "a=b"}
	asNginx   = append([]string{"X-Original-Method", "POST", "X-Original-URI", "/cart?a=%2F", "X-Forwarded-Host", "shop.example"}, asAll...)
	asForward = append([]string{"X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/cart?a=%2F", "X-Forwarded-Host", "shop.example"}, asAll...)
	asEnvoy   = append([]string{"Host", "shop.example"}, asAll...)
)

var dialects = []struct {
	method, path string
	fields       []string
}{
	{"GET", "/nginx", asNginx},
	{"GET", "/nginx/page", asNginx},
	{"GET", "/forward", asForward},
	{"HEAD", "/forward", asForward},
	{"POST", "/envoy/cart?a=%2F", asEnvoy},
}

func TestEveryDialectAsksTheSame(t *testing.T) {
	j, addr := judged(t, admitted, "127.0.0.0/8")
	for _, d := range dialects {
		ask(t, d.method, "http://"+addr+d.path, d.fields...)
		q := j.expectAsked(t, d.path)
		equal(t, d.path+": asked again", q.Again, d.path == "/nginx/page")
		var cookies []string
		for name, value := range q.Fields {
			if name == "Cookie" {
				cookies = append(cookies, value)
			}
		}
		equal(t, d.path+": cookies", strings.Join(cookies, " and "), "a=b")
	}
}

// TestVerdictsHaveCodesThatProxiesUnderstand is the rule that everything depends on:
// 2xx for who is let in and for nobody else, and never 5xx.
func TestVerdictsHaveCodesThatProxiesUnderstand(t *testing.T) {
	for _, c := range []struct {
		answer                      httpfront.Answer
		nginx, page, forward, envoy int
	}{
		{admitted, 200, 429, 200, 200},
		{queued, 401, 200, 429, 429},
		{malformed, 403, 431, 431, 431},
		{unavailable, 401, 503, 429, 429},
	} {
		_, addr := judged(t, c.answer, "127.0.0.0/8")
		want := map[string]int{"/nginx": c.nginx, "/nginx/page": c.page, "/forward": c.forward, "/envoy/cart?a=%2F": c.envoy}
		for _, d := range dialects {
			of := fmt.Sprintf("%v, %s", c.answer.Outcome, d.path)
			resp, body := ask(t, d.method, "http://"+addr+d.path, d.fields...)
			cached := resp.Header.Values("Cache-Control")
			if resp.StatusCode != want[d.path] || len(cached) != 1 || !strings.Contains(cached[0], "no-store") {
				t.Errorf("%s: code %d, want %d; Cache-Control %q", of, resp.StatusCode, want[d.path], cached)
			}
			fields := []httpfront.AnswerField{{Name: "Set-Cookie", Value: c.answer.Cookie}}
			if d.path != "/nginx" && d.method != "HEAD" && c.answer.Outcome != httpfront.Admitted {
				equal(t, of+": body", body, string(c.answer.Body))
				fields = append(fields, c.answer.Fields...)
			}
			for _, f := range fields {
				equal(t, of+": "+f.Name, strings.Join(resp.Header.Values(f.Name), " and "), f.Value)
			}
		}
	}
}

func TestProofsReachTheProxy(t *testing.T) {
	proven, plain := admitted, admitted
	proven.ProofField, proven.Proof = "Ropeline-Proof", "a.b.c"
	plain.ProofField = "Ropeline-Proof"
	for _, answer := range []httpfront.Answer{proven, plain} {
		addr := serve(t, &fakeJudge{answer: answer}, "127.0.0.0/8")
		for _, d := range dialects {
			resp, _ := ask(t, d.method, "http://"+addr+d.path, d.fields...)
			want := answer.Proof
			if d.path == "/nginx/page" {
				want = "" // visitors get that answer
			}
			equal(t, d.path+": proof", resp.Header.Get("Ropeline-Proof"), want)
			remove := resp.Header.Get("X-Envoy-Auth-Headers-To-Remove")
			if want := strings.HasPrefix(d.path, "/envoy") && answer.Proof == ""; (remove == "Ropeline-Proof") != want {
				t.Errorf("%s: Envoy is to remove %q", d.path, remove)
			}
		}
		resp := checked(t, answer)
		set, remove := resp.GetOkResponse().GetHeaders(), resp.GetOkResponse().GetHeadersToRemove()
		if answer.Proof != "" && (len(set) != 1 || set[0].GetHeader().GetValue() != "a.b.c" || len(remove) != 0) ||
			answer.Proof == "" && (len(set) != 0 || !slices.Equal(remove, []string{"Ropeline-Proof"})) {
			t.Errorf("gRPC: sets %v, removes %v", set, remove)
		}
	}
}

func TestAnybodyMayHaveThePublicKeys(t *testing.T) {
	for _, c := range []struct {
		jwks []byte
		code int
	}{{[]byte(`{"keys":[]}`), 200}, {nil, 404}} {
		addr := serve(t, &fakeJudge{jwks: c.jwks}, "192.0.2.0/24")
		for _, path := range []string{"/jwks.json", httpfront.JWKSPath} {
			resp, body := ask(t, "GET", "http://"+addr+path)
			if resp.StatusCode != c.code || c.code == 200 && (body != string(c.jwks) || resp.Header.Get("Content-Type") != "application/jwk-set+json") {
				t.Errorf("%s: %d %q", path, resp.StatusCode, body)
			}
		}
	}
}

// TestAnybodyMayKnowWhetherANodeIsReady, over HTTP/2 too: balancers check by it, from
// wherever they are.
func TestAnybodyMayKnowWhetherANodeIsReady(t *testing.T) {
	for _, c := range []struct {
		ready error
		code  int
		says  string
	}{{nil, 200, "ready\n"}, {errors.New("waiting for the state of the site"), 503, "not ready: waiting for the state of the site\n"}} {
		addr := serve(t, &fakeJudge{answer: admitted}, "192.0.2.0/24", func(cfg *Config) { cfg.Ready = func() error { return c.ready } })
		for _, method := range []string{"GET", "HEAD"} {
			resp, body := ask(t, method, "http://"+addr+"/readyz")
			if resp.StatusCode != c.code || method == "GET" && body != c.says || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %d %v %q, want %d %q", method, resp.StatusCode, resp.Header, body, c.code, c.says)
			}
		}
		client := &http.Client{Transport: h2c(), Timeout: 10 * time.Second}
		resp := must.Do(client.Get("http://" + addr + "/readyz"))
		resp.Body.Close()
		client.CloseIdleConnections()
		if resp.ProtoMajor != 2 || resp.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", resp.Proto, resp.StatusCode, c.code)
		}
	}
	wantCode(t, 200, "GET", "http://"+serve(t, &fakeJudge{}, "192.0.2.0/24")+"/readyz") // which is always ready
}

// TestThePageOfWhoIsInLoadsAgain, and a program is told in JSON: with their pass and without the site's proof, and with the
// code for requests that did not get through.
func TestThePageOfWhoIsInLoadsAgain(t *testing.T) {
	for isJSON, want := range map[bool]struct{ kind, again, in, says string }{
		false: {"text/html; charset=utf-8", "Refresh", "0", "It is your turn"},
		true:  {"application/json", "Retry-After", "0", `{"cfWaitingRoom":{"inWaitingRoom":false}}`},
	} {
		in := admitted
		in.JSON, in.ProofField, in.Proof = isJSON, "Ropeline-Proof", "a.b.c"
		resp, body := ask(t, "GET", "http://"+serve(t, &fakeJudge{answer: in}, "127.0.0.0/8")+"/nginx/page", asNginx...)
		h := resp.Header
		if resp.StatusCode != http.StatusTooManyRequests || h.Get("Content-Type") != want.kind || h.Get("Ropeline-State") != "admitted" ||
			h.Get(want.again) != want.in || h.Get("Set-Cookie") != admitted.Cookie || h.Get("Ropeline-Proof") != "" || !strings.Contains(body, want.says) {
			t.Errorf("JSON %v: got %d %v %q", isJSON, resp.StatusCode, h, body)
		}
	}
}

func TestWhatNginxHandsBackReachesTheJudge(t *testing.T) {
	j, addr := judged(t, queued, "127.0.0.0/8")
	fields := append(slices.Clone(asNginx), "Ropeline-Set-Cookie", "ropeline=waits; Path=/")
	ask(t, "GET", "http://"+addr+"/nginx/page", fields...)
	ask(t, "GET", "http://"+addr+"/nginx", fields...)
	if asked := j.take(); len(asked) != 2 || asked[0].Cookie != "ropeline=waits; Path=/" || asked[1].Cookie != "" {
		t.Errorf("asked %+v", asked)
	}
}

func TestWhoIsNotTrustedMayNotAsk(t *testing.T) {
	j, addr := judged(t, admitted, "192.0.2.0/24")
	for _, d := range dialects {
		wantCode(t, http.StatusForbidden, d.method, "http://"+addr+d.path, d.fields...)
	}
	wantCode(t, http.StatusForbidden, "POST", "http://"+addr+"/revoke", asForward...)
	j.expectNotAsked(t)
}

// TestWhatIsNotToldIsNotGuessed leaves each field out in turn, and then has it twice: as
// where the proxy adds to what the visitor sent.
func TestWhatIsNotToldIsNotGuessed(t *testing.T) {
	j, addr := judged(t, admitted, "127.0.0.0/8")
	for _, d := range dialects[:3] {
		for i := 0; i < len(d.fields); i += 2 {
			name := d.fields[i]
			if name == "Cookie" || name == "X-Forwarded-For" {
				continue
			}
			without := slices.Delete(slices.Clone(d.fields), i, i+2)
			twice := append(slices.Clone(d.fields), name, "x")
			for what, fields := range map[string][]string{"without": without, "twice": twice} {
				resp, body := ask(t, d.method, "http://"+addr+d.path, fields...)
				refused := resp.StatusCode >= 400 && resp.StatusCode < 500
				if d.path == "/nginx" { // which knows no other
					refused = resp.StatusCode == http.StatusForbidden
				}
				if !refused || !strings.Contains(strings.ToLower(body), strings.ToLower(name)) {
					t.Errorf("%s %s %s: %d %q", d.path, what, name, resp.StatusCode, body)
				}
			}
		}
	}
	j.expectNotAsked(t)
}

func TestEnvoysPathIsNotTouched(t *testing.T) {
	j, addr := judged(t, admitted, "127.0.0.0/8")
	for _, target := range []string{"/", "//a//b", "/a/../b", "/a%2Fb?c=d?e", "/envoy/", "/?"} {
		ask(t, "GET", "http://"+addr+"/envoy"+target, "Host", "shop.example")
		if asked := j.take(); len(asked) != 1 || asked[0].Target != target {
			t.Errorf("%q: asked %+v", target, asked)
		}
	}
}

func TestRevoke(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{{nil, 204}, {httpfront.ErrNoSession, 404}, {httpfront.ErrRevokeDisabled, 403}, {errors.New("broken"), 404}} {
		j := &fakeJudge{cookie: "ropeline=; Path=/; Max-Age=0", err: c.err}
		addr := serve(t, j, "127.0.0.0/8")
		resp, _ := ask(t, "POST", "http://"+addr+"/revoke", asForward...)
		if resp.StatusCode != c.code || (resp.Header.Get("Set-Cookie") != "") != (c.err == nil) {
			t.Errorf("%v: code %d, cookie %q", c.err, resp.StatusCode, resp.Header.Get("Set-Cookie"))
		}
		if asked := j.take(); len(asked) != 1 || asked[0].Target != "/cart?a=%2F" || asked[0].Host != "shop.example" || asked[0].For != "192.0.2.1" {
			t.Errorf("asked %+v", asked)
		}
		wantCode(t, 405, "GET", "http://"+addr+"/revoke", asForward...)
		wantCode(t, 400, "POST", "http://"+addr+"/revoke")
	}
}

func TestOtherPathsAreNoVerdicts(t *testing.T) {
	j, addr := judged(t, admitted, "127.0.0.0/8")
	for _, path := range []string{"/", "/nginx/", "/nginx/other", "/forward/x", "/envoy", "/envoyx"} {
		wantCode(t, 404, "GET", "http://"+addr+path, asNginx...)
	}
	j.expectNotAsked(t)
}

func TestConfigNeedsWhatItNeeds(t *testing.T) {
	_, err := New(Config{})
	for _, want := range []string{"listen", "judge", "trusted"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not speak of %s", err, want)
		}
	}
}

// TestConnectionsAreBounded: those that ask nothing make room, strangers' before those of proxies, over both protocols.
func TestConnectionsAreBounded(t *testing.T) {
	const conns = 6
	base := serve(t, &fakeJudge{}, "127.0.0.1/32", func(c *Config) { c.Conns = conns })
	ask := func(transport *http.Transport) {
		resp := must.Do((&http.Client{Transport: transport}).Get("http://" + base + "/readyz"))
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	proxies, dialled := []*http.Transport{{}, h2c()}, 0
	for _, proxy := range proxies {
		proxy.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled++
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		defer proxy.CloseIdleConnections()
		ask(proxy)
	}
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 3 * conns {
		c := must.Do(stranger.Dial("tcp", base))
		defer c.Close()
		io.WriteString(c, "GET /readyz HTTP/1.1\r\n") // and no more
	}
	for _, proxy := range proxies {
		ask(proxy)
		equal(t, "connections of proxies, and a stranger came", dialled, len(proxies))
	}
	for range 3 * conns { // its own that ask nothing
		c := must.Do(net.Dial("tcp", base))
		defer c.Close()
	}
	ask(&http.Transport{DisableKeepAlives: true})
}

// TestConnectionsThatAskKeepTheirPlaces: beyond the bound there is none for others as long as an answer is due.
func TestConnectionsThatAskKeepTheirPlaces(t *testing.T) {
	for name, transport := range map[string]*http.Transport{"HTTP/1.1": {}, "HTTP/2": h2c()} {
		q := newSlow()
		base := serve(t, &fakeJudge{}, "127.0.0.1/32", q.in, func(c *Config) { c.Conns = 1 })
		q.ask(transport, base)
		c := must.Do(net.Dial("tcp", base))
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a connection beyond the bound: %v", name, err)
		}
		c.Close()
		close(q.answer)
		equal(t, name+": a connection that asked", <-q.done, nil)
	}
}

// TestAQuestionUnderWayIsAnsweredAtTheEnd of a server that takes no more of them.
func TestAQuestionUnderWayIsAnsweredAtTheEnd(t *testing.T) {
	q := newSlow()
	addr, stop := serveUntil(t, &fakeJudge{}, "127.0.0.1/32", q.in)
	q.ask(&http.Transport{}, addr)
	go stop()
	for { // until it has begun to end
		c, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		c.Close()
	}
	close(q.answer)
	equal(t, "the question", <-q.done, nil)
}

// slow is a question that waits for its answer.
type slow struct {
	asked, answer chan struct{}
	done          chan error
}

func newSlow() *slow { return &slow{make(chan struct{}), make(chan struct{}), make(chan error, 1)} }

// in has a server answer when the test wants it to.
func (q *slow) in(c *Config) {
	c.Ready = func() error {
		close(q.asked)
		<-q.answer
		return nil
	}
}

// ask asks, and returns once the question has come.
func (q *slow) ask(transport *http.Transport, addr string) {
	go func() {
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("http://" + addr + "/readyz")
		if err == nil {
			resp.Body.Close()
		}
		q.done <- err
	}()
	<-q.asked
}
