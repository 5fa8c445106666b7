package expr

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

func TestValue(t *testing.T) {
	r := &Request{
		Method: "GET", Host: "Shop.example", Path: "/a", Query: "q=1&q=2&empty=&bare", Source: netip.MustParseAddr("::ffff:192.0.2.7"), Country: "NO",
		Headers: Pairs{{"X-Key", "abc"}, {"x-key", "def"}, {"X-Empty", ""}, {"Cookie", "a=1; b=; a=2"}},
	}
	v4 := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x07"
	const missing = "there is none"
	for source, want := range map[string]string{
		"http.host": "Shop.example", "lower(http.host)": "shop.example", "http.request.uri.path": "/a", "ip.src": v4, "ip.src.country": "NO",
		`http.request.headers["x-key"]`: "abc", `http.request.headers["X-Key"][1]`: "def", `http.request.headers["x-key"][2]`: missing,
		`http.request.headers["x-empty"]`: "", `http.request.headers["x-none"]`: missing,
		`http.request.cookies["a"]`: "1", `http.request.cookies["b"]`: "", `http.request.cookies["c"]`: missing,
		`http.request.uri.args["q"]`: "1", `http.request.uri.args["empty"]`: "", `http.request.uri.args["bare"]`: "",
		`http.request.uri.args["none"]`: missing,
	} {
		got, ok := must.Do(CompileValue(source)).Append([]byte("before "), r)
		if string(got) != "before "+strings.TrimSuffix(want, missing) || ok != (want != missing) {
			t.Errorf("%s: got %q, %v, want %q", source, got, ok, want)
		}
	}
	v := must.Do(CompileValue("ip.src"))
	if _, ok := v.Append(nil, &Request{}); ok || !v.IsAddress() {
		t.Error("a request from nowhere has an address")
	}
}

func TestCompileValueRefuses(t *testing.T) {
	for source, want := range map[string]string{
		"": "want a field", "ip.scr": "did you mean ip.src", `http.host eq "a"`: "this is a condition", "not http.host": "this is a condition",
		"ssl": "want a string or an IP address", "len(http.host)": "want a string or an IP address",
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
	if must.Do(CompileCounting(`http.host eq "a"`, nil)).Answers() {
		t.Error("an expression about the request asks about the response")
	}
	if _, err := Compile(`http.response.code eq 200`, nil); err == nil || !strings.Contains(err.Error(), "only the counting expression") {
		t.Errorf("a rule of a room may ask about the response: %v", err)
	}
	if _, err := CompileCounting(`http.response.cod eq 200`, nil); err == nil || !strings.Contains(err.Error(), "did you mean http.response.code") {
		t.Errorf("got %v", err)
	}
}
