package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFieldsThatAreNoTrailers(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Sum": true, "Digest": true, "ETag": true, "Server-Timing": true, "Grpc-Status": true, strings.Repeat("x", 200): true,
		"Content-Length": false, "CONTENT-TYPE": false, "Host": false, "Authorization": false, "Set-Cookie": false, "Cookie": false,
		"Transfer-Encoding": false, "Trailer": false, "TE": false, "Connection": false, "Proxy-Anything": false, "Proxy-X": false, "Proxy-": false,
		"X-Forwarded-For": false, "X_Forwarded_For": false, "Forwarded": false, "X-Real-IP": false, "Ropeline-Anything": false, "If-Match": false,
		"cf-waiting-room-command": false, "Cache-Control": false, "WWW-Authenticate": false, "Set_Cookie": false,
	} {
		equal(t, name, isTrailer([]byte(name)), want)
	}
}

// TestTrailersDoNotSpeakForUs: what only we or trusted proxies may say is not in a
// trailer either, whatever it is called, whoever sends it.
func TestTrailersDoNotSpeakForUs(t *testing.T) {
	o, f := serveRaw(t, nil, okAnswer, trustLoopback, func(c *Config) {
		c.ProofHeader, c.CountryHeader, c.Edge.ClientIPHeader = "X-Admitted", "CF-IPCountry", "X-Visitor"
	})
	got := f.raw("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" +
		"Trailer: x-admitted, X_Admitted, X-Sum, CF-IPCountry, X-Visitor\r\n\r\n" +
		"0\r\nx-admitted: a.b.c\r\nX_Admitted: a.b.c\r\ncf-ipcountry: CH\r\nX-Visitor: 6.6.6.6\r\nX-Sum: 42\r\n\r\n")
	answered(t, "the client", got, 200)
	equal(t, "the body at the origin", o.body(), "0\r\nX-Sum: 42\r\n\r\n")
	has(t, "the origin", o.head(), "\r\nTrailer: X-Sum\r\n")
}

// rawOrigin keeps what it is sent, byte by byte, on all connections in the order in which they were opened.
type rawOrigin struct {
	url   string
	lasts bool // answers more than the first request of a connection

	mu   sync.Mutex // guards the following
	sent []*lockedLog
}

// newRawOrigin answers with says what net/http takes for a request.
func newRawOrigin(t *testing.T, says string) *rawOrigin {
	o := &rawOrigin{}
	o.url = tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		seen := &lockedLog{}
		o.mu.Lock()
		o.sent = append(o.sent, seen)
		o.mu.Unlock()
		br = bufio.NewReader(io.TeeReader(br, seen))
		for again := true; again; again = o.lasts {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			io.WriteString(c, says)
		}
	})
	return o
}

// last is what the connection that was opened last has brought.
func (o *rawOrigin) last() (head, body string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sent) == 0 {
		return "", ""
	}
	head, body, _ = strings.Cut(o.sent[len(o.sent)-1].text(), "\r\n\r\n")
	return head, body
}

func (o *rawOrigin) head() string {
	head, _ := o.last()
	return head
}

func (o *rawOrigin) body() string {
	_, body := o.last()
	return body
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestTrailersOfARequest(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
	for name, tt := range map[string]struct {
		fields, body string
		code         int
		announced    string
		want         string // how the body ends at the origin
	}{
		"none":          {"", "3\r\nabc\r\n0\r\n\r\n", 200, "", "\r\nabc\r\n0\r\n\r\n"},
		"announced":     {"Trailer: X-Sum, X-Other\r\nTrailer: Ropeline-X, X-Last\r\n", "3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n", 200, "Trailer: X-Sum, X-Other, X-Last\r\n", "0\r\nX-Sum: 42\r\n\r\n"},
		"unannounced":   {"", "3\r\nabc\r\n0\r\nx-sum: 42 \r\nX-Two: a\r\nX-Two: b\r\n\r\n", 200, "", "0\r\nx-sum: 42\r\nX-Two: a\r\nX-Two: b\r\n\r\n"},
		"also in head":  {"X-Sum: head\r\n", "0\r\nX-Sum: 42\r\n\r\n", 200, "X-Sum: head\r\n", "0\r\nX-Sum: 42\r\n\r\n"},
		"our own name":  {"Trailer: Ropeline-Admitted\r\n", "0\r\nRopeline-Admitted: 1\r\nX-Sum: 42\r\n\r\n", 200, "", "0\r\nX-Sum: 42\r\n\r\n"},
		"an underscore": {"", "0\r\nX_Forwarded_For: 6.6.6.6\r\nX-Sum: 42\r\n\r\n", 200, "", "0\r\nX-Sum: 42\r\n\r\n"},
		"a space":       {"", "0\r\nX Y: 1\r\n\r\n", 400, "", ""},
		"NUL":           {"", "0\r\nX: a\x00b\r\n\r\n", 400, "", ""},
		"no colon":      {"", "0\r\nX\r\n\r\n", 400, "", ""},
		"too many":      {"", "0\r\n" + strings.Repeat("X: 1\r\n", 100+1) + "\r\n", 431, "", ""},
		"too long":      {"", "0\r\nX: " + strings.Repeat("x", bufferSize) + "\r\n\r\n", 431, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, f := serveRaw(t, nil, okAnswer)
			answered(t, "the client", f.raw(head+tt.fields+"\r\n"+tt.body), tt.code)
			if tt.code != 200 {
				if s := o.body(); strings.HasSuffix(s, "\r\n\r\n") {
					t.Errorf("the origin took it for whole: %q", s)
				}
				return
			}
			endsIn(t, "the body at the origin", o.body(), tt.want)
			has(t, "the origin", o.head()+"\r\n", tt.announced)
			equal(t, "that trailers are announced", strings.Contains(o.head(), "Trailer:"), strings.HasPrefix(tt.announced, "Trailer:"))
		})
	}
}

// TestTrailersInPieces sends each byte alone.
func TestTrailersInPieces(t *testing.T) {
	o, f := serveRaw(t, nil, okAnswer)
	c := f.dial()
	for _, b := range []byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n") {
		c.Write([]byte{b})
	}
	c.response("POST")
	endsIn(t, "the body at the origin", o.body(), "\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n")
}

// TestTrailersStayWithTheirRequest sends two requests on one connection.
func TestTrailersStayWithTheirRequest(t *testing.T) {
	f := serve(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Method, r.Header.Get("X-Sum"), r.Trailer)
	}))
	c := f.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 42\r\n\r\n"+
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, want := range []string{"POSTmap[X-Sum:[42]]", "PUTmap[]", "GETmap[]"} {
		equal(t, "the answer", c.read("POST").body, want)
	}
}

func TestTrailersOfAResponse(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	for name, tt := range map[string]struct{ says, want string }{
		"none":          {head + "\r\n3\r\nabc\r\n0\r\n\r\n", "\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		"announced":     {head + "Trailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n", "\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n"},
		"unannounced":   {head + "\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n", "\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n\r\n"},
		"several":       {head + "\r\n0\r\nX-A: 1\r\nX-B: 2\r\nX-A: 3\r\n\r\n", "\r\n0\r\nX-A: 1\r\nX-B: 2\r\nX-A: 3\r\n\r\n"},
		"also in head":  {head + "X-Sum: head\r\n\r\n0\r\nX-Sum: 42\r\n\r\n", "0\r\nX-Sum: 42\r\n\r\n"},
		"cookies":       {head + "\r\n0\r\nSet-Cookie: a=b\r\nContent-Type: x\r\nX-Sum: 42\r\n\r\n", "0\r\nX-Sum: 42\r\n\r\n"},
		"a command":     {head + "\r\n0\r\nRopeline-Command: revoke\r\nCf-Waiting-Room-Command: revoke\r\n\r\n", "0\r\n\r\n"},
		"lines with LF": {head + "\r\n0\r\nX-Sum: 42\n\n", "0\r\nX-Sum: 42\r\n\r\n"},
		"cut":           {head + "\r\n3\r\nabc\r\n0\r\nX-Sum: 42\r\n", "\r\n3\r\nabc\r\n"},
		"no name":       {head + "\r\n3\r\nabc\r\n0\r\n: 42\r\n\r\n", "\r\n3\r\nabc\r\n"},
		"too long":      {head + "\r\n3\r\nabc\r\n0\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", "\r\n3\r\nabc\r\n"},
		"endless":       {head + "\r\n3\r\nabc\r\n0\r\n" + strings.Repeat("X: 1\r\n", 16<<10), "\r\n3\r\nabc\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, f := serveRaw(t, nil, tt.says)
			endsIn(t, "the answer", f.raw(lastGet), tt.want)
		})
	}
}

func TestWhoWantsTrailersIsPassedOn(t *testing.T) {
	for te, want := range map[string]bool{"trailers": true, "gzip;q=0.5, Trailers": true, "gzip": false, "": false} {
		o, f := serveRaw(t, nil, okAnswer)
		f.raw("GET / HTTP/1.1\r\nHost: a\r\nTE: " + te + "\r\nConnection: TE, close\r\n\r\n")
		equal(t, "that the origin is told of "+te, strings.Contains(o.head(), "TE: trailers\r\nConnection: TE\r\n"), want)
		lacks(t, "the origin", o.head(), "gzip")
	}
}

// Bytes of a body do not wait for a trailer.
func TestNoByteWaitsForATrailer(t *testing.T) {
	end := make(chan struct{})
	url := tcpOrigin(t, func(c net.Conn, br *bufio.Reader) {
		http.ReadRequest(br)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n")
		<-end
		io.WriteString(c, "\r\n")
	})
	defer close(end)
	c := serveTo(t, nil, url).dial()
	io.WriteString(c, plainGet)
	c.SetReadDeadline(time.Now().Add(2 * time.Second))
	expect(t, c.response("GET").Body, "hello")
}

// serveRaw starts a front before a rawOrigin.
func serveRaw(t *testing.T, rooms Rooms, says string, change ...func(*Config)) (*rawOrigin, *front) {
	t.Helper()
	o := newRawOrigin(t, says)
	return o, serveTo(t, rooms, o.url, change...)
}
