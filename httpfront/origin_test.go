package httpfront

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/httpfront/relay"
	"github.com/ropeline/ropeline/httpfront/upstream"
)

func TestOriginDown(t *testing.T) {
	f := serveTo(t, fakeRooms{room: newRoom(letIn)}, nowhere)
	got := f.get("/")
	if got.StatusCode != 502 || !strings.Contains(got.body, "<h1>The site cannot be reached right now</h1>") || len(got.Cookies()) != 1 ||
		got.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("got %d %v %q", got.StatusCode, got.Header, got.body)
	}
	if got := f.get("/", "Accept", "application/json"); got.StatusCode != 502 || !strings.Contains(got.body, `{"error":"The site does not answer","request":"`) {
		t.Errorf("JSON: got %d %q", got.StatusCode, got.body)
	}
	if got := f.do("POST", "/", strings.NewReader("hello")); got.StatusCode != 502 || len(got.Cookies()) != 1 {
		t.Errorf("POST: got %d", got.StatusCode)
	}
}

func TestOriginTooSlow(t *testing.T) {
	release := make(chan struct{})
	f := serve(t, fakeRooms{room: newRoom(letIn)}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-release
	}), func(c *Config) { c.Timeouts.Origin = 50 * time.Millisecond })
	defer close(release)
	if got := f.get("/"); got.StatusCode != 504 || len(got.Cookies()) != 1 {
		t.Errorf("got %d %v", got.StatusCode, got.Header)
	}
	if got := f.do("POST", "/", strings.NewReader("hello")); got.StatusCode != 504 || len(got.Cookies()) != 1 {
		t.Errorf("POST: got %d %v", got.StatusCode, got.Header)
	}
}

// TestFailuresAreToldInTheVisitorsLanguage: with the id that the log has, and with
// what the head says of it, for as long as the node is not ready.
func TestFailuresAreToldInTheVisitorsLanguage(t *testing.T) {
	notReady := errors.New("no peers yet")
	f := serve(t, fakeRooms{}, http.HandlerFunc(echo), func(c *Config) {
		c.Ready = func() error { return notReady }
	})
	for _, l := range lang.All() {
		got := f.get("/", "Accept", "text/html", "Accept-Language", "xx, "+l.Tag()+";q=0.8, en;q=0.1")
		for _, want := range []string{
			`<html lang="` + l.Tag() + `" dir="` + l.Dir() + `">`,
			"<title>" + l.Text(lang.TitleUnreachable) + "</title>", "<p>" + l.Text(lang.MessageUnreachable) + "</p>",
			"503 · <code>" + got.Header.Get("X-Request-Id") + "</code>",
		} {
			if got.StatusCode != 503 || !strings.Contains(got.body, want) || strings.Contains(got.body, "peers") {
				t.Errorf("%s: %d, want it to contain %s:\n%s", l.Tag(), got.StatusCode, want, got.body)
			}
		}
		if got.Header.Get("Content-Language") != l.Tag() || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %v", l.Tag(), got.Header)
		}
	}
	if got := f.get("/", "Accept-Language", "xx"); !strings.Contains(got.body, `<html lang="en-US" dir="ltr">`) {
		t.Errorf("a language that is not there: %s", got.body)
	}
	notReady = nil // between two requests, one of which follows the other
	if got := f.get("/"); got.StatusCode != 200 {
		t.Errorf("when ready: got %d", got.StatusCode)
	}
}

// tcpOrigin is an origin that does what each says on each connection.
func tcpOrigin(t *testing.T, each func(c net.Conn, br *bufio.Reader)) string {
	t.Helper()
	ln := loopbackListener(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				each(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	return "http://" + ln.Addr().String()
}

// TestOriginsThatMisbehave: what cannot be passed on is a 502. An origin that answers is there, also
// if its answer is of no use, and is not ejected; one that does not is not there.
func TestOriginsThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct {
		says    string
		ends    string // how what the client gets ends; "" for a 502
		ejected bool
	}{
		"nothing":              {"", "", true},
		"rubbish":              {"hello\r\n\r\n", "", true},
		"not HTTP":             {"220 mail.example ESMTP\r\n\r\n", "", true},
		"half a head":          {"HTTP/1.1 200 OK\r\nX: ", "", true},
		"an interim at most":   {"HTTP/1.1 103 Early Hints\r\n\r\n", "", true},
		"an endless head":      {"HTTP/1.1 302 Found\r\nLocation: /?" + strings.Repeat("a", 2*bufferSize), "", false},
		"a name of a field":    {"HTTP/1.1 200 OK\r\nX Y\r\nContent-Length: 2\r\n\r\nok", "", false},
		"a status":             {"HTTP/1.1 abc OK\r\nContent-Length: 2\r\n\r\nok", "", false},
		"interims for ever":    {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50), "", false},
		"silent ones for ever": {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50), "", false},
		"after an interim":     {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 xyz\r\n\r\n", "", false},
		"101 unasked":          {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "", false},
		"two lengths":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3x\r\n\r\nok", "", false},
		"lengths that differ":  {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello", "", false},
		"a coding":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", "", false},
		"two codings":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", false},
		"a body until the end": {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "d\r\nuntil the end\r\n0\r\n\r\n", false},
		"HTTP/1.0":             {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "\r\n\r\nok", false},
		"a length and chunks":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		"a body cut short":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "Content-Length: 9\r\nConnection: close\r\n\r\nhello", false},
		"chunks cut short":     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "\r\n\r\n5\r\nhello\r\n", false},
		"a second answer":      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "\r\n\r\nok", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveTo(t, nil, newRawOrigin(t, c.says).url, func(c *Config) {
				c.Passive = upstream.Passive{Failures: 2, Ejection: time.Hour, EjectionMax: time.Hour}
			})
			for range 3 {
				got := f.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
				if c.ends == "" && !strings.Contains(got, "HTTP/1.1 502 ") || c.ends != "" && (!strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasSuffix(got, c.ends)) {
					t.Fatalf("got %.300q", got)
				}
			}
			if s := f.front.Origins()[0].Origins[0]; (s.State == "ejected") != c.ejected {
				t.Errorf("the origin is %q after %d failures: %s", s.State, s.Failures, s.Reason)
			}
		})
	}
}

// panicking panics when it is read, as a parser with a bug might.
type panicking struct{ net.Conn }

func (panicking) Read([]byte) (int, error)         { panic("test") }
func (panicking) Write(p []byte) (int, error)      { return len(p), nil }
func (panicking) SetReadDeadline(time.Time) error  { return nil }
func (panicking) SetWriteDeadline(time.Time) error { return nil }

// panickingOrigin is a connection to an origin that panics when it is read.
func panickingOrigin(t *testing.T) *upstream.Conn {
	t.Helper()
	addr := tcpOrigin(t, func(c net.Conn, br *bufio.Reader) { br.ReadByte() })
	g, err := upstream.New(upstream.Config{Origins: origins(t, addr).Servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	c, err := g.AcquireTunnel(new(upstream.Tried))
	if err != nil {
		t.Fatal(err)
	}
	c.Conn = panicking{c.Conn}
	return c
}

// TestPanicsWhileCopying has the loops that run outside of the handler panic.
// Without their care the test itself would end.
func TestPanicsWhileCopying(t *testing.T) {
	var told atomic.Int32
	tell := func(any) { told.Add(1) }
	relay.Join(panicking{}, nil, panickingOrigin(t), time.Minute, &activity{}, new(relay.Ending), tell)
	if n := told.Load(); n != 2 {
		t.Errorf("%d panics were told of, want one by each direction of the tunnel", n)
	}
}

func TestClosedOriginConnectionsAreNotUsed(t *testing.T) {
	// The origin closes after each response without saying so. Requests that may
	// not be repeated must not be lost by it.
	closed := make(chan struct{}, 1)
	f := serveTo(t, nil, tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err == nil {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			c.Close()
			closed <- struct{}{}
		}
	}))
	for i := range 20 {
		got := f.do("POST", "/", strings.NewReader("x"))
		if got.StatusCode != 200 {
			t.Fatalf("request %d: got %d", i, got.StatusCode)
		}
		<-closed // a request before that is lost by any proxy that sends once
	}
}

func TestAThousandClients(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Millisecond) // an origin that takes its time
		w.Write([]byte("ok"))
	}), func(c *Config) { c.Limits.Upstream.Conns = 32 })
	clients := 1000
	if testing.Short() {
		clients /= 5
	}
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range clients {
		wg.Go(func() {
			for range 3 {
				resp, err := f.client.Get(f.url("/"))
				if err != nil {
					failed.Add(1)
					continue
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n != 0 {
		t.Errorf("%d of %d requests failed", n, 3*clients)
	}
	if n := f.active(); n != 0 {
		t.Errorf("%d places at the origin are still taken", n)
	}
}

func TestABusyOriginGives503(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 1)
	f := serve(t, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}), func(c *Config) { c.Limits.Upstream.Conns, c.Timeouts.Upstream.Wait = 1, 20*time.Millisecond })
	var wg sync.WaitGroup
	wg.Go(func() { f.get("/") })
	<-arrived
	if got := f.get("/"); got.StatusCode != 503 || got.Header.Get("Retry-After") == "" {
		t.Errorf("got %d", got.StatusCode)
	}
	close(release)
	wg.Wait()
}

// The client gets at least the head: upon an end without a word browsers ask again, POST too.
func TestABadFirstChunkIsNoEndWithoutAWord(t *testing.T) {
	o := newRawOrigin(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n")
	w := &witness{}
	f := serveTo(t, nil, o.url, w.watch)
	got := f.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
	_, line := w.next(t, 1)
	if got == "" {
		t.Errorf("nothing is answered; logged as %s", line)
	}
}

// An origin speaks after its answer, in another record of TLS: nobody's next request may get that.
func TestAnswersToNobodyOverTLS(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	for name, method := range map[string]string{"a body on HEAD": "HEAD", "an answer to nobody": "GET"} {
		t.Run(name, func(t *testing.T) {
			url := tcpOrigin(t, func(raw net.Conn, _ *bufio.Reader) {
				packed := &oneWrite{Conn: raw}
				c := tls.Server(packed, cert.TLS)
				br := bufio.NewReader(c)
				for i := 0; ; i++ {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					packed.hold = true
					if req.URL.Path == "/first" && req.Method == "HEAD" {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n")
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
					} else if req.URL.Path == "/first" {
						io.WriteString(c, okAnswer)
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
					} else {
						io.WriteString(c, okAnswer)
					}
					packed.flush()
				}
			})
			f := serveTo(t, nil, strings.Replace(url, "http://", "https://", 1), func(c *Config) {
				c.OriginTLS = cert.Client().Transport.(*http.Transport).TLSClientConfig
			})
			f.do(method, "/first", nil)
			if got := f.get("/second"); got.body != "ok" {
				t.Errorf("the next request is answered %q", got.body)
			}
		})
	}
}

// TestABodyThatMayNotBeThereAnswersNobody, however late it comes: a connection on which one may come is not used again.
func TestABodyThatMayNotBeThereAnswersNobody(t *testing.T) {
	const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
	for name, c := range map[string]struct{ method, head string }{
		"HEAD":                {"HEAD", "200 OK\r\nContent-Length: 45"},
		"HEAD in chunks":      {"HEAD", "404 Not Found\r\nTransfer-Encoding: chunked"},
		"HEAD without length": {"HEAD", "200 OK\r\nContent-Type: text/html"},
		"304":                 {"GET", "304 Not Modified\r\nContent-Length: 45"},
		"204":                 {"GET", "204 No Content\r\nContent-Length: 45"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveTo(t, nil, tcpOrigin(t, func(c2 net.Conn, br *bufio.Reader) {
				for told := false; ; {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					switch {
					case told: // late
						io.WriteString(c2, forged)
					case req.URL.Path == "/first":
						told = true
						io.WriteString(c2, "HTTP/1.1 "+c.head+"\r\n\r\n")
					default:
						io.WriteString(c2, okAnswer)
					}
				}
			}))
			f.do(c.method, "/first", nil)
			if got := f.get("/second"); got.body != "ok" {
				t.Errorf("the next request is answered %q", got.body)
			}
		})
	}
}

// TestAHeadCostsNoPort: a connection that is not used again after HEAD is reset. One that we close in order would keep
// its port for a minute, and who sends HEAD often enough would use up all.
func TestAHeadCostsNoPort(t *testing.T) {
	ended := make(chan error, 1)
	f := serveTo(t, nil, tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n")
		_, err := br.ReadByte()
		ended <- err
	}))
	f.do("HEAD", "/", nil)
	if err := <-ended; !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the origin reads %v, want a reset", err)
	}
}

// oneWrite sends what is written while it holds in one piece.
type oneWrite struct {
	net.Conn
	hold bool
	buf  []byte
}

func (o *oneWrite) Write(p []byte) (int, error) {
	if !o.hold {
		return o.Conn.Write(p)
	}
	o.buf = append(o.buf, p...)
	return len(p), nil
}

func (o *oneWrite) flush() {
	o.Conn.Write(o.buf)
	o.hold, o.buf = false, nil
}

// An empty line before an answer, as old programs send it, and spaces before its code are passed over.
func TestAnEmptyLineBeforeAnAnswer(t *testing.T) {
	for _, says := range []string{"\r\n" + okAnswer, "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok"} {
		o := newRawOrigin(t, says)
		f := serveTo(t, nil, o.url)
		if got := f.get("/"); got.StatusCode != 200 {
			t.Errorf("%q: got %d", says, got.StatusCode)
		}
		if n := f.front.Origins()[0].Origins[0].Failures; n > 0 {
			t.Errorf("%q: and counts %d failures", says, n)
		}
	}
}
