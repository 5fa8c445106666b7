package httpfront

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// noError ends the test if there is one.
func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// has fails the test unless text has each of the parts.
func has(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%s: got %.2000q, want it to have %q", what, text, part)
		}
	}
}

// lacks fails the test if text has any of the parts.
func lacks(tb testing.TB, what, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			tb.Errorf("%s: got %.2000q, want it not to have %q", what, text, part)
		}
	}
}

// answered fails the test unless what came back of a connection begins with an answer of that code, and has each of the parts.
func answered(tb testing.TB, what, raw string, code int, parts ...string) {
	tb.Helper()
	if !strings.HasPrefix(raw, fmt.Sprintf("HTTP/1.1 %d ", code)) {
		tb.Errorf("%s: got %.2000q, want %d", what, raw, code)
	}
	has(tb, what, raw, parts...)
}

// text is the head and the body, with a line for each field.
func (r reply) text() string {
	var b strings.Builder
	b.WriteString("\r\n")
	r.Header.Write(&b)
	return b.String() + "\r\n" + r.body
}

// is fails the test unless a request was answered with that code, and the text of the answer has each of the parts.
func (r reply) is(tb testing.TB, code int, parts ...string) reply {
	tb.Helper()
	what := fmt.Sprint(r.Request.Method, " ", r.Request.URL)
	equal(tb, what, r.StatusCode, code)
	has(tb, what, r.text(), parts...)
	return r
}

// is fails the test unless want is what becomes of a request.
func (a Answer) is(tb testing.TB, want Outcome, of ...any) Answer {
	tb.Helper()
	if a.Outcome != want {
		tb.Errorf("%v: got %v with %d and the cookie %q, want %v", of, a.Outcome, a.Status, a.Cookie, want)
	}
	return a
}

// isRefused fails the test unless a request is answered with that code whatever a room says of it.
func (a Answer) isRefused(tb testing.TB, code int, of ...any) {
	tb.Helper()
	if a.is(tb, Malformed, of...); a.Status != code {
		tb.Errorf("%v: got %d, want %d", of, a.Status, code)
	}
}

// A request for the root, and one after which the connection closes.
const (
	plainGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	lastGet  = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

// ends fails the test unless nothing more comes before the end of a connection.
func (c *conn) ends() {
	c.tb.Helper()
	if b, err := c.br.ReadByte(); err != io.EOF {
		c.tb.Errorf("read %q, %v, want the end", b, err)
	}
}

// rest reads all that comes.
func rest(tb testing.TB, r io.Reader) string {
	tb.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Errorf("after %q: %v", b, err)
	}
	return string(b)
}

// endsIn fails the test unless a text ends so.
func endsIn(tb testing.TB, what, text, end string) {
	tb.Helper()
	if !strings.HasSuffix(text, end) {
		tb.Errorf("%s: got %.2000q, want it to end in %q", what, text, end)
	}
}

// gets asks for path so many times, and fails the test unless each answer has that code.
func (f *front) gets(times int, path string, code int) {
	f.tb.Helper()
	for range times {
		f.get(path).is(f.tb, code)
	}
}
