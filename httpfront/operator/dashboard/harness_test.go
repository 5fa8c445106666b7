package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/httpfront/browsertest"
)

// stage serves a dashboard of a fake mesh, with an API that edits it.
type stage struct {
	*Handler
	t    testing.TB
	mesh *fakeMesh
	addr string
	stop func() // ends Run, and waits for it

	mu     sync.Mutex // guards the following
	scopes []string   // of someToken; nobody has another one
	edits  []string   // that came: method, path and body
}

const (
	someToken    = "a-token-that-may-write"
	writeTimeout = 200 * time.Millisecond // of the server; streams have their own
)

func serve(t testing.TB, mesh *fakeMesh, set func(*pace)) *stage {
	return serveOn(t, listen(), mesh, set)
}

func listen() net.Listener { return must(net.Listen("tcp", "127.0.0.1:0")) }

// must is for the steps of a test that are not what it is about.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// decode reads JSON that has to be in order.
func decode[T any](text []byte) (v T) {
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return v
}

// tight is a listener whose connections hold little of what nobody reads.
type tight struct{ net.Listener }

const tightBuffer = 4 << 10 // bytes; the kernel takes some more

func (l tight) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetWriteBuffer(tightBuffer)
}

func serveOn(t testing.TB, ln net.Listener, mesh *fakeMesh, set func(*pace)) *stage {
	s := &stage{t: t, mesh: mesh, scopes: []string{looks, write}}
	cfg := Config{Source: mesh, Authorize: func(token string) bool { return s.may(token, looks) }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	s.Handler = must(New(cfg))
	if set != nil {
		set(&s.pace)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(s.stop)
	s.addr = ln.Addr().String()
	server := &fasthttp.Server{Handler: s.answer, CloseOnShutdown: true, WriteTimeout: writeTimeout, ReadBufferSize: 16 << 10, KeepHijackedConns: true}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ln) })
	t.Cleanup(func() {
		s.stop()
		_ = server.Shutdown()
		_ = ln.Close() // also of a server that had not begun to serve when it was shut down
		serving.Wait()
	})
	return s
}

func (s *stage) answer(ctx *fasthttp.RequestCtx) {
	_, known := s.Needs("", string(ctx.Path()))
	switch {
	case known:
		s.Serve(ctx)
	case strings.HasPrefix(string(ctx.Path()), apiPath+"rooms/"):
		s.edit(ctx)
	default:
		ctx.SetStatusCode(fasthttp.StatusNotFound)
	}
}

func (s *stage) may(token, scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return token == someToken && slices.Contains(s.scopes, scope)
}

// allow says what the token may from now on.
func (s *stage) allow(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = scopes
}

func (s *stage) edited() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.edits)
}

// wantEdit waits for edits to be so many, and fails where the last one does not say all this.
func (s *stage) wantEdit(n int, says ...string) {
	s.t.Helper()
	waitFor(s.t, fmt.Sprintf("edit %d: %s", n, says), func() bool { return len(s.edited()) == n })
	for _, part := range says {
		if got := s.edited()[n-1]; !strings.Contains(got, part) {
			s.t.Errorf("it sent %s, want %s", got, part)
		}
	}
}

func (s *stage) url(path string) string { return "http://" + s.addr + path }

// room is the id of the first room.
func (s *stage) room() string { return s.mesh.first().ID }

// get asks with a token, and leaves the body to the test.
func (s *stage) get(path string, head ...string) *http.Response {
	req := must(http.NewRequestWithContext(s.t.Context(), "GET", s.url(path), nil))
	req.Header.Set("Authorization", "Bearer "+someToken)
	for i := 0; i < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp := must(client.Do(req))
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// follower reads a stream.
type follower struct {
	t     testing.TB
	head  http.Header
	body  io.Closer
	lines *bufio.Scanner
}

func (s *stage) follow(path string) *follower {
	resp := s.get(path)
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	return &follower{s.t, resp.Header, resp.Body, lines}
}

// next returns the next event that is no comment; "" is the end.
func (f *follower) next() (name, data string) {
	for f.lines.Scan() {
		switch line := f.lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimPrefix(line, "data: ")
		case line == "" && name != "":
			return name, data
		}
	}
	return "", ""
}

// want returns what the next event tells, which has to have that name, and to say all this.
func (f *follower) want(name string, says ...string) []byte {
	f.t.Helper()
	got, data := f.next()
	if got != name {
		f.t.Fatalf("there comes %q %s, want %s", got, data, name)
	}
	for _, part := range says {
		if !strings.Contains(data, part) {
			f.t.Errorf("there comes %s, want %s in it", data, part)
		}
	}
	return []byte(data)
}

func (f *follower) wantEnd() {
	f.t.Helper()
	if name, data := f.next(); name != "" {
		f.t.Errorf("after the end comes %s %s", name, data)
	}
}

// waitFor waits until is returns true.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func newBrowser(t testing.TB) context.Context {
	t.Helper()
	return browsertest.New(t, 1360, 900, chromedp.Flag("enable-precise-memory-info", true), chromedp.Flag("hide-scrollbars", false))
}

// tab is a tab of a browser that looks at the dashboard of a stage.
type tab struct{ *browsertest.Tab }

func newTab(t testing.TB, browser context.Context) *tab {
	t.Helper()
	b := &tab{browsertest.NewTab(t, browser)}
	b.Before(watching)
	return b
}

// sitDown is somebody at a browser who may change things.
func sitDown(t testing.TB, mesh *fakeMesh) (*stage, *tab) {
	t.Helper()
	s, b := serve(t, mesh, nil), newTab(t, newBrowser(t))
	b.signedIn(someToken)
	return s, b
}

// look opens a view of the dashboard of a mesh in a browser, for somebody who may change things.
func look(t *testing.T, mesh *fakeMesh, view string) (*stage, *tab) {
	t.Helper()
	s, b := sitDown(t, mesh)
	b.open(s, view)
	return s, b
}

// watching notes in every page what goes wrong in it, and which requests it makes.
const watching = `
self.wrong = []
addEventListener('error', e => wrong.push('error: ' + e.message))
addEventListener('unhandledrejection', e => wrong.push('rejection: ' + e.reason))
addEventListener('securitypolicyviolation', e => wrong.push('policy: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber))
`

// signedIn has the pages of the tab find a token that was entered before.
func (b *tab) signedIn(token string) {
	b.T.Helper()
	b.Before(fmt.Sprintf("try { sessionStorage.setItem('ropeline-token', %q) } catch {}", token))
}

// open goes to a view of the dashboard, and returns when it shows something.
func (b *tab) open(s *stage, view string) {
	b.T.Helper()
	b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.url("/dashboard/"+view)))
	b.Awaits("document.querySelector('#health')?.hidden === false || !!document.querySelector('dialog')")
}

// press presses a key.
func (b *tab) press(key string) {
	b.T.Helper()
	b.Do(chromedp.KeyEvent(key))
}

// settle lets the page draw what it knows, and stores a screenshot.
func (b *tab) settle(name string) {
	b.T.Helper()
	b.Run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
	b.Keep(name)
}

// wantNothingWrong reports errors of the page, and what its policy kept it from.
func (b *tab) wantNothingWrong() {
	b.T.Helper()
	if wrong := browsertest.See[[]string](b.Tab, "wrong"); len(wrong) > 0 {
		b.T.Errorf("in the page: %v", wrong)
	}
}
