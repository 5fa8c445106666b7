package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/cmd/cli"
)

func TestSimulateJudges(t *testing.T) {
	r := &sim.Result{Violations: []sim.Violation{{Kind: sim.NeverLetIn, At: 4100, Text: "20 visitors wait"}, {Kind: sim.CountsRemain, At: 4000, Node: "1.2", Text: "counts 1 active"}}}
	o := simulateOptions{command: "ropeline-bench simulate --arrivals flash --seed 7"}
	var told bytes.Buffer
	err := o.judge(r, &told)
	if err == nil || !strings.Contains(err.Error(), "2 promises were broken") || !strings.Contains(err.Error(), o.command) {
		t.Errorf("got %v, want two broken promises and how to see them again", err)
	}
	if _, usage := errors.AsType[cli.UsageError](err); usage {
		t.Error("broken promises are no mistake in the command line")
	}
	for _, v := range r.Violations {
		if !strings.Contains(told.String(), v.String()+"\n") {
			t.Errorf("got %q, want %q among it", told.String(), v)
		}
	}
	for range 2 * mostViolations {
		r.Violations = append(r.Violations, r.Violations[0])
	}
	told.Reset()
	if err := o.judge(r, &told); err == nil || strings.Count(told.String(), "\n") != mostViolations+1 || !strings.Contains(told.String(), "… and 12 more") {
		t.Errorf("got %v and %q, want %d lines and how many more", err, told.String(), mostViolations)
	}
	told.Reset()
	r.Violations = nil
	if err := o.judge(r, &told); err != nil || told.Len() != 0 {
		t.Errorf("got %v and %q of a run that kept its promises", err, told.String())
	}
}
