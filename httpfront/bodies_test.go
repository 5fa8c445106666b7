package httpfront

import (
	"bufio"
	"fmt"
	"io"
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
	for _, path := range []string{"/known", "/chunked"} {
		req, err := http.NewRequest("POST", f.url(path), zeros(size))
		if err != nil {
			t.Fatal(err)
		}
		if path == "/known" {
			req.ContentLength = size
		}
		resp, err := f.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64<<10)
		var down int64
		for steps := 0; ; steps++ {
			n, err := resp.Body.Read(buf)
			down += int64(n)
			if steps%256 == 0 {
				watch()
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Got"); got != strconv.FormatInt(size, 10) || down != size {
			t.Errorf("%s: %s bytes up and %d down, want %d", path, got, down, size)
		}
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
		want := ""
		if path == "/known" {
			want = "12345"
		}
		if resp.StatusCode != 200 || resp.Header.Get("Content-Length") != want {
			t.Errorf("%s: got %d, length %q, want %q", path, resp.StatusCode, resp.Header.Get("Content-Length"), want)
		}
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
		fmt.Fprintf(c, "GET /?code=%d HTTP/1.1\r\nHost: a\r\n\r\n", code)
		got := c.read("GET")
		if got.StatusCode != code || got.body != "" || got.Header.Get("Etag") != `"x"` || got.Header.Get("Location") != "/b" {
			t.Errorf("%d: got %d %q %v", code, got.StatusCode, got.body, got.Header)
		}
	}
}

func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.Copy(w, zeros(1<<30))
		ended <- err
	}), func(c *Config) { c.Timeouts.Write = 100 * time.Millisecond })
	c := f.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("somebody took a GiB")
		}
	case <-time.After(10 * time.Second):
		t.Error("the origin still sends")
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
	for range n {
		select {
		case s := <-got:
			return s
		case <-time.After(pause):
		}
		io.WriteString(c, piece)
	}
	select {
	case s := <-got:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("neither answered nor closed")
		return ""
	}
}

func TestBodiesThatTrickleInAreCutOff(t *testing.T) {
	t.Parallel()
	const head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
	for name, c := range map[string]struct {
		head, piece string
		rate        int
		code        string
	}{
		"a byte at a time":     {head + "Content-Length: 9000\r\n\r\n" + strings.Repeat("x", 8600), "x", 1 << 20, "408"},
		"a chunk at a time":    {head + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 1000, "408"},
		"only an extension":    {head + "Transfer-Encoding: chunked\r\n\r\n1;", "x", 1000, "408"},
		"as slow as it may be": {head + "Content-Length: 9000\r\n\r\n" + strings.Repeat("x", 8600), "x", 1, "200"},
		"any rate":             {head + "Content-Length: 9000\r\n\r\n" + strings.Repeat("x", 8600), "x", -1, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), func(cfg *Config) {
				cfg.Timeouts.Body, cfg.Limits.BodyRate = 400*time.Millisecond, c.rate
			})
			if got := trickle(t, f, c.head, c.piece, 400, 3*time.Millisecond); codesOf(got) != c.code {
				t.Errorf("got %q, want %s", got, c.code)
			}
			waitFor(t, "the place at the origin", func() bool { return f.active() == 0 })
		})
	}
}

// TestSlowTalkIsNoTrickle has both sides talk slowly once the origin has begun.
func TestSlowTalkIsNoTrickle(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.(http.Flusher).Flush()
		io.Copy(w, r.Body)
	}), func(c *Config) { c.Timeouts.Body, c.Limits.BodyRate = 400*time.Millisecond, 1<<20 })
	got := trickle(t, f, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200\r\n\r\n", "x", 200, 5*time.Millisecond)
	if codesOf(got) != "200" || strings.Count(got, "x") != 200 {
		t.Errorf("got %q", got)
	}
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
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	start := time.Now()
	buf := make([]byte, 128<<10)
	total := 0
	for {
		n, err := c.Read(buf)
		total += n
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		time.Sleep(25 * time.Millisecond)
	}
	if total < size {
		t.Errorf("got %d bytes, want %d and a head", total, size)
	}
	if d := time.Since(start); d < limit {
		t.Errorf("it took %v only, which shows nothing about a limit of %v", d, limit)
	}
}

func TestHTTP10ClientsGetNoChunks(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		io.WriteString(w, "two")
	}))
	got := f.raw("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	if strings.Contains(got, "chunked") || !strings.HasSuffix(got, "\r\n\r\none two") {
		t.Errorf("got %q", got)
	}
}

// TestHTTP10ClientsGetTheirPass asks as old proxies do, which is how most
// requests come where one of them stands in front.
func TestHTTP10ClientsGetTheirPass(t *testing.T) {
	f := serve(t, fakeRooms{room: newRoom(letIn)}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Set-Cookie, Cache-Control") // has no say about ours
		w.Header().Set("Cache-Control", "public, max-age=60")
		io.WriteString(w, "one ")
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
		}
	}))
	for _, path := range []string{"/known", "/chunked"} {
		got := f.raw("GET " + path + " HTTP/1.0\r\nHost: a\r\n\r\n")
		if strings.Count(got, "\r\nSet-Cookie: ropeline=") != 1 || !strings.Contains(got, "\r\nCache-Control: private, no-cache\r\n") {
			t.Errorf("%s: got %q", path, got)
		}
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
		if !strings.HasSuffix(string(got), "seen /up") {
			t.Errorf("got %q", got)
		}
		if got := f.get("/next"); got.body != "seen /next" {
			t.Errorf("after it: got %q", got.body)
		}
		c.Close()
	}
	if n := f.active(); n != 0 {
		t.Errorf("%d places at the origin are still taken", n)
	}
}

func TestEventsComeAsTheyHappen(t *testing.T) {
	next := make(chan string)
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for e := range next {
			io.WriteString(w, "data: "+e+"\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	resp, err := f.client.Get(f.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for _, e := range []string{"one", "two", "three"} {
		next <- e // the origin writes it only now
		line, err := br.ReadString('\n')
		if err != nil || line != "data: "+e+"\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		br.ReadString('\n')
	}
	close(next)
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
}

func TestExpectContinue(t *testing.T) {
	var admit atomic.Bool
	f := serve(t, fakeRooms{room: newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict {
		v := never(p, known, now)
		v.Admit = admit.Load()
		return v
	})}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			t.Error("Expect reached the origin")
		}
		io.Copy(w, r.Body)
	}))
	const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

	// Who waits is told before the body is sent.
	if got := f.raw(head); !strings.HasPrefix(got, "HTTP/1.1 429 ") || !strings.Contains(got, "Set-Cookie: ropeline=") ||
		!strings.Contains(got, "\r\nConnection: close\r\n") { // the client may have sent a body all the same
		t.Errorf("while waiting: got %q", got)
	}

	admit.Store(true)
	c := f.dial()
	for _, spelling := range []string{"100-continue", "100-Continue", "100-CONTINUE"} {
		io.WriteString(c, strings.Replace(head, "100-continue", spelling, 1))
		if resp := c.response("POST"); resp.StatusCode != 100 {
			t.Fatalf("got %d, want 100", resp.StatusCode)
		}
		io.WriteString(c, "hello")
		if got := c.read("POST"); got.StatusCode != 200 || got.body != "hello" || len(got.Cookies()) != 1 {
			t.Fatalf("got %d %q %v", got.StatusCode, got.body, got.Header)
		}
	}
}

func TestAnOriginMayRefuseAnUpload(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.CopyN(io.Discard, r.Body, 1<<20)
		w.Header().Set("Connection", "close")
		http.Error(w, "that is enough", http.StatusRequestEntityTooLarge)
	}))
	got := f.do("POST", "/", io.MultiReader(zeros(1<<20), zeros(1<<20)))
	if got.StatusCode != 413 || !strings.Contains(got.body, "that is enough") {
		t.Errorf("got %d %q", got.StatusCode, got.body)
	}
	for range 3 {
		if got := f.get("/"); got.StatusCode != 413 {
			t.Errorf("after it: got %d", got.StatusCode)
		}
	}
}

func TestBothBodiesAtOnce(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.(http.Flusher).Flush()
		br := bufio.NewReader(r.Body)
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, "got "+line)
			w.(http.Flusher).Flush()
		}
	}))
	pr, pw := io.Pipe()
	req, _ := http.NewRequest("POST", f.url("/"), pr)
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for _, s := range []string{"one\n", "two\n"} {
		io.WriteString(pw, s)
		if got, err := br.ReadString('\n'); got != "got "+s {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	pw.Close()
	if rest, err := io.ReadAll(br); len(rest) != 0 || err != nil {
		t.Errorf("got %q, %v at the end", rest, err)
	}
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
