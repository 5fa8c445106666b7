//go:build unix

package conformance

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is the one with the table.
type page struct{ before, table, after string }

const pageFile = "../../docs/verdicts.md"

func readPage(t *testing.T) (p page) {
	t.Helper()
	text, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin: written by go test ./bench/conformance -run TestProxies -update -->\n", "<!-- end -->\n"
	before, rest, begins := strings.Cut(string(text), begin)
	is, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no %q and %q", pageFile, begin, end)
	}
	return page{before + begin, is, end + after}
}

var noteMark = regexp.MustCompile(` <sup>.*</sup>`)

// column is what the page says of a proxy.
func (p page) column(fe frontEnd) column {
	c := column{fe, map[string]string{}}
	lines := strings.Split(p.table, "\n")
	cells := func(line string) []string {
		all := strings.Split(strings.Trim(line, "|"), "|")
		for i := range all {
			all[i] = noteMark.ReplaceAllString(strings.TrimSpace(all[i]), "")
		}
		return all
	}
	at := slices.Index(cells(lines[0]), fe.name)
	if at < 0 {
		return c
	}
	for i, r := range rows() {
		if line := i + 2; line < len(lines) {
			if all := cells(lines[line]); at < len(all) {
				c.seen[r.id] = all[at]
			}
		}
	}
	return c
}

// hold holds the page to a table.
func (p page) hold(t *testing.T, table string) {
	t.Helper()
	switch {
	case p.table == table:
	case *update:
		if err := os.WriteFile(pageFile, []byte(p.before+table+p.after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says otherwise; go test ./bench/conformance -run TestProxies -update writes:\n%s", pageFile, table)
	}
}

// rows are all cases of the table.
func rows() []testCase { return append(cases(), openCases()...) }

// column is what visitors saw through one proxy.
type column struct {
	of   frontEnd
	seen map[string]string // by the ids of cases
}

// broken is what stands where something else came of a case than has to.
const broken = "broken"

func (c column) cell(of testCase) string { return cmp.Or(c.seen[of.id], broken) }

// table returns the columns of all proxies as markdown, with the notes that they need.
func table(columns []column) string {
	var b strings.Builder
	var used []note
	mark := func(notes []note) string {
		var marks []string
		for _, n := range notes {
			if !slices.Contains(used, n) {
				used = append(used, n)
			}
			marks = append(marks, fmt.Sprint(slices.Index(used, n)+1))
		}
		if marks == nil {
			return ""
		}
		return " <sup>" + strings.Join(marks, ", ") + "</sup>"
	}
	b.WriteString("| the visitor is |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s%s |", c.of.name, mark(columnNotes(c.of)))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, r := range rows() {
		fmt.Fprintf(&b, "| %s%s |", r.what, mark(r.notes))
		for _, c := range columns {
			fmt.Fprintf(&b, " %s%s |", c.cell(r), mark(cellNotes(r, c.of)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for i, n := range used {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	return b.String()
}

// note explains something in the table that its words do not.
type note string

const (
	standsIn note = "Not the program, but one that does with this configuration what the program's documentation says."

	ownPage note = "nginx drops the body of a verdict and fetches the page by a request of its own. Its code is not read as a verdict, so it is the room's `queueing-status-code`, here 202."

	siteCaches note = "Traefik cannot change the site's `Cache-Control` where a pass is set. If pages of the site may be stored by shared caches in front of Traefik, keep those from storing answers with `Set-Cookie`, as most do."

	asSaid note = "What the example says for when no verdict can be had; see the last row."

	cannotSay note = "Traefik knows no other answer when no verdict can be had."

	threeSeconds note = "After the 3 s that the examples give a node, or sooner where they look at its `/readyz`; Traefik's 30 s cannot be changed."

	noVerdict note = "Where no verdict can be had, Envoy leaves a proof of admission that a visitor has made up. Its signature is wrong."

	byRule note = "The field that `country-header` names is the visitor's here. A node reads it in questions only [if it is told](#countries) that the proxy replaces it."

	byPost note = "The site asks a node to, [by `POST /revoke`](#ending-sessions). Its answers do not pass through a node, so a field in them would not be seen."
)

// columnNotes are those of a proxy as a whole.
func columnNotes(fe frontEnd) []note {
	if fe.standIn {
		return []note{standsIn}
	}
	return nil
}

// cellNotes are those of a case with a proxy.
func cellNotes(c testCase, fe frontEnd) (notes []note) {
	switch {
	case fe.pages && c.paged:
		notes = append(notes, ownPage)
	case fe.siteCaches && c.newPass:
		notes = append(notes, siteCaches)
	case c.hurts && fe.closed:
		notes = append(notes, cannotSay)
	case c.id == "open" && fe.keepsForged:
		notes = append(notes, noVerdict)
	case c.hurts && c.id != "open":
		notes = append(notes, asSaid)
	}
	return notes
}
