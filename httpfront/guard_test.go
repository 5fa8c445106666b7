package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
)

// recorder is an origin that remembers what it was asked for.
type recorder struct {
	mu    sync.Mutex // guards the following
	paths []string
}

func (r *recorder) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths = append(r.paths, req.RequestURI)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.paths
	r.paths = nil
	return p
}

// hidden is a request that must not be served where it is behind another one.
const hidden = "GET /hidden HTTP/1.1\r\nHost: good\r\n\r\n"

func TestHeadsThatAreServed(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo))
	good := func(line, fields string) string {
		return line + " HTTP/1.1\r\nHost: good\r\nConnection: close\r\n" + fields + "\r\n"
	}
	host := func(line, host string) string {
		return line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	}
	for name, c := range map[string]struct{ raw, want string }{
		"target as it is":       {good("GET /a//b%20c;x?q=1%2F", ""), "GET /a//b%20c;x?q=1%2F host=good\n"},
		"address of the host":   {good("GET http://good/a?b", ""), "GET /a?b host=good\n"},
		"of its usual port":     {good("GET http://good:80/a", ""), "GET /a host=good\n"},
		"and the other way":     {host("GET http://good/a", "good:80"), "GET /a host=good:80\n"},
		"of that of TLS":        {good("GET HTTPS://good:443/a", ""), "GET /a host=good\n"},
		"of an empty port":      {host("GET http://good:/a", "good:"), "GET /a host=good\n"},
		"in HTTP/1.0":           {"GET http://good:80/a HTTP/1.0\r\n\r\n", "GET /a host=good:80\n"},
		"the same of IPv6":      {"GET http://[::1]:/a HTTP/1.0\r\n\r\n", "GET /a host=[::1]\n"},
		"empty port":            {host("GET /a", "good:"), "GET /a host=good\n"},
		"port with a zero":      {host("GET /a", "good:080"), "GET /a host=good:080\n"},
		"address without path":  {good("GET http://GOOD?b", ""), "GET /?b host=good\n"},
		"HTTP/1.0 without host": {"GET /a HTTP/1.0\r\n\r\n", "GET /a host=127.0.0.1"},
		"underscore in host":    {host("GET /a", "my_app:8080"), "GET /a host=my_app:8080\n"},
		"IPv6 host":             {host("GET /a", "[::1]:80"), "GET /a host=[::1]:80\n"},
		"most options":          {good("GET /a", "Connection: x"+strings.Repeat(", x", 30)+"\r\n"), "GET /a host=good\n"},
		"OPTIONS star":          {good("OPTIONS *", ""), "HTTP/1.1 200"},
		"method of WebDAV":      {good("PROPFIND /a", ""), "PROPFIND /a host=good\n"},
		"method with a dash":    {good("VERSION-CONTROL /a", ""), "VERSION-CONTROL /a host=good\n"},
		"made-up method":        {good("BREW /a", ""), "BREW /a host=good\n"},
		"empty value":           {good("GET /a", "X-Empty:\r\n"), "X-Empty: \n"},
		"blank lines before":    {"\r\n\r\n" + good("GET /a", ""), "GET /a host=good\n"},
		"chunks and trailers":   {good("POST /a", "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n") + "3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", "POST /a host=good\n"},
	} {
		has(t, name, f.raw(c.raw), c.want)
	}
}

// TestRequestsBehindAnotherAreServedInOrder, whoever answers the one before: what is left of a body
// is no request.
func TestRequestsBehindAnotherAreServedInOrder(t *testing.T) {
	f := serve(t, fakeRooms{path: "/wait", room: newRoom(never)}, http.HandlerFunc(echo))
	c := f.dial()
	inChunks := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	atOnce := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hidden), hidden)
	io.WriteString(c, "POST /one HTTP/1.1\r\nHost: a\r\n"+atOnce+
		"POST /wait HTTP/1.1\r\nHost: a\r\n"+atOnce+
		"POST /wait HTTP/1.1\r\nHost: a\r\n"+inChunks+
		"POST /two HTTP/1.1\r\nHost: a\r\n"+inChunks+
		"GET /three HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, want := range []string{"POST /one ", "<!doctype", "<!doctype", "POST /two ", "GET /three "} {
		if got := c.read("GET"); !strings.HasPrefix(got.body, want) || got.Close {
			t.Fatalf("got %d %.80q, close %v, want %q", got.StatusCode, got.body, got.Close, want)
		}
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(discard), func(c *Config) {
		c.Timeouts.Head, c.Timeouts.Idle, c.Timeouts.Body = 100*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
	})
	for name, c := range map[string]struct{ raw, codes string }{
		"silent":               {"", ""},
		"slow head":            {"GET / HTTP/1.1\r\nHo", "408"},
		"slow body":            {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 10000), "408"},
		"idle after a request": {plainGet, "200"},
	} {
		start := time.Now()
		got := f.raw(c.raw)
		equal(t, name, codesOf(got), c.codes)
		equal(t, name+": something is said", got != "", c.codes != "")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: cut off after %v", name, d)
		}
	}
}

// FuzzHead reads any head. What is not refused is sent on in a form that another
// parser understands in the same way.
func FuzzHead(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 38\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 38\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 38\r\n\r\n"))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 38\r\n\r\n"))
	f.Add([]byte("OPTIONS * HTTP/1.0\r\n\r\n"))
	for _, head := range wholeHeads {
		f.Add([]byte(head))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		end, no := http1.HeadEnd(head, 0)
		if no.Code != 0 || !bytes.HasSuffix(head[:end], []byte("\r\n\r\n")) || len(head) > bufferSize {
			return
		}
		h, ok := http1.Split(head[:end])
		if !ok {
			return
		}
		r := newRequest()
		defer r.release()
		no = r.Parse(h)
		if no.Code != 0 {
			if no.Code < 400 && no.To == "" || no.Code > 505 || no.Reason == "" {
				t.Fatalf("refused with %+v", no)
			}
			return
		}
		agree(t, r)
	})
}

// agree checks that another parser reads what we send as we meant it.
func agree(t *testing.T, r *request) {
	t.Helper()
	out := r.appendHead(nil, "origin", "0123456789abcdef")
	got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		if strings.Contains(err.Error(), "URI") || strings.Contains(err.Error(), "URL") {
			return // the target is passed on as it is
		}
		t.Fatalf("net/http does not read %q: %v", out, err)
	}
	if got.Method != r.Method || got.RequestURI != string(r.Target) {
		t.Fatalf("net/http reads %s %q from %q", got.Method, got.RequestURI, out)
	}
	want := max(r.Length, 0)
	if r.Length == http1.LengthChunked {
		want = -1
	}
	if got.ContentLength != want {
		t.Fatalf("net/http reads length %d, want %d, from %q", got.ContentLength, want, out)
	}
	bare := bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n"))
	if end := []byte("\r\n\r\n"); bare || !bytes.HasSuffix(out, end) || bytes.Count(out, end) != 1 {
		t.Fatalf("the head does not end where it should: %q", out)
	}
}

// FuzzConnection sends bytes to a running front, with a hidden request in what
// may be a body, and looks at what reaches the origin.
func FuzzConnection(f *testing.F) {
	origin := &recorder{}
	fr := serve(f, nil, origin, func(c *Config) {
		c.Timeouts.Head, c.Timeouts.Idle = 50*time.Millisecond, 10*time.Millisecond
	})
	body := "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, fields := range []string{
		"Content-Length: %d\r\n", "Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", "Content-Length: %d\r\nX:\r\n y\r\n",
		"Content-Length: %d\nX: y\r\n", "Content-Length:%d \r\n", "Content-length:\t%d\r\nTransfer-Encoding:\x0bchunked\r\n",
	} {
		f.Add(fmt.Appendf(nil, fields, len(body)))
	}
	f.Fuzz(func(t *testing.T, fields []byte) {
		// Only heads that state the body's length to any reader that finds it, so no
		// empty line among the fields, nor before them, where they follow a line's end.
		lines := append([]byte("\n"), fields...)
		if len(fields) > 4096 || bytes.Contains(lines, []byte("\n\n")) || bytes.Contains(lines, []byte("\n\r\n")) {
			return
		}
		c := must(net.Dial("tcp", fr.addr))
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		head := fmt.Sprintf("POST /outer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n", len(body), fields)
		io.WriteString(c, head+body)
		got, _ := io.ReadAll(c)
		for _, p := range origin.take() {
			if p != "/outer" {
				t.Fatalf("%q made the front ask for %q; it answered %q", head, p, got)
			}
		}
	})
}
