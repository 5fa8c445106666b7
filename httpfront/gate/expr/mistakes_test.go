package expr

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/golden"
	"github.com/ropeline/ropeline/bench/must"
)

// TestMistakes reads testdata/mistakes.txt: blocks of a source and what Compile
// says about it, the excerpt of which the source is the first line.
func TestMistakes(t *testing.T) {
	const file = "testdata/mistakes.txt"
	lists := testLists()
	var said []string
	for block := range strings.SplitSeq(strings.TrimSpace(string(must.Do(os.ReadFile(file)))), "\n\n") {
		source, _, _ := strings.Cut(block, "\n")
		said = append(said, mistake(source, lists))
	}
	golden.File(t, file, strings.Join(said, "\n\n")+"\n")
}

// mistake is what Compile says of a source, below the place.
func mistake(source string, lists Lists) string {
	_, err := Compile(source, lists)
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		return fmt.Sprintf("%s\n%v, without a place", source, err)
	}
	return wrong.Excerpt() + "\n" + wrong.Error()
}

func TestMistakesOfSources(t *testing.T) {
	for name, tt := range map[string]struct {
		source       string
		line, column int
		message      string
		excerpt      string
	}{
		"nothing": {"", 1, 1, `found nothing, want a field, a function, "not" or "("`, "\n^"},
		"on another line, behind a tab": {
			"ssl and\r\n\thttp.hots eq \"é\"\nor ssl", 2, 2, "there is no field http.hots; did you mean http.host?",
			"\thttp.hots eq \"é\"\n\t^",
		},
		"behind what is more than a byte": {
			`http.host eq "äöü☁" and foo`, 1, 25, "there is no field foo; there are ",
			"http.host eq \"äöü☁\" and foo\n                        ^",
		},
		"within a long line": {
			strings.Repeat("ssl or ", 30) + "sll" + strings.Repeat(" or ssl", 30), 1, 211, "there is no field sll; did you mean ssl?",
			"…" + strings.Repeat("ssl or ", 30)[150:] + "sll" + strings.Repeat(" or ssl", 30)[:57] + "…\n" + strings.Repeat(" ", 61) + "^",
		},
		"two arrays": {
			`any(http.request.headers["a"][*] eq "a" and http.request.headers["b"][*] eq "b")`,
			1, 70, `any goes through http.request.headers["a"] here; there can be no second array`,
			`…request.headers["a"][*] eq "a" and http.request.headers["b"][*] eq "b")` + "\n" + strings.Repeat(" ", 61) + "^",
		},
		"not UTF-8":         {"ssl and \ufffd\xff", 1, 10, "this is not UTF-8; ", "ssl and \ufffd\ufffd\n         ^"}, // what stands for bad bytes is good
		"too long":          {"ssl or " + strings.Repeat("é", MaxLength), 1, MaxLength + 1, "the expression is too long; 4096 characters are allowed", ""},
		"too deep":          {strings.Repeat("(", 33) + "ssl" + strings.Repeat(")", 33), 1, 33, "too many open parentheses; 32 are allowed", ""},
		"too many elements": {"len(http.host) in {" + strings.Repeat("1 ", 1001) + "}", 1, 19, "a set of 1001 elements; 1000 are allowed, and more in a $list", ""},
	} {
		_, err := Compile(tt.source, nil)
		wrong, ok := errors.AsType[*Error](err)
		if !ok || wrong.Line != tt.line || wrong.Column != tt.column || !strings.HasPrefix(wrong.Message, tt.message) ||
			!strings.HasPrefix(wrong.Excerpt(), tt.excerpt) {
			t.Errorf("%s: got\n%s\nwant line %d, column %d: %s\n%s", name, mistake(tt.source, nil), tt.line, tt.column, tt.message, tt.excerpt)
		}
	}
}

func TestBoundsAreAllowed(t *testing.T) {
	for _, source := range []string{
		"ssl or " + strings.Repeat(" ", MaxLength-10) + "ssl",
		strings.Repeat("(", MaxDepth) + "ssl" + strings.Repeat(")", MaxDepth),
		strings.Repeat("(ssl) or ", 400) + "ssl",
		"len(http.host) in {" + strings.Repeat("1 ", MaxSetSize) + "}",
		strings.Repeat("!", MaxLength-3) + "ssl",
	} {
		if _, err := Compile(source, nil); err != nil {
			t.Errorf("%.40s…: %v", source, err)
		}
	}
}

func TestListsThatAreNone(t *testing.T) {
	for _, tt := range []struct {
		items []string
		want  string
	}{
		{[]string{"10.0.0.1", "ten"}, `element 2, "ten": this is not an IP address`},
		{[]string{""}, `element 1, "": this is not an IP address`},
		{[]string{"10.0.0.1/8"}, `element 1, "10.0.0.1/8": the address has bits behind the first 8; the network is 10.0.0.0/8`},
		{[]string{"10.0.0.9..10.0.0.1"}, `element 1, "10.0.0.9..10.0.0.1": this range is empty: it ends before it begins`},
		{[]string{"10.0.0.9.."}, `element 1, "10.0.0.9..": this is not an IP address`},
		{[]string{"fe80::1%eth0"}, `element 1, "fe80::1%eth0": this is not an IP address`},
		{[]string{"::ffff:0:0/90"}, `element 1, "::ffff:0:0/90": the address has bits behind the first 90; the network is ::ffc0:0:0/90`},
	} {
		if _, err := AddressList(tt.items); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got error %v, want %s", tt.items, err, tt.want)
		}
	}
	many := make([]string, MaxListSize+1)
	for _, of := range []func([]string) (*List, error){AddressList, StringList} {
		if _, err := of(many); err == nil || !strings.Contains(err.Error(), "elements") {
			t.Errorf("a list of any size: %v", err)
		}
	}
}

// TestNearest: what is offered is what may have been meant; where nothing is, the names
// that there are say more.
func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"http.hots": "http.host", "htpp.host": "http.host", "http.path": "http.request.uri.path", "path": "http.request.uri.path",
		"http.request.url.path": "http.request.uri.path", "raw.http.request.uri.path": "http.request.uri.path",
		"http.headers": "http.request.headers", "http.useragent": "http.user_agent", "http.user-agent": "http.user_agent",
		"ip.country": "ip.geoip.country", "src": "ip.src", "http.src": "ip.src", "sll": "ssl", "http.request.methd": "http.request.method",

		"cf.client.bot": "", "http.request.timestamp.sec": "", "http.request.timestamp.msec": "", "cf.threat_score": "",
		"cf.bot_management.score": "", "ip.src.asnum": "", "ip.src.region": "", "ip.src.city": "", "ip.geoip.continent": "",
		"http.response.code": "", "http.request.body.size": "", "tls.sec": "", "cf.edge.version": "", "foo": "", "": "",
	} {
		equal(t, name, nearest(name, slices.Sorted(maps.Keys(fields))), want)
	}
	for name, want := range map[string]string{"lowercase": "lower", "uppr": "upper", "start_with": "starts_with", "regex_replace": "", "lookup": ""} {
		equal(t, "function "+name, nearest(name, slices.Sorted(maps.Keys(functions))), want)
	}
}

// TestStepsOfAnExpression: many regular expressions cost as much as a long one.
func TestStepsOfAnExpression(t *testing.T) {
	many := func(n int) string {
		return strings.TrimPrefix(strings.Repeat(` or http.request.uri.path matches ".{1,400}x"`, n), " or ")
	}
	if n := must.Do(Compile(many(2), nil)).Steps(); n < 800 || n > maxSteps {
		t.Errorf("two of them: %d steps", n)
	}
	if _, err := Compile(many(80), nil); err == nil || !strings.Contains(err.Error(), "2000 are allowed") {
		t.Errorf("eighty of them: error %v, want how many steps are allowed", err)
	}
	if e, err := Compile(`http.request.uri.path eq "/"`, nil); err != nil || e.Steps() != 0 {
		t.Errorf("without any: %d steps, %v", e.Steps(), err)
	}
}
