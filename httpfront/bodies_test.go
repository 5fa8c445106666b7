package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// zeros is a body of n bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLargeBodiesAreNotHeld(t *testing.T) {
	const mayGrow = 24 << 20
	size := int64(96 << 20)
	if testing.Short() {
		size /= 3 // more than the heap may grow all the same
	}
	var peak atomic.Uint64
	watch := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		for old := peak.Load(); m.HeapAlloc > old && !peak.CompareAndSwap(old, m.HeapAlloc); old = peak.Load() {
		}
	}
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Errorf("the origin read %d bytes: %v", n, err)
		}
		watch()
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		}
		w.Header().Set("X-Got", strconv.FormatInt(n, 10))
		io.Copy(w, zeros(size))
	}))
	runtime.GC()
	watch()
	before := peak.Load()
	for path, length := range map[string]int64{"/known": size, "/chunked": -1} {
		req := must(http.NewRequest("POST", f.url(path), zeros(size)))
		req.ContentLength = length
		resp, err := f.client.Do(req)
		noError(t, err)
		var n, down int64
		for err == nil {
			n, err = io.CopyN(io.Discard, resp.Body, 16<<20)
			down += n
			watch()
		}
		resp.Body.Close()
		equal(t, path+": bytes up and down, and the end", fmt.Sprintln(resp.Header.Get("X-Got"), down, err), fmt.Sprintln(size, size, io.EOF))
	}
	if grown := int64(peak.Load()) - int64(before); grown > mayGrow {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	} else {
		t.Logf("the heap grew by %d KiB at most", grown>>10)
	}
}

func TestHead(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "12345")
		}
	}))
	c := f.dial()
	for _, path := range []string{"/known", "/unknown", "/known"} {
		fmt.Fprintf(c, "HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
		resp := c.response("HEAD")
		equal(t, path, resp.StatusCode, 200)
		equal(t, path, resp.Header.Get("Content-Length"), map[string]string{"/known": "12345"}[path])
	}
}

func TestResponsesWithoutABody(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		w.Header().Set("Etag", `"x"`)
		w.Header().Set("Location", "/b")
		w.WriteHeader(code)
	}))
	c := f.dial()
	for _, code := range []int{204, 304, 302, 200, 404, 500, 204} {
		got := c.ask("GET", fmt.Sprintf("GET /?code=%d HTTP/1.1\r\nHost: a\r\n\r\n", code)).is(t, code, "\r\nEtag: \"x\"\r\n", "\r\nLocation: /b\r\n")
		equal(t, "the body", got.body, "")
	}
}

func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, zeros(1<<30))
		ended <- err
	}), func(c *Config) { c.Timeouts.Write = 100 * time.Millisecond })
	io.WriteString(f.dial(), plainGet)
	if await(t, "the origin to end", ended) == nil {
		t.Error("somebody took a GiB")
	}
}

// trickle sends a byte of a body now and then, with no pause that is too long,
// until the front closes or n bytes are sent, and returns what came back.
func trickle(t *testing.T, f *front, head string, piece string, n int, pause time.Duration) string {
	t.Helper()
	c := f.dial()
	io.WriteString(c, head)
	got := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(c) // a reset at the end is fine
		got <- string(b)
	}()
	for ; n > 0 && len(got) == 0; n-- {
		time.Sleep(pause)
		io.WriteString(c, piece)
	}
	return await(t, "an answer, or the end", got)
}

func TestBodiesThatTrickleInAreCutOff(t *testing.T) {
	t.Parallel()
	const (
		head    = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
		chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
	)
	known := head + "Content-Length: 9000\r\n\r\n" + strings.Repeat("x", 8600)
	for name, c := range map[string]struct {
		head, piece string
		rate        int
		code        string
	}{
		"a byte at a time":     {known, "x", 1 << 20, "408"},
		"a chunk at a time":    {chunked, "1\r\nx\r\n", 1000, "408"},
		"only an extension":    {chunked + "1;", "x", 1000, "408"},
		"as slow as it may be": {known, "x", 1, "200"},
		"any rate":             {known, "x", -1, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil, http.HandlerFunc(discard), func(cfg *Config) {
				cfg.Timeouts.Body, cfg.Limits.BodyRate = 400*time.Millisecond, c.rate
			})
			equal(t, "codes", codesOf(trickle(t, f, c.head, c.piece, 400, 3*time.Millisecond)), c.code)
			waitFor(t, "the place at the origin", func() bool { return f.active() == 0 })
		})
	}
}

// echoBody is an origin that says what it is told, while it is told.
func echoBody(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).EnableFullDuplex()
	w.(http.Flusher).Flush()
	for b := bufio.NewReader(r.Body); ; w.(http.Flusher).Flush() {
		c, err := b.ReadByte()
		if err != nil {
			return
		}
		w.Write([]byte{c})
	}
}

// TestSlowTalkIsNoTrickle has both sides talk slowly once the origin has begun.
func TestSlowTalkIsNoTrickle(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, http.HandlerFunc(echoBody), func(c *Config) { c.Timeouts.Body, c.Limits.BodyRate = 400*time.Millisecond, 1<<20 })
	got := trickle(t, f, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200\r\n\r\n", "x", 200, 5*time.Millisecond)
	equal(t, "codes", codesOf(got), "200")
	equal(t, "bytes", strings.Count(got, "x"), 200)
}

func TestSlowReadersGetEverything(t *testing.T) {
	t.Parallel()
	const size, limit = 8 << 20, time.Second // the limit of a pause, which is shorter than the whole takes
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		io.Copy(w, zeros(size))
	}), func(c *Config) { c.Timeouts.Write, c.Timeouts.Head, c.Timeouts.Stream = limit, limit, limit })
	c := f.dial()
	c.SetReadBuffer(64 << 10)
	io.WriteString(c, lastGet)
	start := time.Now()
	var n, total int64
	var err error
	for err == nil {
		n, err = io.CopyN(io.Discard, c, 128<<10)
		total += n
		time.Sleep(25 * time.Millisecond)
	}
	if total < size || err != io.EOF {
		t.Errorf("got %d bytes and %v, want %d and a head", total, err, size)
	}
	if d := time.Since(start); d < limit {
		t.Errorf("it took %v only, which shows nothing about a limit of %v", d, limit)
	}
}

// TestHTTP10ClientsGetTheirPass, and no chunks, as old proxies ask, which is how most
// requests come where one of them stands in front.
func TestHTTP10ClientsGetTheirPass(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(letIn)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Set-Cookie, Cache-Control") // has no say about ours
		w.Header().Set("Cache-Control", "public, max-age=60")
		io.WriteString(w, "one ")
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "two")
	}))
	for _, path := range []string{"/known", "/chunked"} {
		got := f.raw("GET " + path + " HTTP/1.0\r\nHost: a\r\n\r\n")
		answered(t, path, got, 200, "\r\nCache-Control: private, max-age=60\r\n", "\r\n\r\none two")
		lacks(t, path, got, "chunked")
		equal(t, path+": passes", strings.Count(got, "\r\nSet-Cookie: ropeline="), 1)
	}
}

// TestHTTP10UploadsThatGoOn has the origin answer in the middle of an upload
// whose client knows no chunks. The rest of it must not turn up anywhere else.
func TestHTTP10UploadsThatGoOn(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			io.CopyN(io.Discard, r.Body, 1000)
			w.Header().Set("Connection", "close")
		}
		io.WriteString(w, "seen "+r.URL.Path)
		w.(http.Flusher).Flush()
	}))
	for range 20 {
		c := f.dial()
		io.WriteString(c, "POST /up HTTP/1.0\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("x", 50000))
		got, _ := io.ReadAll(c) // the end may be a reset: there was more to come
		has(t, "an upload", string(got), "\r\n\r\nseen /up")
		equal(t, "after it", f.get("/next").body, "seen /next")
		c.Close()
	}
	equal(t, "places at the origin that are taken", f.active(), 0)
}

func TestEventsComeAsTheyHappen(t *testing.T) {
	next := make(chan struct{})
	body := serve(t, nil, slowly(next)).open("/chunked").Body
	for range 3 {
		expect(t, body, "x")
		next <- struct{}{} // the origin writes another one only now
	}
	equal(t, "the end", rest(t, body), "")
}

func TestExpectContinue(t *testing.T) {
	var admit atomic.Bool
	f := serve(t, fakeRooms{room: newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.Admit = admit.Load()
		return v
	})}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		equal(t, "Expect at the origin", r.Header.Get("Expect"), "")
		io.Copy(w, r.Body)
	}))
	const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

	// Who waits is told before the body is sent, which the client may do all the same.
	answered(t, "while waiting", f.raw(head), 429, "Set-Cookie: ropeline=", "\r\nConnection: close\r\n")

	admit.Store(true)
	c := f.dial()
	for _, spelling := range []string{"100-continue", "100-Continue", "100-CONTINUE"} {
		io.WriteString(c, strings.Replace(head, "100-continue", spelling, 1))
		equal(t, spelling, c.response("POST").StatusCode, 100)
		io.WriteString(c, "hello")
		c.read("POST").is(t, 200, "Set-Cookie: ropeline=", "\r\n\r\nhello")
	}
}

func TestAnOriginMayRefuseAnUpload(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 1<<20)
		w.Header().Set("Connection", "close")
		http.Error(w, "that is enough", http.StatusRequestEntityTooLarge)
	}))
	f.do("POST", "/", io.MultiReader(zeros(1<<20), zeros(1<<20))).is(t, 413, "that is enough")
	for range 3 {
		f.get("/").is(t, 413)
	}
}

func TestBothBodiesAtOnce(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echoBody))
	c := f.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	resp := c.response("POST")
	for range 2 {
		io.WriteString(c, "3\r\none\r\n")
		expect(t, resp.Body, "one")
	}
	io.WriteString(c, "0\r\n\r\n")
	equal(t, "the end", rest(t, resp.Body), "")
}

func TestACutBodyReachesNobody(t *testing.T) {
	got := make(chan error, 1)
	f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		got <- err
	}))
	for _, raw := range []string{
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" + strings.Repeat("a", 15000),
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		c := f.dial()
		io.WriteString(c, raw)
		c.Close()
		if err := <-got; err == nil {
			t.Errorf("the origin took a cut body for a whole one: %.80q", raw)
		}
	}
}

// TestABodyThatWaitedArrivesWhole: a request that waits for a place at the origin has no buffer, whatever of its body has come.
func TestABodyThatWaitedArrivesWhole(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-release
		}
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	}), func(c *Config) { c.Limits.Upstream.Conns, c.Timeouts.Upstream.Wait = 2, time.Minute }) // one of them for uploads
	for range 2 {
		go f.get("/slow")
		<-arrived
	}
	text := strings.Repeat("0123456789abcdef", 2<<10)
	conns := map[string]net.Conn{}
	for _, come := range []int{0, 1, 4 << 10, 9 << 10, len(text)} {
		for head, body := range map[string]string{
			fmt.Sprintf("Content-Length: %d\r\n\r\n", len(text)): text,
			"Transfer-Encoding: chunked\r\n\r\n":                 fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text),
		} {
			c := f.dial()
			name := fmt.Sprintf("%d bytes had come, %.9s", come, head)
			conns[name] = c
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+head+body[:come])
			waiting := func() int {
				stacks := make([]byte, 1<<20)
				return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "upstream.(*pool).wait(")
			}
			for len(conns) > waiting() {
				runtime.Gosched()
			}
			io.WriteString(c, body[come:]+plainGet)
		}
	}
	close(release)
	for name, c := range conns {
		in := bufio.NewReader(c)
		for _, want := range []string{text, ""} {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != want || err != nil {
				t.Errorf("%s: %d bytes come back, want %d: %s %v", name, len(got), len(want), resp.Status, err)
			}
		}
	}
}
