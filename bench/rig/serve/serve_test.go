package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start runs a server until the test ends, and returns its URL.
func start(t *testing.T, c Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Listen = ln.Addr().String()
	ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("tcp", c.Listen); err == nil {
			conn.Close()
			return "http://" + c.Listen + "/"
		}
	}
	t.Fatalf("nobody listens on %s", c.Listen)
	return ""
}

func get(t *testing.T, url string, fields ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// What was recorded of one server is what the others answer.
func TestRecordedAnswersAreGivenAgain(t *testing.T) {
	want := Answer{Status: http.StatusAccepted, Fields: [][2]string{{"Content-Type", "text/html; charset=utf-8"}, {"Refresh", "20"}, {"Set-Cookie", "a=1; Path=/"}}, Body: []byte(`<p class="a">$5 \ `)}
	file := filepath.Join(t.TempDir(), "answer")
	if err := want.Save(file); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []Kind{Fasthttp, NetHTTP} {
		got, err := Record(get(t, start(t, Config{Kind: kind, Answer: file})))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, %v, want %v", kind, got, err, want)
		}
	}
}

func TestProxiesTakeOutFieldsOfOneHop(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Keep-Alive", "timeout=5")
		fmt.Fprint(w, r.Host, " ", r.Header.Get("Proxy-Connection"), " ", r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("Cookie"))
	}))
	t.Cleanup(site.Close)
	for _, kind := range []Kind{FasthttpProxy, NetHTTPProxy} {
		url := start(t, Config{Kind: kind, Site: strings.TrimPrefix(site.URL, "http://")})
		resp := get(t, url, "Proxy-Connection: keep-alive", "Cookie: a=1")
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/") + "  127.0.0.1 a=1"
		if err != nil || string(body) != want || resp.Header.Get("Keep-Alive") != "" {
			t.Errorf("%s: got %q and %v, %v, want %q", kind, body, resp.Header, err, want)
		}
	}
}

func TestAKindThatThereIsNot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer")
	if err := Plain(1).Save(file); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), Config{Kind: "gopher", Answer: file}); err == nil {
		t.Error("it was served")
	}
}
