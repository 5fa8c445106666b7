package expr

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ropeline/ropeline/bench/must"
)

// statement is a source whose truth is known, and how tightly it binds: 3 for
// what stands alone, then and, xor, or.
type statement struct {
	source string
	holds  bool
	binds  int
}

// drawStatement draws trees of and, or, xor and not over the table of TestMatch, in
// either notation, with parentheses that are needed and some that are not.
func drawStatement(t *rapid.T, depth int) statement {
	choice := 0
	if depth > 0 {
		choice = rapid.IntRange(0, 4).Draw(t, "form")
	}
	switch choice {
	case 1:
		inner := parenthesized(t, drawStatement(t, depth-1), 3)
		not := rapid.SampledFrom([]string{"not ", "! ", "!", "not\t"}).Draw(t, "not")
		return statement{not + inner.source, !inner.holds, 3}
	case 2:
		return drawJoined(t, depth, 2, []string{"and", "&&"}, func(a, b bool) bool { return a && b })
	case 3:
		return drawJoined(t, depth, 1, []string{"xor", "^^"}, func(a, b bool) bool { return a != b })
	case 4:
		return drawJoined(t, depth, 0, []string{"or", "||"}, func(a, b bool) bool { return a || b })
	}
	one := rapid.SampledFrom(matching).Draw(t, "comparison")
	if slices.ContainsFunc([]string{" and ", " or ", "xor", "&&"}, func(joint string) bool { return strings.Contains(one.source, joint) }) {
		return statement{one.source, one.want, 0}
	}
	return statement{one.source, one.want, 3}
}

func drawJoined(t *rapid.T, depth, binds int, words []string, join func(a, b bool) bool) statement {
	all := parenthesized(t, drawStatement(t, depth-1), binds)
	for range rapid.IntRange(1, 3).Draw(t, "more") {
		next := parenthesized(t, drawStatement(t, depth-1), binds)
		word := rapid.SampledFrom(words).Draw(t, "word")
		all.source += " " + word + " " + next.source
		all.holds = join(all.holds, next.holds)
	}
	all.binds = binds
	return all
}

// parenthesized puts s into parentheses where it would fall apart among terms
// that bind as given, and sometimes where not.
func parenthesized(t *rapid.T, s statement, among int) statement {
	if s.binds < among || rapid.IntRange(0, 4).Draw(t, "parentheses") == 0 {
		return statement{"( " + s.source + ")", s.holds, 3}
	}
	return s
}

// TestTruthOfStatements: of a statement as it was written, and of its plainest form, which is the same expression.
func TestTruthOfStatements(t *testing.T) {
	lists, r := testLists(), shopper()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStatement(t, 3)
		e := mustCompile(t, s.source, lists)
		plain := e.String()
		again := mustCompile(t, plain, lists)
		if e.Match(r) != s.holds || again.Match(r) != s.holds || again.String() != plain {
			t.Fatalf("%s: got %v, want %v; it became %s and then %s", s.source, e.Match(r), s.holds, plain, again)
		}
	})
}

func TestString(t *testing.T) {
	lists := testLists()
	for source, want := range map[string]string{
		`  ssl&&!ssl||ssl ^^ ssl`: `ssl and not ssl or ssl xor ssl`, `((ssl))`: `ssl`, `not not ssl`: `ssl`, `!(!(!(ssl)))`: `not ssl`,
		`(ssl and ssl) or (ssl xor ssl)`: `ssl and ssl or ssl xor ssl`, `(ssl or ssl) and ssl`: `(ssl or ssl) and ssl`,
		`(ssl and (ssl and ssl)) and (ssl)`: `ssl and ssl and ssl and ssl`, `not (ssl and ssl)`: `not (ssl and ssl)`,
		`http.host=="a\x41\x01\xff\\\""`: `http.host eq "aA\x01\xff\\\""`, `http.host ~ "\.\""`: `http.host matches r#"\.\""#`,
		`http.host ~ "a\.b"`: `http.host matches r"a\.b"`, `http.host wildcard r"\*"`: `http.host wildcard "\\*"`,
		`http.host strict   wildcard "*"`:                                 `http.host strict wildcard "*"`,
		`ip.src in {::ffff:1.2.3.4   1.2.3.4 .. 1.2.3.5 2001:DB8:0::/32}`: `ip.src in {1.2.3.4 1.2.3.4..1.2.3.5 2001:db8::/32}`,
		`len ( http.host ) in { 007 .. 9 }`:                               `len(http.host) in {7..9}`, `http.host in $own_hosts`: `http.host in $own_hosts`,
		`http.request.headers["X-A"][ 0 ] ne "b"`:                `http.request.headers["x-a"][0] ne "b"`,
		`any((lower((http.request.headers["A"][*]))[*] != "b"))`: `any(lower(http.request.headers["a"][*])[*] ne "b")`, `ssl==true`: `ssl eq true`,
	} {
		equal(t, source, mustCompile(t, source, lists).String(), want)
	}
}

// TestWildcardIsARegexp compares with what the standard library understands.
func TestWildcardIsARegexp(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune(`abA*\[.é`)), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		pattern, value := letters.Draw(t, "pattern"), letters.Draw(t, "value")
		var re strings.Builder
		literal, stars, wrong := false, 0, false
		for _, c := range pattern {
			switch {
			case literal:
				wrong = wrong || c != '*' && c != '\\'
				re.WriteString(regexp.QuoteMeta(string(c)))
				literal, stars = false, 0
			case c == '\\':
				literal = true
			case c == '*':
				re.WriteString("(?s:.*)")
				stars++
				wrong = wrong || stars > 1
			default:
				re.WriteString(regexp.QuoteMeta(string(c)))
				stars = 0
			}
		}
		wrong = wrong || literal
		for op, flags := range map[string]string{"strict wildcard": "^", "wildcard": "(?i)^"} {
			e, err := Compile("http.host "+op+" "+quote(pattern), nil)
			if (err != nil) != wrong {
				t.Fatalf("%s: got error %v, want one: %v", pattern, err, wrong)
			}
			if wrong {
				continue
			}
			want := regexp.MustCompile(flags + re.String() + "$").MatchString(value)
			if got := e.Match(&Request{Host: value}); got != want {
				t.Fatalf("%q %s %q: got %v, want %v", value, op, pattern, got, want)
			}
		}
	})
}

func TestQuotedStringsAreThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := string(rapid.SliceOf(rapid.Byte()).Draw(t, "value"))
		e := mustCompile(t, "http.host eq "+quote(value), nil)
		if !e.Match(&Request{Host: value}) || e.Match(&Request{Host: value + "x"}) {
			t.Fatalf("%s is not %q", quote(value), value)
		}
		if strings.ToValidUTF8(value, "") != value {
			return // there are no escapes in raw strings
		}
		e = mustCompile(t, "http.host eq "+quoteRaw(value), nil)
		if !e.Match(&Request{Host: value}) {
			t.Fatalf("%s is not %q", quoteRaw(value), value)
		}
	})
}

// TestDecodingIsThatOfForms compares with the standard library where that one
// has an answer: it refuses what is no escape, which here stays.
func TestDecodingIsThatOfForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.SampledFrom([]rune(`%+2f5Zu é`)), 0, 12, -1).Draw(t, "value")
		want, err := url.QueryUnescape(value)
		if err != nil {
			return
		}
		if got := new(scratch).decode(value, false, false); got != want {
			t.Fatalf("%q: got %q, want %q", value, got, want)
		}
	})
}

// TestSetsOfAddresses compares with asking each network in turn.
func TestSetsOfAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nets []netip.Prefix
		var items []string
		for range rapid.IntRange(1, 20).Draw(t, "networks") {
			a := drawAddr(t)
			p := must.Do(a.Prefix(rapid.IntRange(0, a.BitLen()).Draw(t, "bits")))
			nets = append(nets, p)
			items = append(items, p.String())
		}
		list := must.Do(AddressList(items))
		braces := mustCompile(t, "ip.src in {"+strings.Join(items, " ")+"}", nil)
		named := mustCompile(t, "ip.src in $l", Lists{"l": list})
		for range 10 {
			a := drawAddr(t)
			want := slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
			r := &Request{Source: a}
			if braces.Match(r) != want || named.Match(r) != want {
				t.Fatalf("%v in %v: want %v", a, items, want)
			}
		}
	})
}

// drawAddr draws addresses that are near to one another.
func drawAddr(t *rapid.T) netip.Addr {
	b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), 4, 4).Draw(t, "address")
	if rapid.Bool().Draw(t, "IPv6") {
		return netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 2: b[0], 7: b[1], 8: b[2], 15: b[3]})
	}
	return netip.AddrFrom4([4]byte(b))
}
