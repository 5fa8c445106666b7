package story

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A table says what was run and what came of it, and repeats no situation.
func TestTable(t *testing.T) {
	s := policies()
	var done []finished
	for i, p := range s.runs {
		f := finished{planned: p}
		f.result.OvershootPct = float64(i)
		done = append(done, f)
	}
	lines := strings.Split(s.table(done), "\n")
	columns := strings.Count(lines[0], " | ")
	for i, p := range s.runs {
		row := lines[2+i]
		if strings.Count(row, " | ") != columns || !strings.Contains(row, p.title[1]+" | "+string(rune('0'+i%10))) && i < 10 {
			t.Errorf("row %d: %q", i, row)
		}
	}
	text := strings.Join(lines, "\n")
	for _, p := range s.runs {
		if !strings.Contains(text, "\n"+p.line()+"\n") {
			t.Errorf("the table lacks %q", p.line())
		}
	}
	if n := strings.Count(text, "| undisturbed |"); n != 1 {
		t.Errorf("a situation is named %d times", n)
	}
}

// The pages have the places that the Makefile writes to, and hold a table of runs
// that are planned today: it may lack some that were added since, which the next run
// of the set brings, but has none that nobody would make again.
func TestPagesHoldTheTables(t *testing.T) {
	for name, of := range map[string]struct {
		page string
		set
	}{"policies": {"policies.md", policies()}, "simulate-large": {"simulator.md", large()}} {
		page, s := of.page, of.set
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "<!-- begin: written by ropeline-bench run "+name+" -->\n")
		table, _, _ = strings.Cut(table, "<!-- end -->")
		shown := 0
		for line := range strings.Lines(table) {
			line = strings.TrimSuffix(line, "\n")
			if !strings.Contains(line, "ropeline-bench simulate ") {
				continue
			}
			shown++
			if !slices.ContainsFunc(s.runs, func(p planned) bool { return p.line() == line }) {
				t.Errorf("%s has a row for %s, which is not planned; run the set again", page, line)
			}
		}
		if shown < len(s.runs)/2 {
			t.Errorf("%s shows %d of %d runs; run the set again", page, shown, len(s.runs))
		}
	}
}
