package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newTestClient returns a client for one target, and its config.
func newTestClient(t testing.TB, cfg Config) *client {
	t.Helper()
	cfg, targets, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(cfg, targets, time.Now())
	t.Cleanup(c.close)
	return c
}

func get(path string, j *jar) request {
	return request{method: http.MethodGet, path: path, jar: j}
}

func TestClientSendsWhatIsMeant(t *testing.T) {
	seen := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Clone(context.Background())
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "new"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2"})
	}))
	defer server.Close()
	c := newTestClient(t, Config{Targets: []string{server.URL}, Host: "shop.example", Accept: AcceptHTML})
	j := new(jar)
	j.set("a=old", time.Now())
	a, err := c.do(t.Context(), 0, request{method: http.MethodPost, path: "/x?y=%20", agent: "me", jar: j})
	if err != nil || a.verdict != admitted || a.status != 200 || a.done < a.sent {
		t.Fatalf("got %+v, %v", a, err)
	}
	r := <-seen
	if r.Method != "POST" || r.Host != "shop.example" || r.RequestURI != "/x?y=%20" || r.ContentLength != 0 ||
		r.UserAgent() != "me" || r.Header.Get("Accept") != AcceptHTML || r.Header.Get("Cookie") != "a=old" {
		t.Errorf("got %s %s of %s with %v", r.Method, r.RequestURI, r.Host, r.Header)
	}
	if got := string(j.appendHeader(nil, time.Now())); got != "Cookie: a=new; b=2\r\n" {
		t.Errorf("kept %q", got)
	}
}

// Whatever its framing, an answer is read to its end and the connection used
// again.
func TestClientReusesConnections(t *testing.T) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = io.CopyN(w, neverEnding('x'), 5<<20)
		case "/chunks":
			for range 10 {
				_, _ = io.WriteString(w, "some of it")
				w.(http.Flusher).Flush()
			}
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "then this")
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"x":"`+strings.Repeat("y", 2*maxJSON)+`"}`)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newTestClient(t, Config{Targets: []string{server.URL}})
	for _, path := range []string{"/long", "/chunks", "/empty", "/unchanged", "/hints", "/json", "/"} {
		before := conns.Load()
		for range 2 {
			a, err := c.do(t.Context(), 0, get(path, new(jar)))
			if err != nil || a.verdict != admitted {
				t.Errorf("%s: got %+v, %v", path, a, err)
			}
		}
		if n := conns.Load() - before; n > 1 || before == 1 && n > 0 {
			t.Errorf("%s: %d more connections", path, n)
		}
	}
	a, err := c.do(t.Context(), 0, request{method: http.MethodHead, path: "/json", jar: new(jar)})
	if err != nil || a.verdict != admitted {
		t.Errorf("HEAD: got %+v, %v", a, err)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestClientBrokenAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "",
		"no http":      "hello\r\n\r\n",
		"cut head":     "HTTP/1.1 200 OK\r\nContent-Le",
		"cut body":     "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"cut chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"endless head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*headSize),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newMemoryNet()
				l := network.listen("node:80")
				defer l.Close()
				go func() {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = io.WriteString(conn, text)
					_ = conn.Close()
				}()
				c := newTestClient(t, Config{Targets: []string{"http://node"}, Dial: network.dial})
				if a, err := c.do(t.Context(), 0, get("/", new(jar))); err == nil {
					t.Errorf("got %+v, want an error", a)
				}
				if n := len(c.pools[0].slots); n != 0 {
					t.Errorf("%d broken connections are kept", n)
				}
			})
		})
	}
}

// A server that closes idle connections causes no errors.
func TestClientSendsAgainOverStaleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		l := network.listen("node:80")
		server := &http.Server{Handler: http.NotFoundHandler(), IdleTimeout: time.Second}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(l) }()
		c := newTestClient(t, Config{Targets: []string{"http://node"}, Dial: network.dial})
		for range 3 {
			if _, err := c.do(t.Context(), 0, get("/", new(jar))); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
		}
		_ = server.Close()
		<-done
		if _, err := c.do(t.Context(), 0, get("/", new(jar))); err == nil {
			t.Error("got an answer from a dead server")
		}
	})
}

func TestClientTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		hang := make(chan struct{})
		kill := network.serve(t, "node:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		c := newTestClient(t, Config{Targets: []string{"http://node"}, Dial: network.dial, RequestTimeout: 3 * time.Second, Conns: 1})
		start := time.Now()
		second := make(chan error)
		go func() {
			time.Sleep(time.Second)
			_, err := c.do(t.Context(), 0, get("/", new(jar)))
			second <- err
		}()
		if _, err := c.do(t.Context(), 0, get("/", new(jar))); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v, want a timeout after 3s", err, time.Since(start))
		}
		// The other one had to wait for the connection, and then had as much time.
		if err := <-second; err == nil || time.Since(start) != 6*time.Second {
			t.Errorf("got %v after %v, want a timeout after 6s", err, time.Since(start))
		}
		close(hang)
		kill()
	})
}

// What waits for a connection for too long is never sent.
func TestClientTimesOutWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		defer network.serve(t, "node:80", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/first" {
				t.Errorf("got %s, want nothing but the first", r.URL)
			}
			time.Sleep(4 * time.Second)
		}))()
		c := newTestClient(t, Config{Targets: []string{"http://node"}, Dial: network.dial, RequestTimeout: 5 * time.Second, Conns: 1})
		first := make(chan error)
		go func() {
			_, err := c.do(t.Context(), 0, get("/first", new(jar)))
			first <- err
		}()
		time.Sleep(time.Second)
		hasty := *c
		hasty.timeout = 2 * time.Second
		start := time.Now()
		if _, err := hasty.do(t.Context(), 0, get("/", new(jar))); !errors.Is(err, errNoConn) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v, want %v after 2s", err, time.Since(start), errNoConn)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

func TestClientBoundsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		network := newMemoryNet()
		defer network.serve(t, "node:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
		}))()
		r, err := Run(t.Context(), Config{
			Targets: []string{"http://node/"}, Dial: network.dial, Conns: 3, Crowd: Crowd{Burst: 9},
		}, nil)
		if err != nil || r.Admitted != 9 || r.ElapsedSeconds != 3 {
			t.Errorf("got %+v, %v, want 9 visitors, served 3 at a time in 3 s", r, err)
		}
		if most.Load() != 3 {
			t.Errorf("got %d requests at one time, want 3", most.Load())
		}
	})
}

func TestClientTLS(t *testing.T) {
	server := httptest.NewTLSServer(newFakeRoom(5, time.Second))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	r, err := Run(t.Context(), Config{
		Targets: []string{server.URL}, TLS: &tls.Config{RootCAs: roots}, Crowd: Crowd{Visitors: 5},
	}, nil)
	if err != nil || r.Admitted != 5 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := Run(t.Context(), Config{Targets: []string{server.URL}}, nil); err == nil {
		t.Error("trusted a certificate that nobody vouches for")
	}
}

// BenchmarkPolls measures what the generator itself can send: visitors who are
// always told to come back over a server that does next to nothing. The server
// shares the processor, so that the true limit is higher.
func BenchmarkPolls(b *testing.B) {
	for _, kind := range []string{"html", "json"} {
		b.Run(kind, func(b *testing.B) {
			address := pollServer(b, kind == "json")
			c := newTestClient(b, Config{Targets: []string{"http://" + address}})
			tally := newTally(time.Minute)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				j, v := new(jar), tally.arrive(0)
				for pb.Next() {
					a, err := c.do(context.Background(), 0, get("/", j))
					if err != nil || a.verdict != waiting {
						b.Error(a, err)
						return
					}
					tally.answer(v, a.sent, a)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "polls/s")
		})
	}
}

// BenchmarkPollsNetHTTP does the same with the standard client, which is what
// ours has to be better than.
func BenchmarkPollsNetHTTP(b *testing.B) {
	address := pollServer(b, true)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		j := new(jar)
		for pb.Next() {
			req, err := http.NewRequest(http.MethodGet, "http://"+address, nil)
			if err != nil {
				b.Error(err)
				return
			}
			for _, c := range j.cookies {
				req.AddCookie(&http.Cookie{Name: c.name, Value: c.value})
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			j.set(resp.Header.Get("Set-Cookie"), time.Now())
			if h := (head{status: resp.StatusCode, body: body}); err != nil || h.read(time.Now()).verdict != waiting {
				b.Error(resp.Status, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "polls/s")
}

// pollServer answers as a busy room would, with a body of a waiting page's size.
func pollServer(b *testing.B, json bool) (address string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	body, contentType := strings.Repeat("x", 6000), "text/html"
	if json {
		body = `{"cfWaitingRoom":{"inWaitingRoom":true,"waitTime":3,"waitTimeKnown":true,"waitTimeFormatted":"3 minutes",` +
			`"queueAll":false,"lastUpdated":"2026-01-02T03:04:05Z","refreshIntervalSeconds":20,"queueingMethod":"fifo",` +
			`"arrival":"2026-01-02T03:00:00.250Z","position":17,"peopleAhead":16,"room":"default"}}`
		contentType = "application/json"
	}
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nRefresh: 20\r\n"+
		"Ropeline-State: waiting\r\nSet-Cookie: ropeline=%0160d; Path=/; Max-Age=300; HttpOnly\r\n\r\n%s",
		contentType, len(body), 7, body)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { answerAll(conn, answer) })
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// answerAll gives the same answer to every request on conn. It takes one read
// for one request, which holds for clients that do not send ahead.
func answerAll(conn net.Conn, answer []byte) {
	defer conn.Close()
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
