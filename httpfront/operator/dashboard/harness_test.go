package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// stage serves a dashboard of a fake mesh, with an API that edits it.
type stage struct {
	*Handler
	t    *testing.T
	mesh *fakeMesh
	addr string
	stop func() // ends Run, and waits for it

	mu     sync.Mutex          // guards the following
	tokens map[string][]scope  // by token; "" is nobody's
	edits  []edit              // that came
	heads  map[string][]string // of requests, by path: Authorization
}

const (
	someToken    = "a-token-that-may-write"
	writeTimeout = 200 * time.Millisecond // of the server; streams have their own
)

func serve(t *testing.T, mesh *fakeMesh, set func(*pace)) *stage {
	t.Helper()
	return serveOn(t, listen(t), mesh, set)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
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

func serveOn(t *testing.T, ln net.Listener, mesh *fakeMesh, set func(*pace)) *stage {
	t.Helper()
	s := &stage{t: t, mesh: mesh, tokens: map[string][]scope{someToken: {looks, write}}, heads: map[string][]string{}}
	cfg := Config{Source: mesh, Authorize: func(token string) bool { return s.may(token, looks) }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	var err error
	if s.Handler, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if set != nil {
		set(&s.pace)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	s.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(s.stop)
	s.addr = ln.Addr().String()
	server := &fasthttp.Server{Handler: s.answer, CloseOnShutdown: true, WriteTimeout: writeTimeout}
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
	s.mu.Lock()
	path := string(ctx.Path())
	s.heads[path] = append(s.heads[path], string(ctx.Request.Header.Peek("Authorization")))
	s.mu.Unlock()
	if s.Serve(ctx) {
		return
	}
	if strings.HasPrefix(path, apiPath+"rooms/") {
		(&fakeAPI{s.mesh, s.may}).serve(ctx, func(e edit) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.edits = append(s.edits, e)
		})
		return
	}
	ctx.SetStatusCode(fasthttp.StatusNotFound)
}

func (s *stage) may(token string, to scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.tokens[token], to)
}

// allow says what a token may from now on.
func (s *stage) allow(token string, scopes ...scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[token] = scopes
}

func (s *stage) edited() []edit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]edit(nil), s.edits...)
}

func (s *stage) url(path string) string { return "http://" + s.addr + path }

// get asks with a token, and leaves the body to the test.
func (s *stage) get(path string, head ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url(path), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+someToken)
	for i := 0; i < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// sse is one event of a stream.
type sse struct {
	name string // "" for a comment
	data json.RawMessage
}

// reading returns what reads one event after the other; false is the end.
func reading(t *testing.T, resp *http.Response) func() (sse, bool) {
	t.Helper()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	return func() (sse, bool) {
		var e sse
		for lines.Scan() {
			line := lines.Text()
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = json.RawMessage(data)
			}
			if line == "" {
				return e, true
			}
		}
		return e, false
	}
}

// waitFor waits until is returns true.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
