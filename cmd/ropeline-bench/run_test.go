package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/suite"
	"github.com/ropeline/ropeline/cmd/cli"
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
	binary, err := rig.Built(t.Context(), rig.Ropeline)
	if err != nil {
		t.Fatal(err)
	}
	return suite.Config{Binary: binary, Self: self, Rounds: 1, Warm: 20 * time.Millisecond, Lasts: 100 * time.Millisecond, SelfTest: -1, Only: only, Tell: t.Logf}
}

func TestRunNames(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the error
		code int
	}{
		{[]string{"run"}, "the name of a measurement is missing", cli.ExitUsage},
		{[]string{"run", "speed"}, `there is no benchmark "speed"`, cli.ExitUsage},
		{[]string{"run", "proxy", "--all"}, "--all goes without names", cli.ExitUsage},
		{[]string{"run", "--rounds", "0", "proxy"}, "rounds", cli.ExitUsage},
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

func TestListHasAll(t *testing.T) {
	var out strings.Builder
	root := newRootCommand()
	root.SetArgs([]string{"list"})
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
