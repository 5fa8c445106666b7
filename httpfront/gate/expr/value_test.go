package expr

import (
	"net/netip"
	"strings"
	"testing"
)

func TestValue(t *testing.T) {
	r := &Request{
		Method: "GET", Host: "Shop.example", Path: "/a", Query: "q=1&q=2&empty=&bare", Source: netip.MustParseAddr("::ffff:192.0.2.7"), Country: "NO",
		Headers: Pairs{{"X-Key", "abc"}, {"x-key", "def"}, {"X-Empty", ""}, {"Cookie", "a=1; b=; a=2"}},
	}
	v4 := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x07"
	for _, c := range []struct {
		source, want string
		missing      bool
	}{
		{source: "http.host", want: "Shop.example"},
		{source: "lower(http.host)", want: "shop.example"},
		{source: "http.request.uri.path", want: "/a"},
		{source: "ip.src", want: v4},
		{source: "ip.src.country", want: "NO"},
		{source: `http.request.headers["x-key"]`, want: "abc"},
		{source: `http.request.headers["X-Key"][1]`, want: "def"},
		{source: `http.request.headers["x-key"][2]`, missing: true},
		{source: `http.request.headers["x-empty"]`},
		{source: `http.request.headers["x-none"]`, missing: true},
		{source: `http.request.cookies["a"]`, want: "1"},
		{source: `http.request.cookies["b"]`},
		{source: `http.request.cookies["c"]`, missing: true},
		{source: `http.request.uri.args["q"]`, want: "1"},
		{source: `http.request.uri.args["empty"]`},
		{source: `http.request.uri.args["bare"]`},
		{source: `http.request.uri.args["none"]`, missing: true},
	} {
		v, err := CompileValue(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		got, ok := v.Append([]byte("before "), r)
		if string(got) != "before "+c.want || ok == c.missing {
			t.Errorf("%s: got %q, %v, want %q", c.source, got, ok, c.want)
		}
	}
	v, _ := CompileValue("ip.src")
	if _, ok := v.Append(nil, &Request{}); ok || !v.IsAddress() {
		t.Error("a request from nowhere has an address")
	}
}

func TestCompileValueRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"":                             "want a field",
		"ip.scr":                       "did you mean ip.src",
		`http.host eq "a"`:             "this is a condition",
		"not http.host":                "this is a condition",
		"ssl":                          "want a string or an IP address",
		"len(http.host)":               "want a string or an IP address",
		"http.request.headers":         "holds values by name",
		"http.request.headers.names":   "is an array",
		`http.request.headers["a"][*]`: "belongs into any or all",
		"http.response.code":           "the response, which has not come yet",
		strings.Repeat("a", 5000):      "too long",
	} {
		_, err := CompileValue(source)
		if _, ok := err.(*Error); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q in it", source, err, want)
		}
	}
}

func TestCounting(t *testing.T) {
	e, err := CompileCounting(`http.request.method eq "POST" and http.response.code in {401 403} and http.response.headers["X-Failed"][0] eq "yes"`, nil)
	if err != nil || !e.Answers() {
		t.Fatalf("got %v, %v", e, err)
	}
	r := &Request{Method: "POST", Headers: Pairs{{"X-Failed", "no"}}}
	if e.Match(r) {
		t.Error("true before the response has come")
	}
	r.Response = Response{Code: 401, Headers: Pairs{{"x-failed", "yes"}}}
	if !e.Match(r) {
		t.Error("not true of the response")
	}
	r.Response.Code = 200
	if e.Match(r) {
		t.Error("true of another response")
	}
	if e, err := CompileCounting(`http.host eq "a"`, nil); err != nil || e.Answers() {
		t.Errorf("got %v, %v of an expression about the request", e, err)
	}
	if _, err := Compile(`http.response.code eq 200`, nil); err == nil || !strings.Contains(err.Error(), "only the counting expression") {
		t.Errorf("a rule of a room may ask about the response: %v", err)
	}
	if _, err := CompileCounting(`http.response.cod eq 200`, nil); err == nil || !strings.Contains(err.Error(), "did you mean http.response.code") {
		t.Errorf("got %v", err)
	}
}
