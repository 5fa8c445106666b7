package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// relayable are answers that are relayed, and what becomes of their heads.
var relayable = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Tue, 24 Nov 2026 09:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n",
	"HTTP/1.1 404 Not Found\r\ncontent-length:3\r\nx-other: 1\r\n\r\nno\n",
	"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\nSet-Cookie: a=b; Path=/\r\nSet-Cookie: c=d\r\n\r\nok",
	"HTTP/1.1 500 It broke\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nTE: x\r\nRopeline-State: admitted\r\nContent-Length: 0\r\nX: y\r\n\r\n",
	"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n\x00",
	"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\ncache-control: No-Store\r\nExpires: 0\r\nSurrogate-Control: x\r\nCDN-Cache-Control: x\r\nX-Accel-Expires: 9\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nCache-Control: public\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\nproxy-authentication-info: x\r\n\r\n",
}

// unrelayable are answers that are left to the library: for what they are, or since they are not
// in order.
var unrelayable = []string{
	"", "\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
	"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 20x OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 600 x\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTrailer: X\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x-secret\r\nX-Secret: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0, 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "HTTP/1.1 200 OK\r\n Content-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX: a\x05b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 O\x05K\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nX y: x\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nRopeline-Command: revoke\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nCf-Waiting-Room-Command: revoke\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
}

// byLibrary returns what a client reads of what the library makes of an answer; "" if it does
// not take it.
func byLibrary(all, cookie []byte, limited, last bool) (answer string, closes bool) {
	br := bufio.NewReaderSize(bytes.NewReader(all), bufferSize)
	var h fasthttp.ResponseHeader
	h.SetNoDefaultContentType(true)
	if h.Read(br) != nil {
		return "", false
	}
	var x exchange
	length := x.cleanHead(&h)
	takeCommands(&h)
	if limited {
		h.AddBytesV("RateLimit", []byte("\"a\";r=1;t=2"))
	}
	admitted{cookie: cookie}.decorate(&h)
	body, err := io.ReadAll(br)
	if err != nil || length != len(body) {
		return "", false
	}
	fields := http.Header{}
	for name, value := range h.All() {
		fields.Add(string(name), string(value))
	}
	return said(h.StatusCode(), fields, last, body), !x.reusable
}

// said puts an answer in words.
func said(code int, fields http.Header, closes bool, body []byte) string {
	for name, values := range fields {
		if len(values) > 1 && name != "Set-Cookie" {
			fields[name] = nil // of some fields the library keeps the last only
		}
	}
	return fmt.Sprintf("%d %v closed %v %q", code, fields, closes, body)
}

// read returns what a client reads of an answer.
func read(t *testing.T, answer []byte) string {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	if err != nil {
		t.Fatalf("the answer cannot be read: %v\n%q", err, answer)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the body cannot be read: %v\n%q", err, answer)
	}
	return said(resp.StatusCode, resp.Header, resp.Close, body)
}

func relays(t *testing.T, all []byte) bool {
	t.Helper()
	for i := range 8 {
		last, cookie, added := i&1 > 0, []byte(nil), []byte(nil)
		if i&2 > 0 {
			cookie = []byte("ropeline=a-pass; Path=/")
		}
		if i&4 > 0 {
			added = []byte("RateLimit: \"a\";r=1;t=2\r\n")
		}
		before := bytes.Clone(all)
		out, got := appendRelayed(make([]byte, 0, bufferSize), all, cookie, added, last)
		if !bytes.Equal(all, before) {
			t.Fatalf("%q was changed to %q", before, all)
		}
		if !got.whole {
			if len(out) > 0 {
				t.Errorf("%q is not relayed, and was begun: %q", all, out)
			}
			return false
		}
		want, closes := byLibrary(all, cookie, len(added) > 0, last)
		if want == "" {
			t.Fatalf("%q is relayed as %q; the library does not take it", all, out)
		}
		if a, b := read(t, out), want; a != b {
			t.Errorf("%q is relayed as\n%s\nand not as\n%s", all, a, b)
		}
		if closes != got.close {
			t.Errorf("%q: closed afterwards %v, want %v", all, got.close, closes)
		}
		if n := len(out) - bytes.Index(out, []byte("\r\n\r\n")) - 4; n != got.body {
			t.Errorf("%q: the body is said to have %d bytes, and has %d", all, got.body, n)
		}
	}
	return true
}

func TestRelayedAnswersAreThoseOfTheLibrary(t *testing.T) {
	for _, all := range relayable {
		if !relays(t, []byte(all)) {
			t.Errorf("%q is not relayed", all)
		}
	}
	for _, all := range unrelayable {
		if relays(t, []byte(all)) {
			t.Errorf("%q is relayed", all)
		}
	}
	long := "HTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(bufferSize-60) + "\r\n\r\n" + strings.Repeat("x", bufferSize-60)
	if relays(t, []byte(long)) {
		t.Error("an answer that leaves no room for our own field is relayed")
	}
}

func FuzzRelay(f *testing.F) {
	for _, all := range append(relayable, unrelayable...) {
		f.Add([]byte(all))
	}
	f.Fuzz(func(t *testing.T, all []byte) { relays(t, all) })
}

// TestClientsDoNotSeeWhetherAnAnswerIsRelayed: the same answers, one after the other on the
// same connections, with and without one more byte that keeps them from being relayed.
func TestClientsDoNotSeeWhetherAnAnswerIsRelayed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go sayAll(c)
		}
	}()
	f := serveTo(t, fakeRooms{room: newRoom(always)}, "http://"+ln.Addr().String())
	get := func(c net.Conn, br *bufio.Reader, i int, slowly string) (string, bool) {
		fmt.Fprintf(c, "GET /%d%s HTTP/1.1\r\nHost: a\r\n\r\n", i, slowly)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %v %q", resp.StatusCode, resp.Header, body), resp.Close
	}
	at, slow := f.dial(), f.dial()
	in, slowIn := bufio.NewReader(at), bufio.NewReader(slow)
	get(at, in, 0, "")
	get(slow, slowIn, 0, "/slowly") // each has a pass now, or would get one
	for range 3 {
		for i := range relayable {
			a, closed := get(at, in, i, "")
			b, alsoClosed := get(slow, slowIn, i, "/slowly")
			if a != b || closed || alsoClosed {
				t.Errorf("%q: got\n%s, closed %v, and slowly\n%s, closed %v", relayable[i], a, closed, b, alsoClosed)
			}
		}
	}
}

// sayAll answers with the relayable answer that is asked for, all at once or in two pieces.
func sayAll(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		var i int
		fmt.Sscanf(req.URL.Path, "/%d", &i)
		all := relayable[i]
		if strings.HasSuffix(req.URL.Path, "/slowly") {
			head := strings.Index(all, "\r\n\r\n")
			fmt.Fprint(c, all[:head])
			all = all[head:]
		}
		fmt.Fprint(c, all)
		if strings.Contains(strings.ToLower(relayable[i]), "connection: close") {
			return
		}
	}
}

func TestRelayingDoesNotKeepWhatItWasGiven(t *testing.T) {
	all := []byte(relayable[1])
	out, _ := appendRelayed(make([]byte, 0, bufferSize), all, nil, nil, false)
	want := bytes.Clone(out)
	clear(all)
	if !reflect.DeepEqual(out, want) {
		t.Error("what is sent shares memory with what was read")
	}
}
