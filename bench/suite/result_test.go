package suite

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/drawing"
	"github.com/ropeline/ropeline/bench/machine"
	"github.com/ropeline/ropeline/bench/measurement"
)

var update = flag.Bool("update", false, "write what is compared with")

// made returns a result with everything that a result can have.
func made() *Result {
	sample := func(cpu float64) Sample {
		return Sample{Rate: 1e6 / cpu, CPU: cpu, P50: 0.5, P99: cpu / 10, Answered: 1000, Waited: 0.01, Generator: 0.4}
	}
	r := &Result{
		Name: "proxy", Title: "Proxying", Question: "What?", Method: "So.", Base: "nginx", Rounds: 3, Seconds: 4,
		Made:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: machine.Machine{Processor: "Some", Cores: 2, Kernel: "Linux 6", Go: "go1.26", Load: "0.1 0.2 0.3", Programs: map[string]string{"nginx": "1.22.1"}},
		Rows: []Row{
			{Server: "ropeline", Case: "a room", Conns: 64, Samples: []Sample{sample(14), sample(15), sample(13)}},
			{Server: "nginx", Conns: 64, Samples: []Sample{sample(12), sample(12.5), sample(10)}},
			{Server: "HAProxy", Conns: 64, Missing: []string{"haproxy (Debian's package haproxy)"}},
		},
	}
	r.Rows[0].Samples[1].Bad, r.Rows[0].Samples[2].Failed = 3, 1
	for _, c := range []check{
		{text: "more than nginx", unit: "µs", most: 3, rows: []string{"ropeline, a room", "nginx"}, of: cpuDifference},
		{text: "by nginx", least: 2, rows: []string{"ropeline, a room", "nginx"}, of: cpuRatio},
		{text: "by HAProxy", most: 1, rows: []string{"ropeline, a room", "HAProxy"}, of: cpuRatio},
		{text: "bad answers", most: measurement.NoneAtAll, rows: []string{"nginx"}, of: func(s []Sample) float64 { return float64(s[0].Bad) }},
	} {
		r.Checks = append(r.Checks, c.run(r))
	}
	return r
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant %s:\n%s", got, path, want)
	}
}

func TestResultAsJSON(t *testing.T) {
	b, err := made().AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "result.json", string(b))
}

func TestResultAsMarkdown(t *testing.T) { compare(t, "result.md", made().Markdown()) }

// A ratio of medians would be 14/12: the rounds differ, and a ratio is of one round.
func TestRatiosAreFormedWithinARound(t *testing.T) {
	r := made()
	c := check{rows: []string{"ropeline, a room", "nginx"}, of: cpuRatio}
	got := c.run(r).Value
	if want := 15 / 12.5; got.Median != want {
		t.Errorf("got %v, want %v", got.Median, want)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{3, 1}, Spread{2, 1, 3}},
		{[]float64{5, 1, 2}, Spread{2, 1, 5}},
	} {
		if got := spreadOf(c.of); got != c.want {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 1.234: "1.23", -1.234: "-1.23", 12.34: "12.3", 123.4: "123", 1234.4: "1,234", 1234567: "1,234,567", -123456: "-123,456"} {
		if got := number(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

// Tables and checks find rows by their names.
func TestEveryNameIsOfARow(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range All() {
		if b.Name == "" || b.Title == "" || b.Question == "" || b.Method == "" || seen[b.Name] {
			t.Errorf("%+v is not fully told, or twice", b)
		}
		seen[b.Name] = true
		r := &Result{}
		for _, e := range b.entries {
			row := e.row()
			if r.row(row.name()) != nil {
				t.Errorf("%s: two rows %q", b.Name, row.name())
			}
			r.Rows = append(r.Rows, row)
		}
		names := []string{b.base}
		for _, c := range b.checks {
			names = append(names, c.rows...)
			if c.least == 0 && c.most == 0 {
				t.Errorf("%s: %q has no bound", b.Name, c.text)
			}
		}
		for _, name := range names {
			if name != "" && r.row(name) == nil {
				t.Errorf("%s: no row %q", b.Name, name)
			}
		}
	}
}

// TestALateGeneratorIsMarked: where it warns, latencies and what is formed of them say so, and those of other rows do not.
func TestALateGeneratorIsMarked(t *testing.T) {
	r := made()
	for i := range r.Rows[0].Samples {
		s := &r.Rows[0].Samples[i]
		s.Wanted, s.P999, s.Late = 30_000, 2.5, 0.05
	}
	if text := r.Markdown(); strings.Contains(text, "†") || !strings.Contains(text, "| 0.05 |") {
		t.Errorf("want lateness, and no mark of it:\n%s", text)
	}
	r.Rows[0].Samples[2].Warning, r.Rows[0].Samples[2].Late = "it was late", 7
	c := check{text: "beside nginx", most: 3, rows: []string{"ropeline, a room", "nginx"}, of: cpuDifference}
	r.Checks = []Checked{c.run(r)}
	text := r.Markdown()
	for _, want := range []string{
		"| 2.50 † | 0.50, 1.40 † | 0.05 (0.05 to 7.00) † |", "| 0.50, 1.20 |", "want at most 3 († rounds in which the generator was late or had no time left: 1)",
		"† The generator was late, or had no time of its core left: these latencies are its own as well** (ropeline, a room in 1 of 3).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestLineSaysWhatTheGeneratorHeld(t *testing.T) {
	for want, self := range map[string]SelfTest{
		"and held 140,000/s in time.":                             {Sustains: 140_000, Closed: 160_000, CPU: 5.5},
		"and held no constant rate in time: at 1000/s it was so.": {Closed: 160_000, CPU: 5.5, Why: "at 1000/s it was so"},
	} {
		r := made()
		r.SelfTest = self
		if line := r.Line(); !strings.HasSuffix(line, want) {
			t.Errorf("got %q, want %q at its end", line, want)
		}
	}
}

func TestWhatIsMissingIsARow(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var r Result
	h := harness{Config: Config{Caddy: "/no/such/caddy", Only: "Caddy"}}
	chosen := h.choose(proxying(), &r)
	if len(chosen) != 1 || len(r.Rows) != 1 || strings.Join(r.Rows[0].Missing, "") != "caddy (make artifacts/caddy)" {
		t.Errorf("got %+v", r.Rows)
	}
	if text := r.Markdown(); !strings.Contains(text, "missing: caddy (make artifacts/caddy)") {
		t.Errorf("the table does not say so:\n%s", text)
	}
}

// TestPartsThatShareTheCore wait for each other, which is not the machine's fault.
func TestPartsThatShareTheCore(t *testing.T) {
	const others = "Other programs were at work"
	for processes, want := range map[int]bool{1: true, 2: false} {
		r := made()
		for i := range r.Rows {
			for j := range r.Rows[i].Samples {
				s := &r.Rows[i].Samples[j]
				s.Waited, s.Processes = 0.5, processes
			}
		}
		if line := r.Line(); strings.Contains(line, others) != want {
			t.Errorf("servers of %d processes: %q", processes, line)
		}
	}
}

func TestDocsAreWritten(t *testing.T) {
	docs := t.TempDir()
	r := made()
	if err := r.WriteDocs(docs); err == nil {
		t.Error("there is no page, and a place in it")
	}
	if err := os.WriteFile(page(docs), []byte("# Page\n\n<!-- begin: written by ropeline-bench run proxy -->\nold\n<!-- end -->\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteDocs(docs); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page(docs))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "page.md", string(text))
	for _, name := range []string{"bench/proxy.json", "img/bench-proxy.svg"} {
		if info, err := os.Stat(filepath.Join(docs, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChartsHaveABarForEachThatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	if _, err := drawing.Write(dir, made().chart()); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "bench-proxy.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"ropeline, a room": true, ">nginx<": true, "HAProxy": false, ">14.0<": true} {
		if strings.Contains(string(svg), name) != want {
			t.Errorf("%q is in the picture: %v", name, !want)
		}
	}
}
