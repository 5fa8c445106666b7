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

func TestHeadsThatAreRefused(t *testing.T) {
	const host = "Host: good\r\n"
	for name, c := range map[string]struct {
		code int
		raw  string
	}{
		"length and chunks":        {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		"chunks and length":        {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n" + hidden},
		"unknown coding":           {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden},
		"identity":                 {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n" + hidden},
		"two codings":              {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden},
		"coding twice":             {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		"coding with a space":      {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden},
		"coding with a tab":        {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n" + hidden},
		"coding in 1.0":            {400, "POST / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		"two lengths":              {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello" + hidden},
		"same length twice":        {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + hidden},
		"list of lengths":          {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 5, 5\r\n\r\nhello" + hidden},
		"signed length":            {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: +3\r\n\r\nabc" + hidden},
		"negative length":          {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: -3\r\n\r\nabc" + hidden},
		"hexadecimal length":       {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x3\r\n\r\nabc" + hidden},
		"empty length":             {400, "POST / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\n" + hidden},
		"huge length":              {400, "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n" + hidden},
		"folded field":             {400, "GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n" + hidden},
		"folded coding":            {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden},
		"folded first field":       {400, "GET / HTTP/1.1\r\n X: a\r\n" + host + "\r\n" + hidden},
		"bare LF":                  {400, "GET / HTTP/1.1\r\n" + host + "X: a\nY: b\r\n\r\n" + hidden},
		"bare LF at the end":       {400, "GET / HTTP/1.1\r\n" + host + "X: a\n\n" + hidden},
		"bare CR in a value":       {400, "GET / HTTP/1.1\r\n" + host + "X: a\rY: b\r\n\r\n" + hidden},
		"bare CR in a name":        {400, "GET / HTTP/1.1\r\n" + host + "X\r: a\r\n\r\n" + hidden},
		"NUL in a value":           {400, "GET / HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n" + hidden},
		"no name":                  {400, "GET / HTTP/1.1\r\n" + host + ": a\r\n\r\n" + hidden},
		"no colon":                 {400, "GET / HTTP/1.1\r\n" + host + "X\r\n\r\n" + hidden},
		"name with a space":        {400, "GET / HTTP/1.1\r\n" + host + "X Y: a\r\n\r\n" + hidden},
		"no host":                  {400, "GET / HTTP/1.1\r\n\r\n" + hidden},
		"empty host":               {400, "GET / HTTP/1.1\r\nHost:\r\n\r\n" + hidden},
		"two hosts":                {400, "GET / HTTP/1.1\r\nHost: good\r\nHost: evil\r\n\r\n" + hidden},
		"same host twice":          {400, "GET / HTTP/1.1\r\nHost: good\r\nHost: good\r\n\r\n" + hidden},
		"user in the host":         {400, "GET / HTTP/1.1\r\nHost: good@evil:80\r\n\r\n" + hidden},
		"path in the host":         {400, "GET / HTTP/1.1\r\nHost: good/evil\r\n\r\n" + hidden},
		"space in the host":        {400, "GET / HTTP/1.1\r\nHost: good evil\r\n\r\n" + hidden},
		"port that is none":        {400, "GET / HTTP/1.1\r\nHost: good:80:80\r\n\r\n" + hidden},
		"port too high":            {400, "GET / HTTP/1.1\r\nHost: good:65536\r\n\r\n" + hidden},
		"non-ASCII host":           {400, "GET / HTTP/1.1\r\nHost: g\xc3\xb6d\r\n\r\n" + hidden},
		"quote in the host":        {400, "GET / HTTP/1.1\r\nHost: a\"b\r\n\r\n" + hidden},
		"address of another":       {400, "GET http://evil/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address of another port":  {400, "GET http://good:8080/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address of that of TLS":   {400, "GET http://good:443/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address and empty host":   {400, "GET http://good/ HTTP/1.0\r\nHost:\r\n\r\n" + hidden},
		"address, and no host":     {400, "GET http://good/ HTTP/1.1\r\n\r\n" + hidden},
		"address without a host":   {400, "GET http:///a HTTP/1.0\r\n\r\n" + hidden},
		"user in an address alone": {400, "GET http://a@good/ HTTP/1.0\r\n\r\n" + hidden},
		"a user after the host":    {400, "GET http://good@evil/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"two ports":                {400, "GET / HTTP/1.1\r\nHost: good::80\r\n\r\n" + hidden},
		"port of nothing":          {400, "GET / HTTP/1.1\r\nHost: :80\r\n\r\n" + hidden},
		"colon alone":              {400, "GET / HTTP/1.1\r\nHost: :\r\n\r\n" + hidden},
		"port zero":                {400, "GET / HTTP/1.1\r\nHost: good:0\r\n\r\n" + hidden},
		"address with a user":      {400, "GET http://a@good/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address of another kind":  {400, "GET ftp://good/ HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address with a fragment":  {400, "GET /#a HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"address that is none":     {400, "GET good HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"star for GET":             {400, "GET * HTTP/1.1\r\nHost: good\r\n\r\n" + hidden},
		"preface of HTTP/2":        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden},
		"HTTP/2.0":                 {505, "GET / HTTP/2.0\r\n" + host + "\r\n" + hidden},
		"HTTP/1.2":                 {505, "GET / HTTP/1.2\r\n" + host + "\r\n" + hidden},
		"HTTP/0.9":                 {505, "GET / HTTP/0.9\r\n" + host + "\r\n" + hidden},
		"CONNECT":                  {501, "CONNECT good:80 HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"TRACE":                    {501, "TRACE / HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"method in lower case":     {501, "get / HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"method of mixed case":     {501, "Get / HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"method that is too long":  {501, strings.Repeat("A", 33) + " / HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"method of HTTP/2":         {501, "PRI / HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"too many fields":          {431, "GET / HTTP/1.1\r\n" + host + strings.Repeat("X: a\r\n", 100) + "\r\n" + hidden},
		"too many options":         {431, "GET / HTTP/1.1\r\n" + host + "Connection: a" + strings.Repeat(", a", 32) + "\r\n\r\n" + hidden},
		"in several fields":        {431, "GET / HTTP/1.1\r\n" + host + strings.Repeat("Connection: "+strings.Repeat(",", 15)+"\r\n", 3) + "\r\n" + hidden},
		"too long a head":          {431, "GET / HTTP/1.1\r\n" + host + "X: " + strings.Repeat("a", bufferSize) + "\r\n\r\n" + hidden},
		"too long an address":      {414, "GET /" + strings.Repeat("a", 8<<10) + " HTTP/1.1\r\n" + host + "\r\n" + hidden},
		"unknown expectation":      {417, "POST / HTTP/1.1\r\n" + host + "Expect: tea\r\nContent-Length: 0\r\n\r\n" + hidden},
		"too long a body":          {413, "POST / HTTP/1.1\r\n" + host + "Content-Length: 1001\r\n\r\n" + strings.Repeat("a", 1001) + hidden},
		"too long a body in parts": {413, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("a", 1001) + "\r\n0\r\n\r\n" + hidden},
		"chunk that is none":       {400, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n" + hidden},
	} {
		t.Run(name, func(t *testing.T) {
			origin := &recorder{}
			f := serve(t, nil, origin, func(c *Config) { c.Limits.Body = 1000 })
			got := f.raw(c.raw)
			if !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", c.code)) {
				t.Errorf("got %.200q, want %d", got, c.code)
			}
			if n := strings.Count(got, "\r\nDate: "); n != 1 {
				t.Errorf("got %d answers: %q", n, got)
			}
			if !strings.Contains(got, "\r\nConnection: close\r\n") {
				t.Errorf("the connection is not announced to close: %q", got)
			}
			for _, p := range origin.take() {
				if p == "/hidden" {
					t.Errorf("the hidden request reached the origin")
				}
			}
		})
	}
}

func TestHeadsThatAreServed(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(echo))
	for name, c := range map[string]struct{ raw, want string }{
		"address of the host":   {"GET http://good/a?b HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "GET /a?b host=good\n"},
		"of its usual port":     {"GET http://good:80/a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "GET /a host=good\n"},
		"and the other way":     {"GET http://good/a HTTP/1.1\r\nHost: good:80\r\nConnection: close\r\n\r\n", "GET /a host=good:80\n"},
		"of that of TLS":        {"GET HTTPS://good:443/a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "GET /a host=good\n"},
		"of an empty port":      {"GET http://good:/a HTTP/1.1\r\nHost: good:\r\nConnection: close\r\n\r\n", "GET /a host=good\n"},
		"in HTTP/1.0":           {"GET http://good:80/a HTTP/1.0\r\n\r\n", "GET /a host=good:80\n"},
		"the same of IPv6":      {"GET http://[::1]:/a HTTP/1.0\r\n\r\n", "GET /a host=[::1]\n"},
		"empty port":            {"GET /a HTTP/1.1\r\nHost: good:\r\nConnection: close\r\n\r\n", "GET /a host=good\n"},
		"port with a zero":      {"GET /a HTTP/1.1\r\nHost: good:080\r\nConnection: close\r\n\r\n", "GET /a host=good:080\n"},
		"address without path":  {"GET http://GOOD?b HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "GET /?b host=good\n"},
		"HTTP/1.0 without host": {"GET /a HTTP/1.0\r\n\r\n", "GET /a host=127.0.0.1"},
		"underscore in host":    {"GET /a HTTP/1.1\r\nHost: my_app:8080\r\nConnection: close\r\n\r\n", "GET /a host=my_app:8080\n"},
		"IPv6 host":             {"GET /a HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n", "GET /a host=[::1]:80\n"},
		"most options":          {"GET /a HTTP/1.1\r\nHost: good\r\nConnection: close" + strings.Repeat(", x", 31) + "\r\nX: y\r\n\r\n", "GET /a host=good\n"},
		"OPTIONS star":          {"OPTIONS * HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "HTTP/1.1 200"},
		"method of WebDAV":      {"PROPFIND /a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "PROPFIND /a host=good\n"},
		"method with a dash":    {"VERSION-CONTROL /a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "VERSION-CONTROL /a host=good\n"},
		"made-up method":        {"BREW /a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "BREW /a host=good\n"},
		"empty value":           {"GET /a HTTP/1.1\r\nHost: good\r\nX-Empty:\r\nConnection: close\r\n\r\n", "X-Empty: \n"},
		"blank lines before":    {"\r\n\r\nGET /a HTTP/1.1\r\nHost: good\r\nConnection: close\r\n\r\n", "GET /a host=good\n"},
		"chunks and trailers":   {"POST /a HTTP/1.1\r\nHost: good\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", "POST /a host=good\n"},
	} {
		if got := f.raw(c.raw); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestRequestsBehindAnotherAreServedInOrder(t *testing.T) {
	f := serve(t, fakeRooms{path: "/wait", room: newRoom(never)}, http.HandlerFunc(echo))
	c := f.dial()
	defer c.Close()
	io.WriteString(c, "POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"+
		"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"+
		"POST /two HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"+
		"GET /three HTTP/1.1\r\nHost: a\r\n\r\n")
	br := bufio.NewReader(c)
	for _, want := range []string{"POST /one ", "<!doctype", "POST /two ", "GET /three "} {
		resp := readResponse(t, br, "GET")
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasPrefix(string(body), want) {
			t.Fatalf("got %d %.80q, %v, want %q", resp.StatusCode, body, err, want)
		}
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }),
		func(c *Config) {
			c.Timeouts.Head, c.Timeouts.Idle, c.Timeouts.Body = 100*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
		})
	for name, c := range map[string]struct{ raw, want string }{
		"silent":    {"", ""},
		"slow head": {"GET / HTTP/1.1\r\nHo", "HTTP/1.1 408 "},
		"slow body": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 10000), "HTTP/1.1 408 "},
	} {
		start := time.Now()
		got := f.raw(c.raw)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q", name, got)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: cut off after %v", name, d)
		}
	}
	if got := f.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); strings.Count(got, "HTTP/1.1") != 1 || !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("idle after a request: got %q", got)
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
	if bytes.Count(out, []byte("\n")) != bytes.Count(out, []byte("\r\n")) || !bytes.HasSuffix(out, []byte("\r\n\r\n")) || bytes.Count(out, []byte("\r\n\r\n")) != 1 {
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
		c, err := net.Dial("tcp", fr.addr)
		if err != nil {
			t.Fatal(err)
		}
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
