package accesslog

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	at := time.Date(2015, 5, 17, 10, 5, 3, 0, time.UTC)
	const when = "[17/May/2015:10:05:03 +0000]"
	for _, tc := range []struct {
		name, line string
		want       Entry
	}{
		{
			"combined", `1.2.3.4 - - ` + when + ` "GET /a?b HTTP/1.1" 200 5 "http://x/" "Browser 1.0"`,
			Entry{"1.2.3.4", at, "GET", "/a?b", "Browser 1.0"},
		},
		{"common", `::1 - - ` + when + ` "HEAD / HTTP/1.0" 304 -`, Entry{"::1", at, "HEAD", "/", ""}},
		{"more than combined", `h - - ` + when + ` "GET / HTTP/1.1" 200 5 "-" "B" "more" 12`, Entry{"h", at, "GET", "/", "B"}},
		{"something else after common", `h - - ` + when + ` "GET / HTTP/1.1" 200 5 0.012`, Entry{"h", at, "GET", "/", ""}},
		{"no browser", `h - - ` + when + ` "GET / HTTP/1.1" 200 5 "-" "-"`, Entry{"h", at, "GET", "/", ""}},
		{"user with blanks", `h - a [b] c ` + when + ` "GET / HTTP/1.1" 200 5`, Entry{"h", at, "GET", "/", ""}},
		{"other zone", `h - - [17/May/2015:12:05:03 +0200] "GET / HTTP/1.1" 200 5`, Entry{"h", at, "GET", "/", ""}},
		{"escaped quote", `h - - ` + when + ` "GET /\"x\" HTTP/1.1" 200 5 "\"" "a \"b\" \\"`, Entry{"h", at, "GET", `/"x"`, `a "b" \`}},
		{"escaped bytes", `h - - ` + when + ` "GET /\xc3\xa4\x zz\n HTTP/1.1" 200 5`, Entry{"h", at, "GET", `/%C3%A4\x%20zz%0A`, ""}},
		{"whole url", `h - - ` + when + ` "GET http://other/p?q HTTP/1.1" 200 5`, Entry{"h", at, "GET", "/p?q", ""}},
		{"url without path", `h - - ` + when + ` "GET http://other HTTP/1.1" 200 5`, Entry{"h", at, "GET", "/", ""}},
		{"no version", `h - - ` + when + ` "GET /old" 200 5`, Entry{"h", at, "GET", "/old", ""}},
		{"fragment", `h - - ` + when + ` "GET /a#b HTTP/1.1" 200 5`, Entry{"h", at, "GET", "/a", ""}},
		{"browser of controls", `h - - ` + when + ` "GET / HTTP/1.1" 200 5 "-" "a\nX: y"`, Entry{"h", at, "GET", "/", ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			if !got.At.Equal(tc.want.At) {
				t.Errorf("got time %v, want %v", got.At, tc.want.At)
			}
			got.At, tc.want.At = time.Time{}, time.Time{}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	const when = "[17/May/2015:10:05:03 +0000]"
	for line, want := range map[string]struct {
		column int
		reason string
	}{
		"":                                {1, "not a line"},
		"justone":                         {1, "not a line"},
		"h - - GET /":                     {1, "not a line"},
		`h - - x] "GET / HTTP/1.1" 200 5`: {1, "not a line"},
		strings.Repeat("h", 256) + ` - - ` + when + ` "GET / HTTP/1.1" 200 5`:        {1, "not a line"},
		`h - - [yesterday] "GET / HTTP/1.1" 200 5`:                                   {8, "yesterday"},
		`h - - ` + when + ` "GET / HTTP/1.1`:                                         {1, "not a line"},
		`h - - ` + when + ` "-" 408 -`:                                               {37, "not like GET"},
		`h - - ` + when + ` "\x16\x03\x01 x" 400 1`:                                  {37, "not replayed"},
		`h - - ` + when + ` "GET x HTTP/1.1" 200 5`:                                  {37, "not a path"},
		`h - - ` + when + ` "GET / HTTP/1.1" OK 5`:                                   {1, "not a line"},
		`h - - ` + when + ` "GET / HTTP/1.1" 200 x`:                                  {1, "not a line"},
		`h - - ` + when + ` "GET / HTTP/1.1"`:                                        {1, "not a line"},
		`h - - ` + when + ` "GET /` + strings.Repeat("a", 9000) + ` HTTP/1.1" 200 5`: {37, "too long"},
	} {
		_, err := Parse(line)
		m, ok := errors.AsType[*Malformed](err)
		if !ok || !strings.Contains(err.Error(), want.reason) || m.Column != want.column {
			t.Errorf("%.60q: got %+v, want an error about %q at column %d", line, m, want.reason, want.column)
		}
	}
}
