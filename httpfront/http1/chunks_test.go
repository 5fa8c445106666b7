package http1

import (
	"bufio"
	"io"
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
