package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/cmd/cli"
	"github.com/ropeline/ropeline/node/room"
)

var update = flag.Bool("update", false, "write the files of testdata")

// golden compares what is printed with a file that people have read.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant %s; -update writes it", got, path)
	}
}

// sample is a result in which every part has a value of its own. What a mesh
// really comes to changes with its rules; how it is told should not.
func sample() (*sim.Result, simulateOptions) {
	r := &sim.Result{
		Seed: 7, Sites: 5, Nodes: 3, Policy: "curve", Method: "fifo",
		Figures: sim.Figures{
			OvershootPct: 1.25, OvershootRatePct: 3.5, EarlyQueuedPct: 0.75, IdlePct: 2.125,
			WaitP50: 12.34, WaitP90: 71, WaitP99: 3725, WaitMax: 4000, OrderError: 0.0123, EstimateP50: 0.5, EstimateP90: 2,
			Near: sim.Traffic{Messages: 20.5, Bytes: 1400}, Far: sim.Traffic{Messages: 1.5, Bytes: 260},
			NearWorst: sim.Traffic{Messages: 30, Bytes: 1600}, FarWorst: sim.Traffic{Messages: 3, Bytes: 530},
			Visitors: 1000, LetIn: 900, Queued: 500, GaveUp: 80, WaitingAtEnd: 20, Requests: 20_000, Refused: 15_000,
			PeakActive: 810, PeakWaiting: 300, PeakMinute: 414, Ended: 4100,
		},
		Violations: []sim.Violation{{Kind: sim.NeverLetIn, At: 4100, Text: "20 visitors wait"}, {Kind: sim.CountsRemain, At: 4000, Node: "1.2", Text: "counts 1 active"}},
		Series:     []sim.Point{{At: 10, Arrivals: 5, Active: 4, Seen: 3, Waiting: 2, SeenWait: 1, Limit: 800, Minute: 6, PerMin: 400, BySite: []int{1, 3}}},
		Waits:      sim.Waits{Step: 30, R2: 0.81, Correlation: 0.9, Slope: 2, Within: 11.5, Rows: []sim.WaitRow{{Visitors: 3, Mean: 20, Spread: 10, Counts: []int{2, 1}}}},
		Faults:     []sim.Fault{{Kind: sim.Partition, Site: 2, From: time.Minute, For: 12 * time.Minute}},
		Speed:      &sim.Speed{Wall: 1.5, Virtual: 4200, Events: 300_000, Visitors: 667, EventsPS: 200_000},
	}
	o := simulateOptions{command: "ropeline-bench simulate --arrivals flash --seed 7"}
	o.cfg.Room = room.Settings{TotalActiveUsers: 800, NewUsersPerMinute: 400}
	return r, o
}

func TestSimulateOutput(t *testing.T) {
	r, o := sample()
	var table, object bytes.Buffer
	if err := o.tell(r, &table); err != nil {
		t.Fatal(err)
	}
	golden(t, "simulate.txt", table.Bytes())
	o.json = true
	if err := o.tell(r, &object); err != nil {
		t.Fatal(err)
	}
	golden(t, "simulate.json", object.Bytes())
	if r.Speed == nil {
		t.Error("printing changed the result")
	}
}

func TestSimulateJudges(t *testing.T) {
	r, o := sample()
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
