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
	got := f.get("/").is(t, 502, "<h1>The site cannot be reached right now</h1>", "\r\nCache-Control: private, no-store\r\n")
	equal(t, "passes", len(got.Cookies()), 1)
	f.get("/", "Accept", "application/json").is(t, 502, `{"error":"The site does not answer","request":"`)
	equal(t, "passes, for POST", len(f.do("POST", "/", strings.NewReader("hello")).is(t, 502).Cookies()), 1)
}

func TestOriginTooSlow(t *testing.T) {
	release := make(chan struct{})
	f := serve(t, fakeRooms{room: newRoom(letIn)}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-release
	}), func(c *Config) { c.Timeouts.Origin = 50 * time.Millisecond })
	defer close(release)
	late := f.get("/").is(t, 504)
	equal(t, "passes", len(late.Cookies()), 1)
	lacks(t, "what would take as long again", late.text(), "Refresh: ", "reloads")
	equal(t, "passes, for POST", len(f.do("POST", "/", strings.NewReader("hello")).is(t, 504).Cookies()), 1)
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
		got.is(t, 503, `<html lang="`+l.Tag()+`" dir="`+l.Dir()+`">`, "\r\nContent-Language: "+l.Tag()+"\r\n", "\r\nRetry-After: ",
			"<title>"+l.Text(lang.TitleUnreachable)+"</title>", "<p>"+l.Text(lang.MessageUnreachable)+"</p>",
			"\r\nRefresh: ", "<p>"+l.Text(lang.StayOpenNoScript)+"</p>", "503 · <code>"+got.Header.Get("X-Request-Id")+"</code>")
		lacks(t, l.Tag(), got.body, "peers")
	}
	f.get("/", "Accept-Language", "xx").is(t, 503, `<html lang="en-US" dir="ltr">`)
	for what, got := range map[string]string{"what was sent": f.do("POST", "/", strings.NewReader("hello")).text(), "a program": f.get("/", "Accept", "application/json").text()} {
		lacks(t, what, got, "Refresh: ", "reloads")
	}
	// Between two requests, one of which follows the other.
	notReady = nil
	f.get("/").is(t, 200)
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

// httpOrigin is an origin that gives what says returns for the n-th request of a connection, and closes it unless there is more.
func httpOrigin(t *testing.T, says func(n int, req *http.Request) (answer string, more bool)) string {
	t.Helper()
	return tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		for n := 0; ; n++ {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			answer, more := says(n, req)
			io.WriteString(c, answer)
			if !more {
				return
			}
		}
	})
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
		"an empty line before": {"\r\n" + okAnswer, "\r\n\r\nok", false}, // as old programs send it
		"spaces before a code": {"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", "\r\n\r\nok", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := serveRaw(t, nil, c.says, func(c *Config) {
				c.Passive = upstream.Passive{Failures: 2, Ejection: time.Hour, EjectionMax: time.Hour}
			})
			for range 3 {
				got := f.raw(lastGet)
				if c.ends == "" {
					has(t, "the answer", got, "HTTP/1.1 502 ")
				} else {
					answered(t, "the answer", got, 200)
					endsIn(t, "the answer", got, c.ends)
				}
			}
			s := f.front.Origins()[0].Origins[0]
			equal(t, "that the origin is ejected, as "+s.Reason, s.State == "ejected", c.ejected)
			if c.ends != "" {
				equal(t, "failures of an origin that answers", s.Failures, 0)
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

// TestPanicsWhileCopying has the loops that run outside of the handler panic.
// Without their care the test itself would end.
func TestPanicsWhileCopying(t *testing.T) {
	addr := tcpOrigin(t, func(c net.Conn, br *bufio.Reader) { br.ReadByte() })
	g := must(upstream.New(upstream.Config{Origins: origins(addr).Servers}))
	defer g.Close()
	c := must(g.AcquireTunnel(new(upstream.Tried)))
	c.Conn = panicking{c.Conn}
	var told atomic.Int32
	relay.Join(panicking{}, nil, c, time.Minute, &activity{}, new(relay.Ending), func(any) { told.Add(1) })
	equal(t, "panics that were told of, by two directions of the tunnel", told.Load(), 2)
}

func TestClosedOriginConnectionsAreNotUsed(t *testing.T) {
	// The origin closes after each response without saying so. Requests that may
	// not be repeated must not be lost by it.
	closed := make(chan struct{}, 1)
	f := serveTo(t, nil, tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		if _, err := http.ReadRequest(br); err == nil {
			io.WriteString(c, okAnswer)
			c.Close()
			closed <- struct{}{}
		}
	}))
	for range 20 {
		f.do("POST", "/", strings.NewReader("x")).is(t, 200)
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
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if err != nil || resp.StatusCode != 200 {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	equal(t, "requests that failed", failed.Load(), 0)
	equal(t, "places at the origin that are still taken", f.active(), 0)
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
	f.get("/").is(t, 503, "\r\nRetry-After: ")
	close(release)
	wg.Wait()
}

// The client gets at least the head: upon an end without a word browsers ask again, POST too.
func TestABadFirstChunkIsNoEndWithoutAWord(t *testing.T) {
	w := &witness{}
	_, f := serveRaw(t, nil, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", w.watch)
	got := f.raw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
	if _, line := w.next(t, 1); got == "" {
		t.Errorf("nothing is answered; logged as %s", line)
	}
}

// forged is what an origin says to nobody, so that somebody takes it for the answer.
const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

// An origin speaks after its answer, in another record of TLS: nobody's next request may get that.
func TestAnswersToNobodyOverTLS(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	for name, method := range map[string]string{"a body on HEAD": "HEAD", "an answer to nobody": "GET"} {
		t.Run(name, func(t *testing.T) {
			url := tcpOrigin(t, func(raw net.Conn, _ *bufio.Reader) {
				c := tls.Server(packed{raw, bufio.NewWriter(raw)}, cert.TLS)
				for br := bufio.NewReader(c); ; {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					answer := okAnswer
					if req.Method == "HEAD" {
						answer = "HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n"
					}
					io.WriteString(c, answer)
					if req.URL.Path == "/first" {
						io.WriteString(c, forged)
					}
				}
			})
			f := serveTo(t, nil, strings.Replace(url, "http://", "https://", 1), func(c *Config) {
				c.OriginTLS = cert.Client().Transport.(*http.Transport).TLSClientConfig
			})
			f.do(method, "/first", nil)
			equal(t, "the next answer", f.get("/second").body, "ok")
		})
	}
}

// TestABodyThatMayNotBeThereAnswersNobody, however late it comes: a connection on which one may come is not used again.
func TestABodyThatMayNotBeThereAnswersNobody(t *testing.T) {
	for name, c := range map[string]struct{ method, head string }{
		"HEAD":                {"HEAD", "200 OK\r\nContent-Length: 45"},
		"HEAD in chunks":      {"HEAD", "404 Not Found\r\nTransfer-Encoding: chunked"},
		"HEAD without length": {"HEAD", "200 OK\r\nContent-Type: text/html"},
		"304":                 {"GET", "304 Not Modified\r\nContent-Length: 45"},
		"204":                 {"GET", "204 No Content\r\nContent-Length: 45"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveTo(t, nil, httpOrigin(t, func(n int, req *http.Request) (string, bool) {
				switch {
				case n > 0: // late
					return forged, true
				case req.URL.Path == "/first":
					return "HTTP/1.1 " + c.head + "\r\n\r\n", true
				}
				return okAnswer, true
			}))
			f.do(c.method, "/first", nil)
			equal(t, "the next answer", f.get("/second").body, "ok")
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

// packed sends in one piece what is written before it is read again.
type packed struct {
	net.Conn
	buf *bufio.Writer
}

func (p packed) Write(b []byte) (int, error) { return p.buf.Write(b) }

func (p packed) Read(b []byte) (int, error) {
	p.buf.Flush()
	return p.Conn.Read(b)
}

// TestWhoLeavesFreesThePlace: the only place at the origin comes free when its client closes the connection, however long the
// origin would work, and the origin has not failed.
func TestWhoLeavesFreesThePlace(t *testing.T) {
	cert := httptest.NewTLSServer(nil)
	defer cert.Close()
	const asks = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, tt := range map[string]struct {
		asks   string
		begins string // what the origin says before it works on
		status string // in the access log
	}{
		"before the answer":          {asks, "", `" 499 `},
		"after a body":               {"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", "", `" 499 `},
		"with the next request sent": {asks + plainGet, "", `" 499 `},
		"an event stream":            {asks, "data: 1\n\n", `" 200 `},
		"over TLS":                   {asks, "", `" 499 `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, gone := make(chan struct{}), make(chan struct{})
			var others atomic.Int32
			w := &witness{}
			f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/slow" {
					others.Add(1)
					return
				}
				io.Copy(io.Discard, r.Body)
				if tt.begins != "" {
					io.WriteString(w, tt.begins)
					w.(http.Flusher).Flush()
				}
				arrived <- struct{}{}
				<-r.Context().Done()
				close(gone)
			}), w.watch, func(c *Config) {
				c.Limits.Upstream.Conns = 1
				if name == "over TLS" {
					c.TLS = &tls.Config{Certificates: cert.TLS.Certificates}
				}
			})
			var c net.Conn = f.dial()
			if name == "over TLS" {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is our own
			}
			io.WriteString(c, tt.asks)
			<-arrived
			if tt.begins != "" {
				expect(t, c, "HTTP/1.1 200 ")
			}
			told := 0
			for _, head := range []string{"GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: 2\r\n"} { // who waits for the place behind it
				var behind net.Conn = f.dial()
				if name == "over TLS" {
					behind = tls.Client(behind, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is our own
				}
				io.WriteString(behind, head+"Host: a\r\n\r\nab")
				behind.Close()
				told++
				_, line := w.next(t, told)
				has(t, "the access log of who waited", line, `" 499 `)
			}
			c.Close()
			<-gone
			_, line := w.next(t, told+1)
			has(t, "the access log", line, tt.status)
			equal(t, "requests at the origin of who left while waiting", others.Load(), 0)
			waitFor(t, "the place to be free", func() bool { return f.active() == 0 })
			if o := f.front.Origins()[0].Origins[0]; o.Failures != 0 || o.State != "in" {
				t.Errorf("the origin is said to have failed: %+v", o)
			}
		})
	}
}

// TestWhoStaysIsServed: an answer that takes longer than several looks arrives, and so does one after it.
func TestWhoStaysIsServed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		io.WriteString(w, "ok")
	}))
	c := f.dial()
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"+plainGet)
	left := f.dial() // who leaves meanwhile shows that all have been looked at
	io.WriteString(left, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	waitFor(t, "both requests to be at the origin", func() bool { return f.active() == 2 })
	left.Close()
	waitFor(t, "one of them to be ended", func() bool { return f.active() == 1 })
	close(release)
	for range 2 {
		equal(t, "the answer", c.read("GET").is(t, 200).body, "ok")
	}
}
