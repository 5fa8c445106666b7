package expr

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

// FuzzCompile holds that nothing makes Compile or Match panic, that errors lie
// within the source, and that an expression's plainest form is the same one.
func FuzzCompile(f *testing.F) {
	for _, tt := range matching {
		f.Add(tt.source)
	}
	for block := range strings.SplitSeq(string(must.Do(os.ReadFile("testdata/mistakes.txt"))), "\n\n") {
		source, _, _ := strings.Cut(block, "\n")
		f.Add(source)
	}
	f.Add(strings.Repeat("(", 100))
	f.Add(strings.Repeat("!", 100) + "ssl")
	f.Add(strings.Repeat("lower(", 40) + "http.host")
	lists, requests := testLists(), []*Request{shopper(), {}}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := Compile(source, lists)
		if err != nil {
			checkPlace(t, source, err)
			return
		}
		plain := e.String()
		again, err := compile(plain, lists)
		if err != nil || again.String() != plain {
			t.Fatalf("%s became %s and then %s\n%v", source, plain, again, err)
		}
		for _, r := range requests {
			if e.Match(r) != again.Match(r) {
				t.Fatalf("%s and %s differ", source, plain)
			}
		}
	})
}

// checkPlace holds that an error of Compile can be shown.
func checkPlace(t *testing.T, source string, err error) {
	t.Helper()
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%q: %v has no place", source, err)
	}
	lines, shown := strings.Split(source, "\n"), strings.Split(wrong.Excerpt(), "\n")
	if wrong.Line < 1 || wrong.Line > len(lines) || wrong.Column < 1 || wrong.Column > len([]rune(lines[wrong.Line-1]))+1 ||
		len(shown) != 2 || !strings.HasSuffix(shown[1], "^") {
		t.Fatalf("%q: line %d, column %d, excerpt %q", source, wrong.Line, wrong.Column, shown)
	}
}

// FuzzMatch holds that no request makes an expression panic, and that operators
// agree with one another about it.
func FuzzMatch(f *testing.F) {
	f.Add("GET", "shop.example", "/a.b/c.html", "a=1&b=%20+", "x-app", "3", "session=1; theme=dark", []byte{192, 0, 2, 7}, "DE", true)
	f.Add("", "", "", "", "", "", "", []byte(nil), "", false)
	f.Add("POST", "SHOP", "//..", "&&=&", "cookie", ";;=;", "=; =;", []byte("\x20\x01\x0d\xb8............"), "XX", false)
	f.Add("G\xff", "é", "/%zz", "%u2601%", "X-APP", "\x00", "a", []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x00\x00\x01"), "", true)
	lists := testLists()
	var all, laws []*Expression
	for _, tt := range matching {
		all = append(all, mustCompile(f, tt.source, lists))
	}
	for _, source := range []string{ // each is true of all requests
		`http.host eq "shop" xor http.host ne "shop"`,
		`http.host lt "shop" xor http.host ge "shop"`,
		`http.host gt "shop" xor http.host le "shop"`,
		`http.host le "shop" xor http.host gt "shop"`,
		`not http.host eq "" or http.host in {""}`,
		`http.host wildcard "*" and http.host contains "" and http.host matches ""`,
		`(not http.host strict wildcard "*o*") xor http.host contains "o"`,
		`(not http.host wildcard "*o*") xor lower(http.host) contains "o"`,
		`(not http.host wildcard "o*") xor starts_with(lower(http.host), "o")`,
		`(not http.host wildcard "*o") xor ends_with(upper(http.host), "O")`,
		`(not http.host matches "^(?s:.*)o") xor http.host contains "o"`,
		`(not any(http.request.headers["cookie"][*] ne "x")) xor len(http.request.headers["cookie"]) gt 0 and not all(http.request.headers["cookie"][*] eq "x")`,
		`starts_with(http.request.full_uri, concat("http", "")) and ends_with(http.request.full_uri, http.request.uri.query)`,
		`starts_with(http.request.uri, http.request.uri.path)`,
		`ip.src in {0.0.0.0/0} xor ip.src in {::/0} xor not ip.src in {::/0 0.0.0.0/0}`,
		`not ip.src in $office or ip.src in {192.0.2.0/24 2001:db8::1 10.0.0.5..10.0.0.9}`,
		`len(http.host) lt 5 xor len(http.host) in {5..9223372036854775807}`,
		`ends_with(concat(url_decode(http.request.uri.query), "$", http.host), concat("$", http.host))`,
		`not ssl xor ssl eq true`,
	} {
		laws = append(laws, mustCompile(f, source, lists))
	}
	f.Fuzz(func(t *testing.T, method, host, path, query, name, value, cookie string, addr []byte, country string, secure bool) {
		source, _ := netip.AddrFromSlice(addr)
		r := &Request{
			Method: method, Version: value, Host: host, Path: path, Query: query,
			Secure: secure, Source: source, Country: country,
			Headers: Pairs{{name, value}, {"Cookie", cookie}, {name, cookie}, {"User-Agent", value}},
		}
		for _, e := range all {
			e.Match(r)
		}
		for _, law := range laws {
			if !law.Match(r) {
				t.Fatalf("%s is not true of %+v", law, r)
			}
		}
	})
}
