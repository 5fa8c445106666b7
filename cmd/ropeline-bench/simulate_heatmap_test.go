package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/tiers/single"
)

// heatMapCommands returns the arguments of the command lines in the documentation
// that draw the heat maps, by method, without those that say where to.
func heatMapCommands(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " --plot docs/img")
		if args, is := strings.CutPrefix(before, "ropeline-bench "); ok && is {
			words := strings.Fields(args + after)
			for i, word := range words {
				if word == "--method" {
					commands[words[i+1]] = words
				}
			}
		}
	}
	return commands
}

// The heat maps of the documentation show what the methods promise: with fifo,
// the wait follows from the time of arrival; with random it does not. The runs
// are the documented ones, by the binary that is shipped: the race detector would
// make minutes of them, and one goroutine has no races.
func TestHeatMapsShowWhatMethodsDo(t *testing.T) {
	if testing.Short() {
		t.Skip("two runs of some 10 s each")
	}
	single.Goroutine(t)
	commands := heatMapCommands(t)
	binary, err := rig.Built(t.Context(), rig.Bench)
	if err != nil {
		t.Fatal(err)
	}
	for method, check := range map[string]func(*testing.T, told){
		"fifo": func(t *testing.T, r told) {
			if r.Waits.R2 <= 0.95 {
				t.Errorf("arrivals explain %v of the waits' variance, want more than 0.95", r.Waits.R2)
			}
			// All waits of the run spread over hours, those of one minute do not.
			if spread := r.WaitP90 - r.WaitP50; r.Waits.Within > spread/20 {
				t.Errorf("waits inside a minute deviate by %v s, where half and nine tenths lie %v s apart", r.Waits.Within, spread)
			}
		},
		"random": func(t *testing.T, r told) {
			if c := r.Waits.Correlation; c <= -0.1 || c >= 0.1 {
				t.Errorf("waits and arrivals correlate by %v, want less than 0.1", c)
			}
		},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			if commands[method] == nil {
				t.Fatal("docs/simulator.md has no command line for it")
			}
			out, err := exec.CommandContext(t.Context(), binary, append(commands[method], "--json")...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var r told
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.LetIn != 10_000 || r.Visitors != 10_000 || r.Queued < 9_000 {
				t.Errorf("%d of %d were let in, %d after a wait; want all of 10000, most of them after one", r.LetIn, r.Visitors, r.Queued)
			}
			check(t, r)
			t.Logf("R² %v, correlation %v, inside a minute %v s", r.Waits.R2, r.Waits.Correlation, r.Waits.Within)
		})
	}
}
