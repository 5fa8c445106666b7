package expr

import (
	"net/netip"
	"testing"
)

// shopper is a request with some of everything.
func shopper() *Request {
	return &Request{
		Method:  "GET",
		Version: "HTTP/1.1",
		Host:    "shop.example",
		Path:    "/shoes/Red.HTML",
		Query:   "size=42&size=43&colour=d%61rk+red&flag&&x=",
		Secure:  true,
		Source:  netip.MustParseAddr("192.0.2.7"),
		Country: "DE",
		Headers: Pairs{
			{"User-Agent", "Mozilla/5.0 (X11)"},
			{"Referer", "https://news.example/a?b=c"},
			{"X-App", "3"},
			{"x-app", "4"},
			{"X-Empty", ""},
			{"Cookie", "session=a=b; theme=dark;broken; Theme = light"},
			{"Cookie", "theme=blue"},
			{"X-Forwarded-For", "198.51.100.1"},
			{"X-Forwarded-For", "10.0.0.1, 10.0.0.2"},
			{"X-Encoded", "%2525%u2601%zz+%"},
		},
	}
}

// listOf returns a list that of makes of items.
func listOf(t testing.TB, of func([]string) (*List, error), items ...string) *List {
	t.Helper()
	return must(of(items))
}

func testLists(t testing.TB) Lists {
	t.Helper()
	return Lists{
		"office":    listOf(t, AddressList, "192.0.2.0/24", "2001:db8::1", "10.0.0.5..10.0.0.9"),
		"own_hosts": listOf(t, StringList, "shop.example", "www.shop.example"),
	}
}

var matching = []struct {
	source string
	want   bool
}{
	// Fields.
	{`http.host eq "shop.example"`, true},
	{`http.request.method eq "GET"`, true},
	{`http.request.version eq "HTTP/1.1"`, true},
	{`http.request.uri.path eq "/shoes/Red.HTML"`, true},
	{`http.request.uri.path.extension eq "html"`, true},
	{`http.request.uri.query contains "size=42&size=43"`, true},
	{`http.request.uri eq "/shoes/Red.HTML?size=42&size=43&colour=d%61rk+red&flag&&x="`, true},
	{`http.request.full_uri wildcard "https://shop.example/shoes/*"`, true},
	{`http.user_agent contains "Mozilla"`, true},
	{`http.referer eq "https://news.example/a?b=c"`, true},
	{`http.cookie eq "session=a=b; theme=dark;broken; Theme = light; theme=blue"`, true},
	{`http.x_forwarded_for eq "198.51.100.1, 10.0.0.1, 10.0.0.2"`, true},
	{`ip.src eq 192.0.2.7`, true},
	{`ip.src.country eq "DE"`, true},
	{`ip.geoip.country eq "DE"`, true},
	{`ssl`, true},

	// Operators on strings.
	{`http.host ne "shop.example"`, false},
	{`http.host lt "shop.examplf"`, true},
	{`http.host le "shop.example"`, true},
	{`http.host gt "shop.example"`, false},
	{`http.host ge "shop.example"`, true},
	{`http.host ge "shop.examplf"`, false},
	{`http.host == "shop.example"`, true},
	{`http.host != "shop.example"`, false},
	{`http.host < "t"`, true},
	{`http.host <= "shop"`, false},
	{`http.host > "shop"`, true},
	{`http.host >= "t"`, false},
	{`http.host contains "op.ex"`, true},
	{`http.host contains "OP.EX"`, false},
	{`http.host contains ""`, true},
	{`http.host matches "^shop\.(example|test)$"`, true},
	{`http.host ~ r"^shop\.test$"`, false},
	{`http.user_agent matches "(?i)mozilla/[0-9]+"`, true},
	{`http.host in {"a" "shop.example" "b"}`, true},
	{`http.host in {"a"}`, false},
	{`http.host in $own_hosts`, true},
	{`http.referer in $own_hosts`, false},

	// Wildcards.
	{`http.request.uri.path wildcard "/SHOES/*.html"`, true},
	{`http.request.uri.path strict wildcard "/SHOES/*.html"`, false},
	{`http.request.uri.path strict wildcard "/shoes/*.HTML"`, true},
	{`http.request.uri.path strict wildcard "/shoes/Red.HTML"`, true},
	{`http.request.uri.path strict wildcard "/shoes/Red.HTM"`, false},
	{`http.request.uri.path strict wildcard "*"`, true},
	{`http.request.uri.path strict wildcard "*.HTML*"`, true},
	{`http.request.uri.path strict wildcard "*s*s*"`, true},
	{`http.request.uri.path strict wildcard "*s*s*s*"`, false},
	{`http.request.uri.path strict wildcard "/shoes/Red.HTML*L"`, false},
	{`http.request.uri.path strict wildcard r"/shoes/\*"`, false},

	// Addresses.
	{`ip.src ne 192.0.2.7`, false},
	{`ip.src ne 192.0.2.8`, true},
	{`ip.src == ::ffff:192.0.2.7`, true},
	{`ip.src in {192.0.2.0/24}`, true},
	{`ip.src in {::ffff:192.0.2.0/120}`, true},
	{`ip.src in {192.0.2.1..192.0.2.6 192.0.2.8..192.0.2.9}`, false},
	{`ip.src in {192.0.2.1..192.0.2.6 192.0.2.7..192.0.2.9}`, true},
	{`ip.src in {10.0.0.0/8 2001:db8::/32 2001:db8::1..2001:db8::5}`, false},
	{`ip.src in {0.0.0.0/0}`, true},
	{`ip.src in {::/0}`, false},
	{`ip.src in $office`, true},
	{`not ip.src in $office`, false},

	// Numbers.
	{`len(http.host) eq 12`, true},
	{`len(http.host) ne 12`, false},
	{`len(http.host) lt 12`, false},
	{`len(http.host) le 12`, true},
	{`len(http.host) gt 11`, true},
	{`len(http.host) ge -1`, true},
	{`len(http.host) in {1..5 12}`, true},
	{`len(http.host) in {1..11 13..20}`, false},

	// Truth.
	{`ssl eq true`, true},
	{`ssl eq false`, false},
	{`ssl ne true`, false},
	{`ssl ne false`, true},
	{`true`, true},
	{`false`, false},
	{`starts_with(http.host, "x") eq false`, true},

	// Precedence: not, and, xor, or.
	{`true or false and false`, true},
	{`(true or false) and false`, false},
	{`not true or true`, true},
	{`not (true or true)`, false},
	{`not http.host eq "a"`, true},
	{`true or true xor true`, true},
	{`(true or true) xor true`, false},
	{`true xor true and false`, true},
	{`(true xor true) and false`, false},
	{`true xor true xor true`, true},
	{`true && false || !false ^^ false`, true},
	{`!!ssl`, true},
	{`not not not ssl`, false},

	// Strings.
	{`http.host eq "\x73hop\056example"`, true},
	{`http.host eq r#"shop.example"#`, true},
	{`http.referer contains "\"" or http.referer contains r"\"`, false},
	{`http.host contains r##"a"#b"##`, false},

	// Tables and arrays.
	{`http.request.headers["x-app"][0] eq "3"`, true},
	{`http.request.headers["X-App"][1] eq "4"`, true},
	{`http.request.headers["x-app"][2] eq "4"`, false},
	{`any(http.request.headers["x-app"][*] eq "4")`, true},
	{`all(http.request.headers["x-app"][*] eq "4")`, false},
	{`all(http.request.headers["x-app"][*] in {"3" "4"})`, true},
	{`any(http.request.headers.names[*] eq "x-empty")`, true},
	{`any(http.request.headers.names[*] eq "X-Empty")`, false},
	{`any(http.request.headers.names[*] in {"x-other" "x-empty"})`, true},
	{`any(http.request.headers.names[*] matches "^x-e")`, true},
	{`any(lower(http.request.headers.names[*])[*] eq "x-empty")`, true},
	{`any(upper(http.request.headers.names[*])[*] eq "X-EMPTY")`, true},
	{`any(concat(http.request.headers.names[*], "-", http.host)[*] eq "x-empty-shop.example")`, true},
	{`all(len(http.request.headers.names[*])[*] gt 3)`, true},
	{`http.request.headers.names[0] eq "user-agent"`, true},
	{`concat(http.request.headers.names[0], http.request.headers.names[0]) eq "user-agentuser-agent"`, true},
	{`any(http.request.headers.values[*] eq "")`, true},
	{`http.request.headers["x-empty"][0] eq ""`, true},
	{`http.request.cookies["session"][0] eq "a=b"`, true},
	{`http.request.cookies["theme"][0] eq "dark"`, true},
	{`http.request.cookies["theme"][1] eq "blue"`, true},
	{`http.request.cookies["Theme"][0] eq "light"`, true},
	{`len(http.request.cookies["theme"]) eq 2`, true},
	{`len(http.request.cookies["broken"]) ge 0`, false},
	{`http.request.uri.args["size"][0] eq "42"`, true},
	{`http.request.uri.args["size"][1] eq "43"`, true},
	{`http.request.uri.args["colour"][0] eq "d%61rk+red"`, true},
	{`http.request.uri.args["flag"][0] eq ""`, true},
	{`http.request.uri.args["x"][0] eq ""`, true},
	{`len(http.request.uri.args.names) eq 5`, true},
	{`any(http.request.uri.args.names[*] eq "flag")`, true},
	{`any(http.request.uri.args.values[*] eq "43")`, true},
	{`all(len(http.request.uri.args["size"][*])[*] in {2 3})`, true},
	{`all(not len(http.request.uri.args["size"][*])[*] in {2 3})`, false},
	{`len(http.request.uri.args["size"]) ge 0`, true},
	{`not len(http.request.uri.args["order"]) ge 0`, true},
	{`any(starts_with(http.request.headers["x-app"][*], "4"))`, true},
	{`any(http.request.headers["x-app"][*] eq "4" and ssl)`, true},
	{`any(http.request.headers["x-app"][*] eq "4" and http.request.headers["X-APP"][*] eq "3")`, false},
	{`any(concat("v", http.request.headers["x-app"][*])[*] eq "v4")`, true},
	{`any(lower(concat("V", http.request.headers["x-app"][*])[*])[*] eq "v4")`, true},

	// Functions.
	{`lower(http.request.uri.path) eq "/shoes/red.html"`, true},
	{`upper(http.host) eq "SHOP.EXAMPLE"`, true},
	{`lower(upper(http.host)) eq "shop.example"`, true},
	{`url_decode(http.request.uri.args["colour"][0]) eq "dark red"`, true},
	{`url_decode(http.request.headers["x-encoded"][0]) eq "%25%u2601%zz %"`, true},
	{`url_decode(http.request.headers["x-encoded"][0], "r") eq "%%u2601%zz %"`, true},
	{`url_decode(http.request.headers["x-encoded"][0], "u") eq "%25☁%zz %"`, true},
	{`url_decode(http.request.headers["x-encoded"][0], "ru") eq "%☁%zz %"`, true},
	{`concat(http.host, http.request.uri.path) eq "shop.example/shoes/Red.HTML"`, true},
	{`concat(upper(http.host), ":", lower(http.request.method), ":") eq "SHOP.EXAMPLE:get:"`, true},
	{`concat(concat("<", http.host), concat(lower(http.request.method), ">")) eq "<shop.exampleget>"`, true},
	{`concat("[", http.request.headers["none"][0], "]") eq "[]"`, true},
	{`starts_with(http.request.uri.path, "/shoes/")`, true},
	{`starts_with(http.request.uri.path, "/hats/")`, false},
	{`ends_with(http.request.uri.path, ".HTML")`, true},
	{`ends_with(lower(http.request.uri.path), ".html")`, true},
	{`starts_with(http.referer, concat("https://", "news.example"))`, true},

	// What is missing makes comparisons false, ne as well; not turns them around.
	{`http.request.headers["none"][0] eq ""`, false},
	{`http.request.headers["none"][0] ne "x"`, false},
	{`not http.request.headers["none"][0] eq "x"`, true},
	{`http.request.headers["none"][0] lt "x"`, false},
	{`http.request.headers["none"][0] contains ""`, false},
	{`http.request.headers["none"][0] matches ""`, false},
	{`http.request.headers["none"][0] wildcard "*"`, false},
	{`http.request.headers["none"][0] in {""}`, false},
	{`lower(http.request.headers["none"][0]) ne "x"`, false},
	{`len(http.request.headers["none"][0]) ge 0`, false},
	{`len(http.request.headers["none"]) ge 0`, false},
	{`starts_with(http.request.headers["none"][0], "")`, false},
	{`starts_with(http.host, http.request.headers["none"][0])`, false},
	{`any(http.request.headers["none"][*] ne "x")`, false},
	{`all(http.request.headers["none"][*] ne "x")`, false},
}

func TestMatch(t *testing.T) {
	lists := testLists(t)
	r := shopper()
	for _, tt := range matching {
		e, err := Compile(tt.source, lists)
		if err != nil {
			t.Errorf("%s\n%v", tt.source, err)
			continue
		}
		if got := e.Match(r); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.source, got, tt.want)
		}
	}
}

func TestMatchOfARequestAboutWhichNothingIsKnown(t *testing.T) {
	for source, want := range map[string]bool{
		`http.host eq ""`:                       true,
		`http.referer eq ""`:                    true,
		`http.cookie eq ""`:                     true,
		`http.request.uri eq ""`:                true,
		`http.request.full_uri eq "http://"`:    true,
		`http.request.uri.path.extension eq ""`: true,
		`ip.src eq 0.0.0.0`:                     false,
		`ip.src ne 0.0.0.0`:                     false,
		`ip.src in {0.0.0.0/0 ::/0}`:            false,
		`not ip.src in {0.0.0.0/0 ::/0}`:        true,
		`ip.src.country eq ""`:                  false,
		`ip.src.country ne "DE"`:                false,
		`ssl`:                                   false,
		`len(http.request.headers.names) ge 0`:  false,
		`http.request.headers.names[0] eq ""`:   false,
	} {
		if got := mustCompile(t, source, nil).Match(&Request{}); got != want {
			t.Errorf("%s: got %v, want %v", source, got, want)
		}
	}
}

func TestAddressesInOtherClothes(t *testing.T) {
	e := mustCompile(t, `ip.src in {10.0.0.0/8 fe80::/10}`, nil)
	for addr, want := range map[string]bool{
		"10.1.2.3":          true,
		"::ffff:10.1.2.3":   true,
		"::ffff:11.1.2.3":   false,
		"fe80::1":           true,
		"fe80::1%eth0":      true,
		"::10.1.2.3":        false,
		"2001:db8::10.0.0.": false,
	} {
		a, _ := netip.ParseAddr(addr)
		if got := e.Match(&Request{Source: a}); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
}

func TestExtension(t *testing.T) {
	for path, want := range map[string]string{
		"/foo":         "",
		"/foo.mp3":     "mp3",
		"/.mp3":        "",
		"/.foo.mp3":    "mp3",
		"/foo.tar.bz2": "bz2",
		"/foo.":        "",
		"/foo.MP3":     "mp3",
		"/a.b/foo":     "",
		"":             "",
		"foo.css":      "css",
	} {
		e := mustCompile(t, "http.request.uri.path.extension eq "+quote(want), nil)
		if !e.Match(&Request{Path: path}) {
			t.Errorf("extension of %q is not %q", path, want)
		}
	}
}

func mustCompile(t testing.TB, source string, lists Lists) *Expression {
	t.Helper()
	e, err := Compile(source, lists)
	if err != nil {
		t.Fatalf("%s\n%v", source, err)
	}
	return e
}

// must is for what a test sets up, and cannot do without.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
