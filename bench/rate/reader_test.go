package rate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what a reader makes of bytes.
type answer struct {
	status int
	close  bool
	length int // bytes that belong to it
	done   bool
	err    error
}

// readAnswer feeds p in pieces of some bytes; 0: in one.
func readAnswer(p []byte, piece int) answer {
	var r reader
	r.begin()
	a := answer{}
	if piece == 0 {
		piece = max(len(p), 1)
	}
	for len(p) > 0 && !a.done && a.err == nil {
		part := p[:min(piece, len(p))]
		var n int
		n, a.done, a.err = r.feed(part)
		a.length += n
		p = p[n:]
		if n < len(part) && !a.done && a.err == nil {
			a.err = errors.New("it took a part, and wants no more")
		}
	}
	a.status, a.close = r.status, r.close
	return a
}

const rest = "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx" // the next answer

func TestReader(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       answer
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!", answer{status: 200, done: true}},
		{"no body", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", answer{status: 200, done: true}},
		{"no reason", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", answer{status: 200, done: true}},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", answer{status: 204, done: true}},
		{"304 says a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\n", answer{status: 304, done: true}},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;why=not\r\n0123456789\r\n0\r\n\r\n", answer{status: 200, done: true}},
		{"trailers", "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING:Chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", answer{status: 200, done: true}},
		{"close", "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\nx", answer{status: 200, done: true, close: true}},
	} {
		for _, piece := range []int{0, 1, 2, 3, 7} {
			tc.want.length = len(tc.text)
			if got := readAnswer([]byte(tc.text+rest), piece); got != tc.want {
				t.Errorf("%s, in pieces of %d: got %+v, want %+v", tc.name, piece, got, tc.want)
			}
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for text, want := range map[string]error{
		"HTTP/2 200 OK\r\n":           badStatus,
		"HTTP/1.1 20 OK\r\n":          badStatus,
		"HTTP/1.1 2000\r\n":           badStatus,
		"HTTP/1.1 099 x\r\n":          badStatus,
		"HTTP/1.1 200 OK\n":           badLine,
		"\r\n":                        badStatus,
		"SSH-2.0-x\r\n":               badStatus,
		ok + "no colon\r\n":           badHeader,
		ok + ": no name\r\n":          badHeader,
		ok + " folded: x\r\n":         badHeader,
		ok + "Content-Length : 1\r\n": badHeader,
		ok + "A: b\n":                 badLine,
		ok + "Content-Length: -1\r\n": badLength,
		ok + "Content-Length: \r\n":   badLength,
		ok + "Content-Length: 1\r\nContent-Length: 1\r\n":                   badLength,
		ok + "Content-Length: 9999999999999999999\r\n":                      badLength,
		ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n":      badLength,
		ok + "Transfer-Encoding: gzip, chunked\r\n":                         badEncoding,
		ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n": badEncoding,
		"HTTP/1.0 200 OK\r\n": badStatus,
		ok + "\r\n":           badLength,
		ok + "Transfer-Encoding: chunked\r\n\r\n\r\n":                 badChunk,
		ok + "Transfer-Encoding: chunked\r\n\r\n;x\r\n":               badChunk,
		ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n":          badChunk,
		ok + "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n": badChunk,
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                    badInterim,
		ok + strings.Repeat("A: b\r\n", mostLines/6):                  badLines,
		ok + "A: " + strings.Repeat("b", mostLines):                   badLines,
	} {
		for _, piece := range []int{0, 1, 5} {
			if got := readAnswer([]byte(text), piece); got.err != want {
				t.Errorf("%.60q in pieces of %d: got %v, want %v", text, piece, got.err, want)
			}
		}
	}
}

// FuzzReader holds that pieces make no difference, and that what both take for an answer is the same for
// net/http.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello!",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.0 302 Found\r\nConnection: keep-alive\r\n\r\nrest",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		"HTTP/1.1 200 OK\nA: b\n\n",
	} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text+rest), 3)
	}
	f.Fuzz(func(t *testing.T, p []byte, piece int) {
		whole := readAnswer(p, 0)
		if whole.length > len(p) {
			t.Fatalf("it took %d bytes of %d", whole.length, len(p))
		}
		cut := readAnswer(p, 1+max(piece, 0)%16)
		if whole.err != nil && cut.err != nil { // how far they came before may differ
			return
		}
		if cut != whole {
			t.Fatalf("in pieces %+v, in one %+v", cut, whole)
		}
		if !whole.done || whole.err != nil {
			return
		}
		status, length, err := byNetHTTP(p)
		if err == nil && (status != whole.status || length != whole.length) {
			t.Fatalf("net/http says %d with %d bytes, we say %+v", status, length, whole)
		}
	})
}

// byNetHTTP returns the status of the first answer in p that is not an interim one, and where it ends.
func byNetHTTP(p []byte) (status, length int, err error) {
	req := &http.Request{Method: "GET"}
	in := bytes.NewReader(p)
	buffered := bufio.NewReader(in)
	for {
		resp, err := http.ReadResponse(buffered, req)
		if err != nil {
			return 0, 0, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return 0, 0, err
		}
		if resp.StatusCode >= 200 {
			return resp.StatusCode, len(p) - in.Len() - buffered.Buffered(), nil
		}
	}
}
