package expr

import (
	"net/netip"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

const docs = "../../../docs/rules.md"

var (
	fenced  = regexp.MustCompile("(?ms)^```(rule|mistake)\n(.*?)^```$")
	example = regexp.MustCompile(`^(true|false) +([A-Z]+) ([^ ]+)(?:  from ([^ ]+))?(?: \(([A-Z]{2})\))?$`)
)

// documented calls yield with each fenced block of a language in docs/rules.md.
func documented(t *testing.T, language string, yield func(block string)) {
	t.Helper()
	text := must.Do(os.ReadFile(docs))
	found := 0
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			yield(strings.TrimSuffix(m[2], "\n"))
			found++
		}
	}
	if found == 0 {
		t.Fatalf("%s has no block of %s", docs, language)
	}
}

// documentedLists are the lists that docs/rules.md tells of.
func documentedLists() Lists {
	return Lists{"office": listOf(AddressList, "192.0.2.0/24", "2001:db8:7::/48"), "partners": listOf(StringList, "news.example", "maps.example")}
}

func TestDocumentedRules(t *testing.T) {
	lists := documentedLists()
	var all strings.Builder
	documented(t, "rule", func(block string) {
		source, cases, _ := strings.Cut(block, "\n\n")
		all.WriteString(" " + source + " ")
		e, err := Compile(source, lists)
		if err != nil {
			t.Errorf("%s\n%v", source, err)
			return
		}
		tried := map[bool]int{}
		for _, c := range splitCases(cases) {
			r, want := readCase(t, c)
			equal(t, source+" of\n"+c, e.Match(r), want)
			tried[want]++
		}
		if len(tried) == 0 {
			t.Errorf("%s: no request stands below it", source)
		}
	})
	for _, what := range vocabulary() {
		if !hasWord(all.String(), what) {
			t.Errorf("%s shows no example of %s", docs, what)
		}
	}
}

// splitCases splits requests, each of which is a line and perhaps indented lines
// of headers.
func splitCases(s string) []string {
	var cases []string
	for line := range strings.SplitSeq(s, "\n") {
		if strings.HasPrefix(line, " ") && len(cases) > 0 {
			cases[len(cases)-1] += "\n" + line
			continue
		}
		cases = append(cases, line)
	}
	return cases
}

// readCase reads a request as Request says that it is to be given.
func readCase(t *testing.T, c string) (*Request, bool) {
	t.Helper()
	first, fields, _ := strings.Cut(c, "\n")
	m := example.FindStringSubmatch(first)
	if m == nil {
		t.Fatalf("%q is no request", first)
	}
	target, query, _ := strings.Cut(m[3], "?")
	u := must.Do(url.Parse(target))
	r := &Request{
		Method: m[2], Version: "HTTP/1.1", Host: u.Hostname(), Path: path.Clean(u.Path), Query: query,
		Secure: u.Scheme == "https", Country: m[5],
	}
	if strings.HasSuffix(u.Path, "/") && r.Path != "/" {
		r.Path += "/"
	}
	if m[4] != "" {
		r.Source = netip.MustParseAddr(m[4])
	}
	var headers Pairs
	for line := range strings.Lines(fields) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("%q is no header", line)
		}
		headers = append(headers, [2]string{name, value})
	}
	r.Headers = headers
	return r, m[1] == "true"
}

func TestDocumentedMistakes(t *testing.T) {
	lists := documentedLists()
	documented(t, "mistake", func(block string) {
		source, _, _ := strings.Cut(block, "\n")
		equal(t, source, mistake(source, lists), block)
	})
}
