package bare

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: a\r\nA: \r \n\r\r\r\n\r\n"
	text := strings.Repeat(head, 3) + "GET / HT"
	for piece := 1; piece <= len(text); piece++ {
		heads, state := 0, 0
		for at := 0; at < len(text); at += piece {
			var n int
			n, state = scan([]byte(text[at:min(at+piece, len(text))]), state)
			heads += n
		}
		if heads != 3 {
			t.Errorf("in pieces of %d: got %d heads, want 3", piece, heads)
		}
	}
}

func TestAnswerIsHTTP(t *testing.T) {
	for _, body := range []int{0, 6, 4096} {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(Config{Body: body}.answer())), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || len(text) != body || resp.Header.Get("Content-Length") != fmt.Sprint(body) {
			t.Errorf("got %d bytes, %v, %v, want %d", len(text), resp.Header, err, body)
		}
	}
}
