package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node"
)

// inFastPath reports whether the goroutine that calls it serves a request in the fast path.
func inFastPath() bool {
	var buf [64]uintptr
	frames := runtime.CallersFrames(buf[:runtime.Callers(1, buf[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".serveFast") {
			return true
		}
		if !more {
			return false
		}
	}
}

// trail notes for each question to a room whether it came by the fast path.
type trail struct {
	mu   sync.Mutex // guards the following
	fast []bool
}

func (l *trail) note(decide func(node.Pass, bool, time.Time) node.Verdict) func(node.Pass, bool, time.Time) node.Verdict {
	return func(p node.Pass, known bool, now time.Time) node.Verdict {
		l.mu.Lock()
		l.fast = append(l.fast, inFastPath())
		l.mu.Unlock()
		return decide(p, known, now)
	}
}

// take returns what was noted since it was called last.
func (l *trail) take() []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fast := l.fast
	l.fast = nil
	return fast
}

// askOn sends a request on c and reads the answer to it.
func askOn(t *testing.T, c net.Conn, br *bufio.Reader, request, method string) answer {
	t.Helper()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp := readResponse(t, br, method)
	if resp.StatusCode == http.StatusContinue {
		resp = readResponse(t, br, method)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return answer{resp, string(b)}
}

// TestWhatTakesTheFastPath: simple requests do, but for the first of a connection. It also
// finds out whether the library still reads and sets deadlines in the order that this depends on.
func TestWhatTakesTheFastPath(t *testing.T) {
	const plain = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, c := range map[string]struct {
		then []string // after a first request
		want []bool
	}{
		"another one":              {[]string{plain, plain, plain}, []bool{true, true, true}},
		"a body":                   {[]string{"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", plain, plain}, []bool{false, false, true}},
		"a body of nothing":        {[]string{"GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", plain}, []bool{false, true}},
		"no body":                  {[]string{"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n", plain}, []bool{false, true}},
		"a close":                  {[]string{"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"}, []bool{false}},
		"HTTP/1.0":                 {[]string{"GET /a HTTP/1.0\r\nHost: a\r\n\r\n"}, []bool{false}},
		"an expectation":           {[]string{"GET /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"}, []bool{false}},
		"a body as if it were one": {[]string{"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + fmt.Sprint(len(plain)) + "\r\n\r\n" + plain, plain, plain}, []bool{false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var l trail
			f := serve(t, fakeRooms{room: newRoom(l.note(always))}, http.HandlerFunc(echo))
			conn := f.dial()
			br := bufio.NewReader(conn)
			askOn(t, conn, br, plain, "GET")
			if got := l.take(); !slices.Equal(got, []bool{false}) {
				t.Fatalf("the first request: %v, want that the server has it", got)
			}
			for i, request := range c.then {
				method, _, _ := strings.Cut(request, " ")
				if got := askOn(t, conn, br, request, method); got.StatusCode != http.StatusOK {
					t.Errorf("request %d: got %d", i, got.StatusCode)
				}
			}
			if got := l.take(); !slices.Equal(got, c.want) {
				t.Errorf("by the fast path: %v, want %v", got, c.want)
			}
		})
	}
}

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
		switch i % 4 {
		case 1:
			all = fmt.Appendf(all, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", i, len(body), body)
			want = append(want, fmt.Sprintf("POST /%d %q", i, body))
		default:
			all = fmt.Appendf(all, "GET /%d HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", i, strings.Repeat("x", i*300))
			want = append(want, fmt.Sprintf("GET /%d \"\"", i))
		}
		ends = append(ends, len(all))
	}
	for _, cut := range []int{0, 1, 10, 40, 64, bufferSize - 1, bufferSize, bufferSize + 1} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			conn := f.dial()
			br := bufio.NewReader(conn)
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
				resp := readResponse(t, br, method)
				b, err := io.ReadAll(resp.Body)
				if err != nil || string(b) != want[i] {
					t.Fatalf("answer %d is %.60q, %v; want %.60q", i, b, err, want[i])
				}
			}
			if err := <-sent; err != nil {
				t.Error(err)
			}
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
	"GET /" + strings.Repeat("a", targetMax) + " HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", "GET /a HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", fieldsMax) + "\r\n",
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
		if !strings.EqualFold(name, loopField) {
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
	defer c.Close()
	br := bufio.NewReader(c)
	if warm {
		askOn(t, c, br, "GET /warm HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
	}
	if _, err := io.WriteString(c, head); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(resp.Body)
	for _, name := range []string{"Date", "X-Request-Id"} {
		resp.Header.Del(name)
	}
	if cookies := resp.Header["Set-Cookie"]; len(cookies) > 0 { // of passes, as sealed, no two are the same
		cookies[0] = cookies[0][:9] + cookies[0][strings.IndexByte(cookies[0], ';'):]
	}
	if i := bytes.Index(b, []byte(`"request":`)); i >= 0 {
		b = b[:i]
	}
	if i := bytes.Index(b, []byte("<code>")); i >= 0 {
		b = b[:i]
	}
	delete(resp.Header, "Content-Length") // follows from the body
	return fmt.Sprintf("%d %v close %v %q %v", resp.StatusCode, resp.Header, resp.Close, b, err)
}

// answersAlike fails the test if some head is answered otherwise where it is not the first of its connection. It returns when
// nothing of the requests is left.
func answersAlike(t *testing.T, f *front) {
	t.Helper()
	for _, head := range wholeHeads {
		cold, warm := answerTo(t, f, head, false), answerTo(t, f, head, true)
		if cold != warm {
			t.Errorf("%.200q: the server says\n\t%.600s\nthe fast path\n\t%.600s", head, cold, warm)
		}
	}
	waitFor(t, "all to end", func() bool {
		_, n := f.front.Load()
		return n == 0 && f.active() == 0
	})
}

// TestTheFastPathAnswersAsTheServer: what is answered, and what the site is asked, is the same
// whether or not a request is the first one of its connection.
func TestTheFastPathAnswersAsTheServer(t *testing.T) {
	for name, decide := range map[string]func(node.Pass, bool, time.Time) node.Verdict{"inside": always, "let in": letIn, "waits": never} {
		for roomed, rooms := range map[string]fakeRooms{"a room": {room: newRoom(decide)}, "no room": {path: "/none", room: newRoom(decide)}} {
			t.Run(name+" in "+roomed, func(t *testing.T) {
				now := time.Now()
				f := serve(t, rooms, http.HandlerFunc(siteOfAllKinds), func(c *Config) {
					c.Requests, c.AccessLog, c.Clock = deaf{}, deaf{}, func() time.Time { return now }
				})
				answersAlike(t, f)
			})
		}
	}
}

// TestShutdownLetsTheFastPathEnd: the server takes the connection for idle.
func TestShutdownLetsTheFastPathEnd(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
		io.WriteString(w, "done")
	}))
	c, idle := f.dial(), f.dial()
	br, brIdle := bufio.NewReader(c), bufio.NewReader(idle)
	for range 2 {
		askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
		askOn(t, idle, brIdle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
	}
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-arrived
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	if b, err := brIdle.ReadByte(); err != io.EOF { // when it closes what is idle
		t.Errorf("read %q, %v on an idle connection", b, err)
	}
	close(release)
	resp := readResponse(t, br, "GET")
	expect(t, resp.Body, "done")
	if !resp.Close {
		t.Error("the client is not told that the connection ends, and would lose its next request")
	}
	if b, err := br.ReadByte(); err != io.EOF {
		t.Errorf("read %q, %v after the answer", b, err)
	}
	<-stopped
}

// TestAPanicOfTheFastPathFailsOneRequest, with an answer, and leaves nothing counted.
func TestAPanicOfTheFastPathFailsOneRequest(t *testing.T) {
	var l trail
	log := &lockedLog{}
	f := serve(t, fakeRooms{room: newRoom(l.note(func(p node.Pass, known bool, now time.Time) node.Verdict {
		if inFastPath() {
			panic("the test says so")
		}
		return always(p, known, now)
	}))}, http.HandlerFunc(echo), func(c *Config) { c.Requests, c.Logger = deaf{}, log.logger() })
	c := f.dial()
	br := bufio.NewReader(c)
	askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
	got := askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
	if got.StatusCode != http.StatusInternalServerError || !got.Close || !log.has("the test says so") {
		t.Errorf("got %d, close %v, log %s", got.StatusCode, got.Close, log.text())
	}
	waitFor(t, "it to end", func() bool {
		_, n := f.front.Load()
		return n == 0
	})
	if got := f.get("/"); got.StatusCode != http.StatusOK {
		t.Errorf("then: got %d", got.StatusCode)
	}
}

// TestAClientThatGoesAwayLeavesNothing of a request that was left to the server.
func TestAClientThatGoesAwayLeavesNothing(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(siteOfAllKinds), func(c *Config) { c.Requests = deaf{} })
	for range 50 {
		c := f.dial()
		br := bufio.NewReader(c)
		askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
		io.WriteString(c, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	waitFor(t, "all to end", func() bool {
		_, n := f.front.Load()
		return n == 0 && f.active() == 0
	})
}

// TestTheFastPathKeepsTheLimitOfRequests on one connection.
func TestTheFastPathKeepsTheLimitOfRequests(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Limits.Requests = 5 })
	c := f.dial()
	br := bufio.NewReader(c)
	for i := 1; i <= 5; i++ {
		if got := askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET"); got.Close != (i == 5) {
			t.Errorf("request %d: close %v", i, got.Close)
		}
	}
}

// TestTheFastPathEndsWhatIsIdle, each time for as long as the server does.
func TestTheFastPathEndsWhatIsIdle(t *testing.T) {
	const idle = 300 * time.Millisecond
	f := serve(t, nil, http.HandlerFunc(echo), func(c *Config) { c.Timeouts.Idle, c.Limits.Requests = idle, 1e9 })
	c := f.dial()
	br := bufio.NewReader(c)
	var last time.Time
	for begun := time.Now(); time.Since(begun) < 2*idle; {
		last = time.Now()
		askOn(t, c, br, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET")
	}
	if _, err := br.ReadByte(); err != io.EOF || time.Since(last) < idle {
		t.Errorf("%v after %v, want the end after %v", err, time.Since(last), idle)
	}
}

// fastHead holds a head against the server's parser: what the fast path takes, that takes too, to the
// same end, without a body, so that it can go on with what is left to it.
func fastHead(t *testing.T, b []byte) {
	h, ok := wholeHead(b)
	if !ok {
		return
	}
	r := newRequest()
	defer r.release()
	if no := r.parse(h); no.code != 0 || !r.isPlain() {
		return
	}
	var req fasthttp.Request
	br := bufio.NewReaderSize(bytes.NewReader(b), bufferSize)
	if err := req.Header.Read(br); err != nil {
		t.Fatalf("%q is taken; the server says %v", b, err)
	}
	if n := req.Header.ContentLength(); br.Buffered() != 0 || n > 0 || n == -1 || req.MayContinue() {
		t.Errorf("%q is taken; the server leaves %d bytes of it, and sees a body of %d, expectation %v", b, br.Buffered(), n, req.MayContinue())
	}
	if string(req.Header.RequestURI()) != string(h.target) {
		t.Errorf("%q: the server sees the target %q", b, req.Header.RequestURI())
	}
}

func TestTheServerTakesWhatTheFastPathTakes(t *testing.T) {
	for _, head := range wholeHeads {
		fastHead(t, []byte(head))
	}
}

func FuzzFastHead(f *testing.F) {
	for _, head := range wholeHeads {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= bufferSize {
			fastHead(t, b)
		}
	})
}
