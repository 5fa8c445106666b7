package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/cmd/cli"
)

// TestBenchMeasures runs what needs none of the other servers, for as short as can be: what it is about is that
// all parts find each other.
func TestBenchMeasures(t *testing.T) {
	single.Mostly(t)
	needBench(t)
	binary, err := rig.Built(t.Context(), rig.Ropeline)
	if err != nil {
		t.Fatal(err)
	}
	for _, only := range []string{"fasthttp, JSON", "ropeline, JSON, 1,000 waiting"} {
		file := filepath.Join(t.TempDir(), "results")
		root := newRootCommand()
		root.SetOut(t.Output())
		root.SetErr(t.Output())
		root.SetArgs([]string{"run", "waiting", "--quick", "--set", `"only=` + only + `"`, "--binary", binary, "--out", file})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		row := regexp.MustCompile(`(?m)^Benchmark.*server=\S+/case=\S+ 1 .*$`).FindAllString(string(text), -1)
		if len(row) != 1 || !strings.Contains(row[0], " 0 bad") || strings.Contains(row[0], " 0 cpu-sec/req") || strings.Contains(row[0], " 0 req/s") {
			t.Errorf("%s: got %q", only, row)
		}
	}
}

// needBench skips where nothing can be measured, and has processes that are started be this command.
func needBench(t *testing.T) {
	t.Helper()
	if missing := rig.Missing("taskset"); len(missing) > 0 || runtime.NumCPU() < 2 {
		t.Skip("this wants taskset and two cores")
	}
	t.Setenv(asCommand, "1")
}

// TestARunThatFailsTellsWhatThereIs prints it, and leaves the page alone, which it does not even have.
func TestARunThatFailsTellsWhatThereIs(t *testing.T) {
	e := measurement.Entry{Name: "fails", Page: "page.md", Units: []measurement.Unit{{Name: "broken"}}, New: func(*pflag.FlagSet) func(context.Context, *measurement.Run) error {
		return func(_ context.Context, r *measurement.Run) error {
			r.Add("row=seven", measurement.Values{"broken": 7})
			r.Note("It is broken, since it is.")
			return errors.New("not everything held")
		}
	}}
	var out strings.Builder
	docs := t.TempDir()
	o := runOptions{run: measurement.Run{Out: &out, Log: io.Discard, Docs: docs}}
	p := planned{Entry: &e}
	p.options, p.run = e.Options()
	_, err := o.one(t.Context(), p, io.Discard)
	if err == nil || err.Error() != "not everything held" || o.run.Docs != docs {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"| seven |", "It is broken, since it is."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the error
		code int
	}{
		{[]string{"run"}, "want the names of measurements", cli.ExitUsage},
		{[]string{"run", "speed"}, `there is no measurement "speed"`, cli.ExitUsage},
		{[]string{"list", "speed"}, `there is no measurement "speed"`, cli.ExitUsage},
		{[]string{"run", "proxy", "--all"}, "or --all alone", cli.ExitUsage},
		{[]string{"run", "proxy", "--binary", "main_test.go", "--set", "round=1"}, `there is no option "round"`, cli.ExitUsage},
		{[]string{"run", "proxy", "--binary", "main_test.go", "--docs", "testdata"}, "benchmarks.md", cli.ExitFailed},
		{[]string{"run", "proxy", "--binary", "/none"}, "make build makes ./ropeline", cli.ExitFailed},
		{[]string{"rum", "proxy"}, `did you mean "run"?`, cli.ExitUsage},
	} {
		root := newRootCommand()
		root.SetArgs(c.args)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != c.code {
			t.Errorf("%v: got %v, want %s and exit code %d", c.args, err, c.want, c.code)
		}
	}
}

// TestListFitsAScreen of 40 lines, and has all.
func TestListFitsAScreen(t *testing.T) {
	list := func(names ...string) string {
		var out strings.Builder
		root := newRootCommand()
		root.SetArgs(append([]string{"list"}, names...))
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	all := list()
	if n := strings.Count(all, "\n"); n > 40 {
		t.Errorf("it has %d lines", n)
	}
	for _, e := range registry() {
		if !strings.Contains(all, "| "+e.Name+" ") || !strings.Contains(all, e.Question) {
			t.Errorf("the list has no %s", e.Name)
		}
		one := list(e.Name)
		for _, want := range []string{e.Method, "--quick are " + strings.Join(e.Quick, ",")} {
			if !strings.Contains(one, want) {
				t.Errorf("list %s has no %q:\n%s", e.Name, want, one)
			}
		}
	}
}

// TestEveryMeasurementIsWhole holds entries to what they have to have, and pages to the places of their tables.
func TestEveryMeasurementIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range registry() {
		if e.Question == "" || e.Method == "" || len(e.Units) == 0 || seen[e.Name] {
			t.Errorf("%s is not fully described, or twice", e.Name)
		}
		seen[e.Name] = true
		for _, b := range e.Bounds {
			if !slices.ContainsFunc(e.Units, func(u measurement.Unit) bool { return u.Name == b.Unit }) || b.Least == 0 && b.Most == 0 {
				t.Errorf("%s: the bound of %s is in %q, which is none of its units, or allows everything", e.Name, b.Row, b.Unit)
			}
		}
		options, _ := e.Options()
		if err := e.Set(options, e.Quick...); err != nil {
			t.Errorf("the short run: %v", err)
		}
		if e.Page != "" {
			if err := e.HasPlace("../../docs"); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestShortRunsBegin has each short run begin and be stopped: its options are those that it takes.
func TestShortRunsBegin(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range registry() {
		options, run := e.Options()
		if err := e.Set(options, e.Quick...); err != nil {
			t.Fatal(err)
		}
		r := &measurement.Run{Self: self, Binary: self, Caddy: self, Quick: true, Out: io.Discard, Log: io.Discard}
		r.Begin(&e, io.Discard)
		if err := run(stopped, r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that it was stopped", e.Name, err)
		}
	}
}
