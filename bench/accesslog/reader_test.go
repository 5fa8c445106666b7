package accesslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const good = `1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 5 "http://x/" "Browser 1.0"`

// story reads everything and tells in short what came.
func story(t testing.TB, r io.Reader) string {
	t.Helper()
	lines, err := NewReader(r)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for {
		e, err := lines.Next()
		m, malformed := errors.AsType[*Malformed](err)
		switch {
		case errors.Is(err, io.EOF):
			return b.String() + "end"
		case malformed:
			fmt.Fprintf(&b, "bad %d:%d, ", m.Line, m.Column)
		case err != nil:
			return b.String() + err.Error()
		default:
			fmt.Fprintf(&b, "%s %s, ", e.Address, e.Path)
		}
	}
}

func TestReader(t *testing.T) {
	broken := errors.New("disk on fire")
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zw, good+"\n"+good)
	_ = zw.Close()
	for _, tc := range []struct {
		name   string
		source io.Reader
		want   string
	}{
		{"nothing", strings.NewReader(""), "end"},
		{"no last line end", strings.NewReader(good + "\r\n\n" + good), "1.2.3.4 /a?b, 1.2.3.4 /a?b, end"},
		{"gzip", &zipped, "1.2.3.4 /a?b, 1.2.3.4 /a?b, end"},
		{"no gzip", strings.NewReader("\x1f\x8bnot"), "gzip: unexpected EOF"},
		{"bad lines", strings.NewReader("x\n" + good + "\nh - - [now] \"GET / HTTP/1.1\" 200 5\n"), "bad 1:1, 1.2.3.4 /a?b, bad 3:8, end"},
		{"long line", strings.NewReader(strings.Repeat("x", 3*MaxLine) + "\n" + good), "bad 1:65536, 1.2.3.4 /a?b, end"},
		{"source fails", io.MultiReader(strings.NewReader(good+"\n"), iotest.ErrReader(broken)), "1.2.3.4 /a?b, line 2: disk on fire"},
	} {
		if got := story(t, tc.source); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// FuzzParse holds that whatever a line says, what would be sent on is a proper
// request, and that an error points into the line.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add(`h - a [b] c [17/May/2015:12:05:03 +0200] "GET /\"\xc3\\ \t#x HTTP/1.1" 200 - "\"" "\x7f"`)
	f.Add(`h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200`)
	f.Fuzz(func(t *testing.T, line string) {
		e, err := Parse(line)
		if err != nil {
			m, ok := errors.AsType[*Malformed](err)
			if !ok || m.Column < 1 || m.Column > len(line)+1 || m.Line != 0 {
				t.Fatalf("got %#v for a line of %d bytes", err, len(line))
			}
			return
		}
		if e.Address == "" || !strings.HasPrefix(e.Path, "/") || CleanPath(e.Path) != e.Path || strings.ContainsFunc(e.Agent, isControl) {
			t.Fatalf("unsafe entry %+v", e)
		}
	})
}
