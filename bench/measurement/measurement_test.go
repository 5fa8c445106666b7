package measurement

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// entry is one with a bound of each kind.
func entry() *Entry {
	return &Entry{
		Name: "two-words", Page: "page.md",
		Units:  []Unit{{Name: "sec/op", Better: "lower"}, {Name: "over", Exact: true}},
		Bounds: []Bound{{Row: "a=1", Unit: "sec/op", Most: 0.01, Text: "one"}, {Row: "a=2", Unit: "over", Most: NoneAtAll}, {Row: "a=3", Unit: "sec/op", Least: 5}},
		New: func(o *pflag.FlagSet) func(context.Context, *Run) error {
			n := o.Int("n", 3, "how many")
			return func(_ context.Context, r *Run) error {
				for range *n {
					r.Add(Row("a", "1", "empty", ""), Values{"sec/op": 0.002})
				}
				return nil
			}
		},
	}
}

// results returns what is read of rows that were written, and the file.
func results(t *testing.T, seconds []float64, over float64) (*Results, string) {
	t.Helper()
	var file bytes.Buffer
	var r Run
	r.Begin(entry(), &file)
	for _, s := range seconds {
		r.Add(Row("a", "1"), Values{"sec/op": s})
	}
	r.Add(Row("a", "2"), Values{"over": over})
	read, err := Read(bytes.NewReader(file.Bytes()), "file")
	if err != nil {
		t.Fatal(err)
	}
	return read, file.String()
}

func TestResultsAreInTheBenchmarkFormat(t *testing.T) {
	_, file := results(t, []float64{0.002, 0.003}, 0)
	for _, want := range []string{"Unit sec/op better=lower\n", "Unit over assume=exact\n", "pkg: ropeline-bench\n", "BenchmarkTwoWords/a=1 1 0.002 sec/op\n", "BenchmarkTwoWords/a=1 1 0.003 sec/op\n", "BenchmarkTwoWords/a=2 1 0 over\n"} {
		if !strings.Contains(file, want) {
			t.Errorf("want %q in\n%s", want, file)
		}
	}
}

func TestBoundsAreJudgedByTheInterval(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds []float64
		over    float64
		want    []string
		missed  int
	}{
		{"held", []float64{.007, .008, .007, .008, .007, .009}, 0, []string{"held: one: 7.500m sec/op (7.000m to 9.000m), want at most 10.00m\n", "held: a=2: 0 over, want none\n"}, 0},
		{"missed", []float64{.017, .018, .017, .018, .017, .019}, 1, []string{"missed: one: ", "missed: a=2: "}, 2},
		{"across the bound", []float64{.007, .008, .007, .008, .007, .019}, 0, []string{"open: one: "}, 0},
		{"too few, all within", []float64{.007, .008, .007, .008, .007}, 0, []string{"open: one: 7.000m sec/op (too few repetitions for an interval)"}, 0},
		{"too few, all beyond", []float64{.017}, 0, []string{"open: one: "}, 0},
		{"too few, and one end", []float64{.017, .018, .019, .02, .03}, 0, []string{"open: one: "}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, _ := results(t, c.seconds, c.over)
			var out strings.Builder
			if missed := read.Judge(entry(), &out); missed != c.missed {
				t.Errorf("%d bounds are missed, want %d", missed, c.missed)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("want %q in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "a=3") {
				t.Errorf("a bound of a row that is not there is judged:\n%s", out.String())
			}
		})
	}
}

func TestFilesThatAreNoResults(t *testing.T) {
	if _, err := Read(strings.NewReader("BenchmarkX 1 many sec/op\n"), "some.txt"); err == nil || !strings.Contains(err.Error(), "some.txt:1") {
		t.Errorf("got %v, want an error with the line", err)
	}
}

func TestOptions(t *testing.T) {
	e := entry()
	options, run := e.Options()
	if err := e.Set(options, "n=7"); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	var r Run
	r.Begin(e, &file)
	if err := run(t.Context(), &r); err != nil || strings.Count(file.String(), "BenchmarkTwoWords/a=1 ") != 7 {
		t.Errorf("got %v and\n%s", err, file.String())
	}
	for _, bad := range []string{"m=7", "n=seven"} {
		if err := e.Set(options, bad); err == nil || !strings.Contains(err.Error(), "two-words") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func TestUnitsThatAnEntryDoesNotHave(t *testing.T) {
	var r Run
	r.Begin(entry(), new(bytes.Buffer))
	r.Add("a=1", Values{"sec/op": 1, "ms": 5})
	if _, err := r.End(t.Context()); err == nil || !strings.Contains(err.Error(), "two-words") {
		t.Errorf("got %v", err)
	}
}

func TestTablesOfARunItself(t *testing.T) {
	const table = "| a | bc |\n|---|--:|\n| long | 1 |\n\nText.\n"
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("# P\n<!-- begin: written by ropeline-bench run two-words -->\nold\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := Run{Out: &out}
	r.Begin(entry(), new(bytes.Buffer))
	if err := r.Table(table); err != nil || out.String() != "| a    | bc  |\n| ---  | --: |\n| long | 1   |\n\nText.\n" {
		t.Errorf("got %v and\n%s", err, out.String())
	}
	r.Docs = dir
	if err := r.Table(table); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != "# P\n<!-- begin: written by ropeline-bench run two-words -->\n"+table+"<!-- end -->\n" {
		t.Errorf("got %v and\n%s", err, text)
	}
}

// TestTheTableOfAllRows has a column for each key of rows and each unit with values, and stands in the page with what was asked,
// what came of the bounds, and all values beside it.
func TestTheTableOfAllRows(t *testing.T) {
	e := entry()
	e.Question, e.Method = "What?", "So."
	e.Units = append(e.Units, Unit{Name: "unused"}, Unit{Name: "aside", Aside: true})
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("# P\n<!-- begin: written by ropeline-bench run two-words -->\nold\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := Run{Out: &out, Docs: dir, Command: "ropeline-bench run two-words --set n=2"}
	r.Begin(e, new(bytes.Buffer))
	for _, s := range []float64{0.02, 0.004, 0.003} {
		r.Add(Row("a", "1", "a b", "two words"), Values{"sec/op": s, "aside": 7})
	}
	r.Add(Row("a", "2"), Values{"over": 0})
	r.Note("Nothing else.")
	if missed, err := r.End(t.Context()); err != nil || missed != 0 {
		t.Fatalf("%d missed, %v", missed, err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const want = "<!-- begin: written by ropeline-bench run two-words -->\n**What?**\n\nSo.\n\n" +
		"| a | a b | sec/op | over |\n|---|---|--:|--:|\n| 1 | two words | 4.000m (3.000m to 20.00m) |  |\n| 2 |  |  | 0 |\n\n`sec/op`: ; `over`: .\n\nNothing else.\n\n" +
		"- held: a=2: 0 over, want none\n\n"
	if _, rest, ok := strings.Cut(string(text), want); !ok || !strings.Contains(rest, " by `ropeline-bench run two-words --set n=2`; all values are in [two-words.txt](results/two-words.txt).\n<!-- end -->\n") {
		t.Errorf("got\n%s", text)
	}
	if out.String() != "held: a=2: 0 over, want none\n" {
		t.Errorf("printed %q", out.String())
	}
	f, err := os.Open(filepath.Join(dir, "results", "two-words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if read, err := Read(f, "two-words.txt"); err != nil || len(read.values[cell{"TwoWords/a=1/a_b=two_words", "sec/op"}]) != 3 {
		t.Errorf("beside the page is %+v, %v", read, err)
	}
}
