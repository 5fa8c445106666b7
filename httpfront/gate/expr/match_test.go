package expr

import (
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/bench/must"
)

// shopper is a request with some of everything.
func shopper() *Request {
	return &Request{
		Method: "GET", Version: "HTTP/1.1", Host: "shop.example", Path: "/shoes/Red.HTML",
		Query:  "size=42&size=43&colour=d%61rk+red&flag&&x=",
		Secure: true, Source: netip.MustParseAddr("192.0.2.7"), Country: "DE",
		Headers: Pairs{
			{"User-Agent", "Mozilla/5.0 (X11)"},
			{"Referer", "https://news.example/a?b=c"},
			{"X-App", "3"},
			{"x-app", "4"},
			{"X-Empty", ""},
			{"X-Encoded", "%2525%u2601%zz+%"},
			{"Cookie", "session=a=b; theme=dark;broken; Theme = light"},
			{"Cookie", "theme=blue"},
			{"X-Forwarded-For", "198.51.100.1"},
			{"X-Forwarded-For", "10.0.0.1, 10.0.0.2"},
		},
	}
}

// listOf returns a list that of makes of items.
func listOf(of func([]string) (*List, error), items ...string) *List { return must.Do(of(items)) }

func testLists() Lists {
	return Lists{
		"office":    listOf(AddressList, "192.0.2.0/24", "2001:db8::1", "10.0.0.5..10.0.0.9"),
		"own_hosts": listOf(StringList, "shop.example", "www.shop.example"),
	}
}

// matching is testdata/matches.txt: what is true of shopper, and what is not.
var matching = readMatches()

type match struct {
	source string
	want   bool
}

func readMatches() (all []match) {
	for line := range strings.Lines(string(must.Do(os.ReadFile("testdata/matches.txt")))) {
		truth, source, _ := strings.Cut(strings.TrimSpace(line), " ")
		if truth != "" && truth != "#" {
			all = append(all, match{strings.TrimSpace(source), must.Do(strconv.ParseBool(truth))})
		}
	}
	return all
}

func TestMatch(t *testing.T) {
	lists := testLists()
	r := shopper()
	for _, tt := range matching {
		e, err := Compile(tt.source, lists)
		if err != nil {
			t.Errorf("%s\n%v", tt.source, err)
			continue
		}
		equal(t, tt.source, e.Match(r), tt.want)
	}
}

func TestMatchOfARequestAboutWhichNothingIsKnown(t *testing.T) {
	for source, want := range map[string]bool{
		`http.host eq ""`: true, `http.referer eq ""`: true, `http.cookie eq ""`: true, `http.request.uri eq ""`: true,
		`http.request.full_uri eq "http://"`: true, `http.request.uri.path.extension eq ""`: true, `ssl`: false,
		`ip.src eq 0.0.0.0`: false, `ip.src ne 0.0.0.0`: false, `ip.src in {0.0.0.0/0 ::/0}`: false, `not ip.src in {0.0.0.0/0 ::/0}`: true,
		`ip.src.country eq ""`: false, `ip.src.country ne "DE"`: false,
		`len(http.request.headers.names) ge 0`: false, `http.request.headers.names[0] eq ""`: false,
	} {
		equal(t, source, mustCompile(t, source, nil).Match(&Request{}), want)
	}
}

func TestAddressesInOtherClothes(t *testing.T) {
	e := mustCompile(t, `ip.src in {10.0.0.0/8 fe80::/10}`, nil)
	for addr, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "::ffff:11.1.2.3": false, "::10.1.2.3": false,
		"fe80::1": true, "fe80::1%eth0": true, "2001:db8::10.0.0.": false,
	} {
		a, _ := netip.ParseAddr(addr)
		equal(t, addr, e.Match(&Request{Source: a}), want)
	}
}

func TestExtension(t *testing.T) {
	for path, want := range map[string]string{
		"/foo": "", "/foo.mp3": "mp3", "/.mp3": "", "/.foo.mp3": "mp3", "/foo.tar.bz2": "bz2",
		"/foo.": "", "/foo.MP3": "mp3", "/a.b/foo": "", "": "", "foo.css": "css",
	} {
		if !mustCompile(t, "http.request.uri.path.extension eq "+quote(want), nil).Match(&Request{Path: path}) {
			t.Errorf("extension of %q is not %q", path, want)
		}
	}
}

// mustCompile compiles sources of any length.
func mustCompile(t rapid.TB, source string, lists Lists) *Expression {
	t.Helper()
	e, err := compile(source, lists)
	if err != nil {
		t.Fatalf("%s\n%v", source, err)
	}
	return e
}

// compile is Compile for sources of any length.
func compile(source string, lists Lists) (*Expression, error) {
	return (&checker{source: source, lists: lists}).compile()
}

// TestTableIsComplete holds that the table of TestMatch, which other tests go
// through as well, has each field, function and operator.
func TestTableIsComplete(t *testing.T) {
	var all strings.Builder
	for _, tt := range matching {
		all.WriteString(" " + tt.source + " ")
	}
	for _, what := range vocabulary() {
		if !hasWord(all.String(), what) {
			t.Errorf("there is no %s in the table of TestMatch", what)
		}
	}
}

// vocabulary returns all that stands for something.
func vocabulary() []string {
	words := append(keys(fields), keys(functions)...)
	words = append(words, keys(operators)...)
	return append(words, "strict wildcard", "and", "&&", "or", "||", "xor", "^^", "not", "!", "true", "false")
}

var wordPart = regexp.MustCompile(`^[a-zA-Z0-9_.]`)

// hasWord reports whether text has word, and not only as a part of another.
func hasWord(text, word string) bool {
	if !wordPart.MatchString(word) {
		return strings.Contains(text, word)
	}
	const apart = `([^a-zA-Z0-9_.]|^|$)`
	return regexp.MustCompile(apart + regexp.QuoteMeta(word) + apart).MatchString(text)
}

func TestMatchFromManyGoroutines(t *testing.T) {
	lists, r := testLists(), shopper()
	var wg sync.WaitGroup
	for _, tt := range matching {
		e := mustCompile(t, tt.source, lists)
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if got := e.Match(r); got != tt.want {
						t.Errorf("%s: got %v, want %v", tt.source, got, tt.want)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// equal fails the test unless got is want.
func equal[T comparable](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}
