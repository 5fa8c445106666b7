package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"testing"
	"testing/iotest"
)

func TestChunksHaveOneReading(t *testing.T) {
	for in, want := range map[string]string{ // the data, "|" and what is left; "!" for an error
		"0\r\n\r\nrest":                                "|rest",
		"3\r\nabc\r\n0\r\n\r\nrest":                    "abc|rest",
		"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n": "abcde|",
		"A\r\n0123456789\r\n0\r\n\r\n\r\n":             "0123456789|\r\n",
		"a\r\n0123456789\r\n000\r\n\r\n":               "0123456789|",
		"":                                             "!",
		"3":                                            "!",
		"3\r\nab":                                      "!",
		"3\r\nabc":                                     "!",
		"3\r\nabc\r\n":                                 "!", // the connection ended between two chunks
		"3\r\nabc\r\n0\r\n":                            "!",
		"3\r\nabc\r\n0\r\nA:":                          "!",
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "in pieces": iotest.OneByteReader, "with its end": iotest.DataErrReader} {
			br := bufio.NewReader(wrap(strings.NewReader(in)))
			c := &chunkReader{br: br}
			data, err := io.ReadAll(c)
			rest, _ := io.ReadAll(br)
			got := string(data) + "|" + string(rest)
			if err != nil {
				got = "!"
			}
			if got != want {
				t.Errorf("%q %s: got %q, %v, want %q", in, name, got, err, want)
			}
			again, errAgain := c.Read(make([]byte, 1))
			if again != 0 || err == nil && errAgain != io.EOF || err != nil && errAgain != err {
				t.Errorf("%q %s: after the end: got %d, %v", in, name, again, errAgain)
			}
		}
	}
}

// FuzzChunks reads any body. What is taken is what another decoder reads, and
// what is sent on reads the same once more.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "3;a=\"b\"\r\nabc\r\n0\r\nX: y\r\n\r\nrest", "3\nabc\n0\n\n", "1\r\na\r\n00\r\nA: b\r\nA: c\r\n\r\n",
		"ffffffffffffffff\r\n", "5 \r\nhello\r\n0\r\n\r\n", "0\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		br := bufio.NewReader(bytes.NewReader(in))
		var c, again Body
		c.Begin(br, LengthChunked, false)
		data, err := io.ReadAll(&c)
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(br)
		if !bytes.HasSuffix(in, rest) {
			t.Fatalf("%q is left of %q", rest, in)
		}
		other, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		if err != nil || !bytes.Equal(other, data) {
			t.Fatalf("another decoder reads %q, %v, and not %q", other, err, data)
		}
		var sent []byte
		if len(data) > 0 {
			sent = fmt.Appendf(sent, "%x\r\n%s\r\n", len(data), data)
		}
		sent = append(sent, "0\r\n"...)
		for _, f := range c.Trailer() {
			sent = AppendField(sent, f.Name, f.Value)
		}
		sent = append(sent, "\r\n"...)
		again.Begin(bufio.NewReaderSize(bytes.NewReader(sent), 32<<10), LengthChunked, false)
		if back, err := io.ReadAll(&again); err != nil || !bytes.Equal(back, data) || len(again.Trailer()) != len(c.Trailer()) {
			t.Fatalf("%q is sent on as %q, which reads %q, %v", in, sent, back, err)
		}
	})
}
