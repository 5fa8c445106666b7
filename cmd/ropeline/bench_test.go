package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/suite"
)

// TestBenchMeasures runs what needs none of the other servers, for as short as can be: what it is about is that
// all parts find each other.
func TestBenchMeasures(t *testing.T) {
	needBench(t)
	for name, only := range map[string]string{"floor": "fasthttp, 6 bytes", "waiting": "ropeline, JSON, 1,000 waiting"} {
		b, err := suite.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := suite.Run(t.Context(), b, benchConfig(t, only))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rows) != 1 || len(r.Rows[0].Samples) != 1 {
			t.Fatalf("%s: got %+v", name, r.Rows)
		}
		if s := r.Rows[0].Samples[0]; s.Answered == 0 || s.CPU <= 0 || s.Rate <= 0 || s.Bad+s.Failed > 0 {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// needBench skips where nothing can be measured, and has processes that are started be this command.
func needBench(t *testing.T) {
	t.Helper()
	if missing := rig.Missing("taskset"); len(missing) > 0 || len(rate.CPUs()) < 2 {
		t.Skip("this wants taskset and two cores")
	}
	t.Setenv(asCommand, "1")
}

func benchConfig(t *testing.T, only string) suite.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return suite.Config{Binary: self, Rounds: 1, Warm: 20 * time.Millisecond, Lasts: 100 * time.Millisecond, SelfTest: -1, Only: only, Tell: t.Logf}
}

func TestBenchNames(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the error
	}{
		{[]string{"bench"}, "the name of a benchmark is missing"},
		{[]string{"bench", "speed"}, `there is no benchmark "speed"`},
		{[]string{"bench", "proxy", "--all"}, "--all goes without names"},
		{[]string{"bench", "--rounds", "0", "proxy"}, "rounds"},
	} {
		root := newRootCommand()
		root.SetArgs(c.args)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage {
			t.Errorf("%v: got %v, want %s", c.args, err, c.want)
		}
	}
}

func TestBenchListHasAll(t *testing.T) {
	var out strings.Builder
	root := newRootCommand()
	root.SetArgs([]string{"bench", "--list"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range suite.All() {
		if !strings.Contains(out.String(), b.Name) || !strings.Contains(out.String(), b.Question) {
			t.Errorf("the list has no %s", b.Name)
		}
	}
}
