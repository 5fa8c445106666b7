package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/perf/benchfmt"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// goBench is a measurement that Go benchmarks make, which see the inside of a package: go test runs them in a checkout.
type goBench struct {
	measurement.Entry // but for New, and for go among Needs
	packages          []string
	benchmarks        []goBenchmark
	benchtime         string // of each, as -benchtime has it
	count             int
}

// goBenchmark is one benchmark.
type goBenchmark struct {
	name  string // without Benchmark
	label string // what its rows are of; "": the keys in their names say it
}

// entry returns the measurement.
func (g goBench) entry() measurement.Entry {
	var names []string
	for _, b := range g.benchmarks {
		names = append(names, b.name)
	}
	all := "^Benchmark(" + strings.Join(names, "|") + ")$"
	g.Needs = append(g.Needs, "go")
	g.New = func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
		bench := o.String("bench", all, "which of them, as -bench of go test has it")
		benchtime := o.String("time", g.benchtime, "how long each runs, or how often, as -benchtime of go test has it")
		count := o.Int("count", g.count, "how often each is measured")
		return func(ctx context.Context, r *measurement.Run) error {
			args := append([]string{"test", "-run=^$", "-timeout=0", "-bench=" + *bench, "-benchtime=" + *benchtime, "-count=" + strconv.Itoa(*count)}, g.packages...)
			out, err := goRun(ctx, r.Log, args)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return errors.Join(err, g.take(r, out, *bench == all))
		}
	}
	return g.Entry
}

// goRun runs the go command, and returns what it printed, which goes to log as well.
func goRun(ctx context.Context, log io.Writer, args []string) (*bytes.Buffer, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	rig.EndTogether(cmd)
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	both := io.MultiWriter(&out, log)
	cmd.Stdout, cmd.Stderr = both, both
	if err := cmd.Run(); err != nil {
		return &out, fmt.Errorf("go %s: %w; it runs in a checkout of ropeline", strings.Join(args, " "), err)
	}
	return &out, nil
}

// take adds the results that go test printed, in the units that the measurement has. If all benchmarks ran, each has to have
// some, and each unit a value.
func (g goBench) take(r *measurement.Run, out io.Reader, all bool) (err error) {
	reader := benchfmt.NewReader(out, "go test")
	seen := map[string]bool{}
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			err = errors.Join(err, rec)
		case *benchfmt.Result:
			err = errors.Join(err, g.add(r, rec, seen))
		}
	}
	err = errors.Join(err, reader.Err())
	for _, b := range g.benchmarks {
		if all && !seen[b.name] {
			err = errors.Join(err, fmt.Errorf("%s: Benchmark%s gave no figure", g.Name, b.name))
		}
	}
	for _, u := range g.Units {
		if all && !seen[u.Name] {
			err = errors.Join(err, fmt.Errorf("%s: no benchmark gave a figure in %s", g.Name, u.Name))
		}
	}
	if len(seen) == 0 {
		err = errors.Join(err, fmt.Errorf("%s: no benchmark of %s gave any of its figures", g.Name, strings.Join(g.packages, ", ")))
	}
	return err
}

// add adds one result, and notes the benchmark and the units that it has.
func (g goBench) add(r *measurement.Run, result *benchfmt.Result, seen map[string]bool) error {
	values := measurement.Values{}
	for _, u := range g.Units {
		if v, ok := result.Value(u.Name); ok {
			values[u.Name], seen[u.Name] = v, true
		}
	}
	if len(values) == 0 {
		return nil
	}
	row, err := g.row(result.Name)
	if err != nil {
		return err
	}
	r.Add(row, values)
	base, _ := result.Name.Parts()
	seen[string(base)] = true
	return nil
}

// row is what the result of a benchmark is of: its label, and the keys and values in its name, where one may be without a key.
func (g goBench) row(name benchfmt.Name) (string, error) {
	base, parts := name.Parts()
	var row []string
	for _, b := range g.benchmarks {
		if b.name == string(base) && b.label != "" {
			row = append(row, measurement.Row("what", b.label))
		}
	}
	for _, part := range parts {
		text, ok := strings.CutPrefix(string(part), "/")
		if !ok { // GOMAXPROCS
			continue
		}
		if !strings.Contains(text, "=") {
			text = "case=" + text
		}
		key, _, _ := strings.Cut(text, "=")
		if slices.ContainsFunc(row, func(other string) bool { return strings.HasPrefix(other, key+"=") }) {
			return "", fmt.Errorf("%s: the name %s has two values for %s", g.Name, name, key)
		}
		row = append(row, text)
	}
	return strings.Join(row, "/"), nil
}
