package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/measurement"
)

// TestGoBenchmarksBecomeRows by what they are of and the keys in their names, in base units, without what the measurement does
// not ask for.
func TestGoBenchmarksBecomeRows(t *testing.T) {
	g := goBench{
		Entry:      measurement.Entry{Name: "some", Units: []measurement.Unit{{Name: "sec/op"}, {Name: "p99-sec"}}},
		benchmarks: []goBenchmark{{"Decide", "a decision"}, {"Rate", ""}},
	}
	const decide, rate = "BenchmarkDecide/inside-2 \t 100\t 1e9 ns/op\t 12 B/op\n", "BenchmarkRate/rate=50_000/of=two_words-2 \t 1\t 1500000 p99-ns\n"
	for _, c := range []struct{ printed, row, wrong string }{
		{"goos: linux\n" + decide + rate + "BenchmarkOther-2 1 7 x/op\nPASS\n", "BenchmarkSome/what=a_decision/case=inside 1 1 sec/op\n", ""},
		{decide + rate, "BenchmarkSome/rate=50_000/of=two_words 1 0.0015 p99-sec\n", ""},
		{decide, "case=inside", "BenchmarkRate gave no figure"},
		{decide, "case=inside", "no benchmark gave a figure in p99-sec"},
		{decide + "BenchmarkRate-2 \t 1 many p99-ns\n", "case=inside", "go test:2"},
		{"BenchmarkDecide/inside/out-2 1 5 ns/op\n", "", "two values for case"},
		{"PASS\n", "", "no benchmark of  gave any of its figures"},
	} {
		var file strings.Builder
		var r measurement.Run
		r.Begin(&g.Entry, &file)
		err := g.take(&r, strings.NewReader(c.printed), true)
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) || !strings.Contains(file.String(), c.row) || strings.Contains(file.String(), "Other") {
			t.Errorf("%q: got %v, want %q; and\n%s", c.printed, err, c.wrong, file.String())
		}
	}
}

// TestGoBenchmarksAreThere in a package that the measurement runs.
func TestGoBenchmarksAreThere(t *testing.T) {
	for _, some := range [][]goBench{meshBenches(), decisionBenches(), partBenches()} {
		for _, g := range some {
			var code strings.Builder
			for _, dir := range g.packages {
				files, err := filepath.Glob("../../" + dir + "/*_test.go")
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range files {
					text, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					code.Write(text)
				}
			}
			for _, b := range g.benchmarks {
				if !strings.Contains(code.String(), "\nfunc Benchmark"+b.name+"(b *testing.B) {\n") {
					t.Errorf("%s: there is no Benchmark%s in %v", g.Name, b.name, g.packages)
				}
			}
		}
	}
}
