package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/small"
	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/schedules"
	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/node/ticket"
)

// runOf returns a run of an entry, the results of which it writes to file.
func runOf(t *testing.T, name string, file io.Writer) *measurement.Run {
	t.Helper()
	i := slices.IndexFunc(registry(), func(e measurement.Entry) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("there is no measurement %s", name)
	}
	r := &measurement.Run{Out: io.Discard, Log: io.Discard}
	r.Begin(&registry()[i], file)
	return r
}

// TestStoriesThatFailAreCounted leaves a rule out that two stories go by, one of which shows it.
func TestStoriesThatFailAreCounted(t *testing.T) {
	single.Goroutine(t)
	var file strings.Builder
	r := runOf(t, "stories", &file)
	if err := judgeStories(t.Context(), schedules.Set{N: 1, Seed: 3, Workers: 1, LeaveOut: ticket.FreshMint}, r); err == nil {
		t.Error("a broken promise is no error")
	}
	for _, want := range []string{"story=recoverer_leaves 1 ", "story=leaves 1 "} {
		_, after, _ := strings.Cut(file.String(), want)
		row, _, _ := strings.Cut(after, "\n")
		if failed := strings.HasSuffix(row, " 1 failed"); failed != strings.Contains(want, "recoverer") {
			t.Errorf("%s: got %q", want, row)
		}
	}
	if missed, err := r.End(t.Context()); missed != 1 || err != nil {
		t.Errorf("%d bounds are missed, %v; want one", missed, err)
	}
	if !strings.Contains(file.String(), " broken-in-all") || strings.Contains(file.String(), " 0 broken-in-all") {
		t.Errorf("in all: %s", file.String())
	}
}

func TestBoundsOfPromisesAreJudged(t *testing.T) {
	single.Goroutine(t)
	for _, c := range []struct{ line, want string }{
		{"run schedules --set n=2,seed=3", "held: what did not hold: 0"},
		{"run knock-out --set n=1,seed=1", "missed: schedules notice that lease-guard is left out"},
		{"run explore-bootstrap --set states=200", "missed: worlds of which not all states were looked at"},
	} {
		out, err := commanded(t, strings.Fields(c.line)...)
		if !strings.Contains(out, c.want) || (err != nil) != strings.HasPrefix(c.want, "missed") {
			t.Errorf("%s: got %v, want %q in\n%s", c.line, err, c.want, out)
		}
	}
}

// TestWorldsAreRows puts those that differ in ids alone into one row, and others not.
func TestWorldsAreRows(t *testing.T) {
	single.Goroutine(t)
	var file strings.Builder
	for name, exhausted := range map[string]func(*measurement.Run) bool{
		"explore-ledgers":   func(r *measurement.Run) bool { return exhaust(t.Context(), small.Worlds(0), 50, r, ledgersRow) },
		"explore-bootstrap": func(r *measurement.Run) bool { return exhaust(t.Context(), boot.Worlds(), 50, r, bootstrapRow) },
	} {
		if exhausted(runOf(t, name, &file)) {
			t.Errorf("%s: a promise is broken", name)
		}
	}
	rows := map[string]int{}
	for line := range strings.Lines(file.String()) {
		if name, _, ok := strings.Cut(line, " 1 "); ok && strings.Contains(line, " 1 cut-off") {
			rows[name]++
		}
	}
	if len(rows) != 26 || rows["BenchmarkExploreLedgers/nodes=2/ticks=at_any_time/budget=1_limit,_1_leave,_1_crowd"] != 2 ||
		rows["BenchmarkExploreBootstrap/named=3/joins=–/restarts=0/lost=1"] != 12 || !strings.Contains(file.String(), " 41 cut-off-in-all") {
		t.Errorf("got %d rows: %v", len(rows), rows)
	}
}

// TestWhatASearchFindsIsTold with what leads to it.
func TestWhatASearchFindsIsTold(t *testing.T) {
	var out strings.Builder
	r := runOf(t, "explore-ledgers", io.Discard)
	r.Out = &out
	if !exhaust(t.Context(), small.Worlds(ticket.FreshMint), maxStates, r, ledgersRow) {
		t.Fatal("nothing is found")
	}
	if err := endSearch(r, true); err == nil {
		t.Error("what is found is no error")
	}
	if missed, err := r.End(t.Context()); missed == 0 || err != nil {
		t.Errorf("%d bounds are missed, %v", missed, err)
	}
	for _, want := range []string{"no limit was ever more than", "leave to node"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}
