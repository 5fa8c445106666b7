package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
)

// TestPipelinedRequestsAreAnsweredInOrder, whatever of them is read at once.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(always)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %q", r.Method, r.URL.Path, b)
	}))
	body := strings.Repeat("GET /no HTTP/1.1\r\nHost: a\r\n\r\n", 3*bufferSize/30)
	var all []byte
	var ends []int
	var want []string
	for i := range 12 {
		if i%4 == 1 {
			all = fmt.Appendf(all, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body)
			want = append(want, fmt.Sprintf("POST /%d %q", i, body))
		} else {
			all = fmt.Appendf(all, "GET /%d HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", i, strings.Repeat("x", i*300))
			want = append(want, fmt.Sprintf("GET /%d \"\"", i))
		}
		ends = append(ends, len(all))
	}
	for _, cut := range []int{0, 1, 10, 40, 64, bufferSize - 1, bufferSize, bufferSize + 1} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			conn := f.dial()
			sent := make(chan error, 1)
			go func() {
				var err error
				for at := 0; at < len(all) && err == nil; {
					// The end of a request and the beginning of the next one go together.
					end := len(all)
					if i, ok := slices.BinarySearch(ends, at+1); cut > 0 && i < len(ends) {
						if end = min(ends[i]+cut, len(all)); ok && cut == 1 {
							end = ends[i]
						}
					}
					_, err = conn.Write(all[at:end])
					at = end
				}
				sent <- err
			}()
			for i := range want {
				method, _, _ := strings.Cut(want[i], " ")
				if got := conn.read(method); got.body != want[i] {
					t.Fatalf("answer %d is %.60q, want %.60q", i, got.body, want[i])
				}
			}
			noError(t, <-sent)
		})
	}
}

// wholeHeads are heads of all kinds, also such as are not in order.
var wholeHeads = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a?b=c HTTP/1.1\r\nHost: a.example:80\r\nUser-Agent: Browser/1.0\r\nReferer: http://a.example/\r\nAccept: application/json\r\nAccept-Language: de, en;q=0.5\r\n\r\n",
	"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET http://b.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nCookie: theme=dark; ropeline=x; lang=de\r\nCookie: more=1\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\nX-Real-Ip: 1.2.3.4\r\nVia: 1.1 x\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nConnection: x-secret\r\nX-Secret: 1\r\nTE: trailers\r\nKeep-Alive: 1\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a b\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
	"GET  /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a  HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a\tHTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1\nHost: a\r\n\r\n", "GET /a HTTP/1.2\r\nHost: a\r\n\r\n", "GET HTTP/1.1\r\nHost: a\r\n\r\n", "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%2e%2e/a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a;b/c HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\\a HTTP/1.1\r\nHost: a\r\n\r\n", "GET //a/../b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: \r\n\r\n", "GET /long HTTP/1.1\r\nHost: \r\n\r\n", "GET /long HTTP/1.1\r\nHost: a\r\nTrailer: Content-Length\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
	"GET /long HTTP/1.1\r\nHost: a\r\n\r\n", "GET /chunked HTTP/1.1\r\nHost: a\r\n\r\n", "GET /command HTTP/1.1\r\nHost: a\r\n\r\n", "GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "GET /gone HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("a", 8<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n",
	"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "get /a HTTP/1.1\r\nHost: a\r\n\r\n", "BREW /a HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nTraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
}

// siteOfAllKinds answers with a word of what it was asked, in the way that the path says.
func siteOfAllKinds(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/long":
		w.Header().Set("Content-Length", fmt.Sprint(3*bufferSize))
		w.Write(make([]byte, 3*bufferSize))
	case "/chunked":
		w.(http.Flusher).Flush()
	case "/command":
		w.Header().Set("Ropeline-Command", "revoke")
	case "/none":
		w.WriteHeader(http.StatusNoContent)
		return
	case "/gone":
		panic(http.ErrAbortHandler)
	}
	fields := make([]string, 0, len(r.Header))
	for name, values := range r.Header {
		if !strings.EqualFold(name, "Ropeline-Via") {
			fields = append(fields, fmt.Sprint(name, values))
		}
	}
	slices.Sort(fields)
	fmt.Fprintln(w, r.Method, r.RequestURI, r.Host, fields)
}

// answerTo returns in words what is answered to a head on a new connection; warm says that it is not the first one there.
func answerTo(t *testing.T, f *front, head string, warm bool) string {
	t.Helper()
	c := f.dial()
	if warm {
		c.ask("GET", "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	io.WriteString(c, head)
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(resp.Body)
	for _, name := range []string{"Date", "X-Request-Id", "Refresh", "Content-Length"} { // the last follows from the body
		resp.Header.Del(name)
	}
	if cookies := resp.Header["Set-Cookie"]; len(cookies) > 0 { // of passes, as sealed, no two are the same
		cookies[0] = cookies[0][:9] + cookies[0][strings.IndexByte(cookies[0], ';'):]
	}
	for _, id := range []string{`"request":`, "<code>"} {
		b, _, _ = bytes.Cut(b, []byte(id))
	}
	return fmt.Sprintf("%d %v close %v %q %v", resp.StatusCode, resp.Header, resp.Close, b, err)
}

// answersAlike fails the test if some head is answered otherwise where it is not the first of its connection. It returns when
// nothing of the requests is left.
func answersAlike(t *testing.T, f *front) {
	t.Helper()
	for _, head := range wholeHeads {
		cold, warm := answerTo(t, f, head, false), answerTo(t, f, head, true)
		if cold != warm {
			t.Errorf("%.200q: the first request of a connection is told\n\t%.600s\na later one\n\t%.600s", head, cold, warm)
		}
	}
	f.unused()
}

// TestNoAnswerDependsOnWhatAConnectionRemembers: what is answered, and what the site is asked, is
// the same whether or not a request is the first one of its connection.
func TestNoAnswerDependsOnWhatAConnectionRemembers(t *testing.T) {
	for name, decide := range map[string]func(node.Pass, bool, time.Time) node.Verdict{"inside": always, "let in": letIn, "waits": never} {
		for roomed, rooms := range map[string]fakeRooms{"a room": {room: newRoom(decide)}, "no room": {path: "/none", room: newRoom(decide)}} {
			t.Run(name+" in "+roomed, func(t *testing.T) {
				f := serve(t, rooms, http.HandlerFunc(siteOfAllKinds), at(time.Now()), func(c *Config) { c.Requests, c.AccessLog = deaf{}, deaf{} })
				answersAlike(t, f)
			})
		}
	}
}

// TestShutdownEndsWhatIsIdle, lets nobody else in, and has a request end.
func TestShutdownEndsWhatIsIdle(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
		io.WriteString(w, "done")
	}))
	c, idle := f.dial(), f.dial()
	for range 2 {
		c.ask("GET", plainGet)
		idle.ask("GET", plainGet)
	}
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	stopped := f.stops()
	idle.ends()
	waitFor(t, "the listener to close", func() bool {
		c, err := net.Dial("tcp", f.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	equal(t, "that the client is told that the connection ends, and does not lose its next request", c.read("GET").is(t, 200, "\r\n\r\ndone").Close, true)
	c.ends()
	<-stopped
}

// TestAPanicFailsOneRequest, with an answer, and leaves nothing counted.
func TestAPanicFailsOneRequest(t *testing.T) {
	var panics atomic.Bool
	var log lockedLog
	f := serve(t, fakeRooms{room: newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		if panics.CompareAndSwap(true, false) {
			panic("the test says so")
		}
		return always(p, known, now)
	})}, http.HandlerFunc(echo), func(c *Config) { c.Requests, c.Logger = deaf{}, log.logger() })
	c := f.dial()
	c.ask("GET", plainGet)
	panics.Store(true)
	got := c.ask("GET", plainGet).is(t, http.StatusInternalServerError)
	equal(t, "that the connection closes", got.Close, true)
	has(t, "the log", log.text(), "the test says so")
	lacks(t, "the answer", got.body, "the test")
	f.unused()
	f.get("/").is(t, 200)
}

// TestAClientThatGoesAwayLeavesNothing of its request.
func TestAClientThatGoesAwayLeavesNothing(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(siteOfAllKinds), func(c *Config) { c.Requests = deaf{} })
	for range 50 {
		c := f.dial()
		c.ask("GET", plainGet)
		io.WriteString(c, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
		c.SetLinger(0)
		c.Close()
	}
	f.unused()
}

// TestIdleConnectionsEnd after as long as was said, each time.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	const idle = 300 * time.Millisecond
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Timeouts.Idle, c.Limits.Requests = idle, 1e9 })
	c := f.dial()
	var last time.Time
	for begun := time.Now(); time.Since(begun) < 2*idle; {
		last = time.Now()
		c.ask("GET", plainGet)
	}
	if c.ends(); time.Since(last) < idle {
		t.Errorf("the end comes after %v, want it after %v", time.Since(last), idle)
	}
}

// TestFieldsOfAnAnswerStayAsTheyAre: all of them, in their order and spelling, whatever the length
// of the body.
func TestFieldsOfAnAnswerStayAsTheyAre(t *testing.T) {
	const fields = "Content-Type: text/plain\r\nserver: one\r\nSERVER: two\r\nContent-Encoding: x-a\r\nX-B: 1\r\nx-mIxEd: y\r\nContent-Encoding: x-b\r\n" +
		"X-B: 2\r\nVia: 1.1 a\r\nX-B: 3\r\nVia: 1.1 b\r\nSet-Cookie: a=1\r\nSet-Cookie: =v\r\nX-Empty: \r\nX-Latin: caf\xe9\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
	long := strings.Repeat("x", 3*bufferSize)
	for name, c := range map[string]struct{ says, adds string }{
		"short":           {"Content-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n"},
		"long":            {fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(long), long), fmt.Sprintf("Content-Length: %d\r\n", len(long))},
		"in chunks":       {"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n"},
		"lengths alike":   {"Content-Length: 5\r\nContent-Length: 5, 5\r\n\r\nhello", "Content-Length: 5\r\n"},
		"of a connection": {"Connection: x-gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", "Content-Length: 0\r\n"},
		"of others":       {"Ropeline-State: admitted\r\nTE: x\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n", "Content-Length: 0\r\n"},
	} {
		for dated, date := range map[string]string{"dated": "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n", "undated": ""} {
			t.Run(name+", "+dated, func(t *testing.T) {
				_, f := serveRaw(t, nil, "HTTP/1.1 200 Tout va bien\r\n"+date+fields+c.says)
				head, _, _ := strings.Cut(f.raw(lastGet), "\r\n\r\n")
				if date == "" {
					before, after, _ := strings.Cut(head, "Date: ")
					ours, after, _ := strings.Cut(after, "\r\n")
					if _, err := http.ParseTime(ours); err != nil {
						t.Errorf("an answer without a date (RFC 9110, 6.6.1): %q, %v", head, err)
					}
					head = before + after
				}
				equal(t, "the head", head, "HTTP/1.1 200 Tout va bien\r\n"+date+fields+c.adds+"Connection: close")
			})
		}
	}
}

// TestAnswersAreNotMixedUp: what is sent of an answer is not of the one after it on the connection
// to the origin, which is given back before.
func TestAnswersAreNotMixedUp(t *testing.T) {
	f := serveTo(t, nil, httpOrigin(t, func(_ int, req *http.Request) (string, bool) {
		name := req.URL.Path[1:]
		return fmt.Sprintf("HTTP/1.1 200 %s\r\nX-Name: %[1]s\r\nContent-Length: %d\r\n\r\n%[1]s", name, len(name)), true
	}), func(c *Config) { c.Limits.Upstream.Conns = 1 })
	var wg sync.WaitGroup
	for i := range 8 {
		c := f.dial()
		wg.Go(func() {
			for j := range 200 {
				name := fmt.Sprintf("%d-%d", i, j)
				io.WriteString(c, "GET /"+name+" HTTP/1.1\r\nHost: a\r\n\r\n")
				resp, err := http.ReadResponse(c.br, nil)
				if err != nil {
					t.Error(err)
					return
				}
				equal(t, "the answer to "+name, resp.Status+" "+resp.Header.Get("X-Name")+" "+rest(t, resp.Body), "200 "+name+" "+name+" "+name)
			}
		})
	}
	wg.Wait()
}

// TestEarlyHintsArePassedOn to clients that know of them, without a length (RFC 9110, 8.6).
func TestEarlyHintsArePassedOn(t *testing.T) {
	_, f := serveRaw(t, nil, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\nX: 1\r\n"+
		"Content-Length: 5\r\nContent-Length: 5, 5\r\n\r\n"+okAnswer)
	const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n"
	if got := f.raw(lastGet); !strings.HasPrefix(got, hints) {
		t.Errorf("got %q", got)
	}
	answered(t, "HTTP/1.0", f.raw("GET / HTTP/1.0\r\nHost: a\r\n\r\n"), 200)
}

// TestWhoMustWaitIsToldBeforeTheBody: a request is decided about by its head, and answered.
func TestWhoMustWaitIsToldBeforeTheBody(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(never)}, http.NotFoundHandler())
	for name, fields := range map[string]string{"short": "Content-Length: 5\r\n", "long": "Content-Length: 5000000\r\n", "chunks": "Transfer-Encoding: chunked\r\n"} {
		c := f.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
		resp := c.response("POST")
		equal(t, name, resp.Header.Get(stateField), stateWaiting)
		equal(t, "that the connection closes: "+name, resp.Close, name == "long")
	}
}

// FuzzOriginHead reads any head of an answer. What it is sent on as reads the same once more, also by another parser.
func FuzzOriginHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200\r\n\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5, 5\r\n\r\n",
		"HTTP/1.1 200 OK\nX: a\n b\nTransfer-Encoding: chunked\n\n", "HTTP/1.1 999 x\r\nX : y\r\nTransfer-Encoding: identity\r\n\r\n", "HTTP/1.1 204 No Content\r\nConnection: x, close\r\nX: 1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(h *http1.Response, b []byte) error {
			return h.Read(bufio.NewReaderSize(bytes.NewReader(b), bufferSize))
		}
		var h, again http1.Response
		if read(&h, b) != nil {
			return
		}
		w := newAnswer()
		defer w.release()
		w.take(&h, &admitted{req: newRequest()})
		sent := w.appendHead(nil, &request{Request: http1.Request{HTTP11: true}}, h.Length == http1.LengthChunked && !hasNoBody(h.Code))
		if err := read(&again, sent); err != nil || again.Size != len(sent) || again.Code != h.Code || again.Length != h.Length && !hasNoBody(h.Code) {
			t.Fatalf("%q is sent on as %q: %v, %d, length %d, want %d and %d", b, sent, err, again.Code, again.Length, h.Code, h.Length)
		}
		other, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(sent)), nil)
		if err != nil {
			return
		}
		if length := max(h.Length, -1); other.StatusCode != h.Code || other.ContentLength != length && !hasNoBody(h.Code) {
			t.Fatalf("%q is sent on as %q, in which another parser reads %d with %d bytes", b, sent, other.StatusCode, other.ContentLength)
		}
	})
}

// A request without a body has nothing to wait with.
func TestExpectWithoutABodyKeepsTheConnection(t *testing.T) {
	c := serve(t, nil, http.HandlerFunc(echo)).dial()
	for range 2 {
		got := c.ask("GET", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n")
		equal(t, "that the connection closes", got.Close, false)
	}
}

// asker returns what sends a request and reads the whole answer, and allocates nothing.
func asker(tb testing.TB, c net.Conn, request string) func() {
	tb.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	bytesOf, buf := []byte(request), make([]byte, 32<<10)
	field, end := []byte("Content-Length: "), []byte("\r\n\r\n")
	return func() {
		if _, err := c.Write(bytesOf); err != nil {
			tb.Fatal(err)
		}
		for n, want := 0, -1; want < 0 || n < want; {
			k, err := c.Read(buf[n:])
			if err != nil {
				tb.Fatal(err)
			}
			n += k
			if head := bytes.Index(buf[:n], end); want < 0 && head >= 0 {
				at := bytes.Index(buf[:head], field)
				if at < 0 {
					tb.Fatalf("an answer without a length: %q", buf[:head])
				}
				length := 0
				for _, d := range buf[at+len(field) : head] {
					if d < '0' || d > '9' {
						break
					}
					length = length*10 + int(d-'0')
				}
				want = head + len(end) + length
			}
		}
	}
}

// counting counts what is written to its connections.
type counting struct {
	net.Listener
	writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{c, l}, nil
}

type countedConn struct {
	net.Conn
	of *counting
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}

// A call of the system for each answer is most of what an answer costs.
func TestAnswersGoOutInOneWrite(t *testing.T) {
	const requests = 50
	for name, r := range map[string]*fakeRoom{"of the site": newRoom(letIn), "of who waits": newRoom(never)} {
		l := &counting{}
		f := serve(t, fakeRooms{room: r}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1500") // so that it is one write of the origin
			w.Write(make([]byte, 1500))
		}), func(c *Config) { l.Listener, c.Listener = c.Listener, l })
		ask := asker(t, f.dial(), "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\n\r\n")
		for range requests {
			ask()
		}
		equal(t, "writes for so many answers "+name, l.writes.Load(), requests)
	}
}

// answering returns the address of an origin that answers every read and allocates nothing.
func answering(tb testing.TB) string {
	tb.Helper()
	ln := loopbackListener(tb)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerAll(c)
		}
	}()
	return "http://" + ln.Addr().String()
}
