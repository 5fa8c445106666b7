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

// methodCommands returns the arguments of the command lines in the documentation
// that compare the methods, by method.
func methodCommands(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "ropeline-bench simulate ")
		if before, after, is := strings.Cut(args, "--method "); ok && is && strings.Contains(args, "--total-active-users 65 ") {
			method, rest, _ := strings.Cut(after, " ")
			commands[method] = strings.Fields("simulate " + before + "--method " + method + " " + rest)
		}
	}
	return commands
}

// The waits show what the methods promise: with fifo, the wait follows from the time
// of arrival; with random it does not. The runs are the documented ones, and give what
// the page says, by the binary that is built: the race detector would make minutes of
// them, and one goroutine has no races.
func TestWaitsShowWhatMethodsDo(t *testing.T) {
	if testing.Short() {
		t.Skip("two runs of some 10 s each")
	}
	single.Goroutine(t)
	commands := methodCommands(t)
	binary, err := rig.Built(t.Context(), rig.Bench)
	if err != nil {
		t.Fatal(err)
	}
	for method, check := range map[string]func(*testing.T, simulated){
		"fifo": func(t *testing.T, r simulated) {
			if r.WaitR2 <= 0.95 {
				t.Errorf("arrivals explain %v of the waits' variance, want more than 0.95", r.WaitR2)
			}
			// All waits of the run spread over hours, those of one minute do not.
			if spread := r.WaitP90 - r.WaitP50; r.WaitSpread > spread/20 {
				t.Errorf("waits inside a minute deviate by %v s, where half and nine tenths lie %v s apart", r.WaitSpread, spread)
			}
		},
		"random": func(t *testing.T, r simulated) {
			if c := r.WaitCorrelation; c <= -0.1 || c >= 0.1 {
				t.Errorf("waits and arrivals correlate by %v, want less than 0.1", c)
			}
		},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			if commands[method] == nil {
				t.Fatal("docs/simulator.md has no command line for it")
			}
			out, err := exec.CommandContext(t.Context(), binary, commands[method]...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var r simulated
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatal(err)
			}
			if r.LetIn != 10_000 || r.Visitors != 10_000 || r.Queued < 9_000 {
				t.Errorf("%d of %d were let in, %d after a wait; want all of 10000, most of them after one", r.LetIn, r.Visitors, r.Queued)
			}
			check(t, r)
			t.Logf("R² %v, correlation %v, inside a minute %v s", r.WaitR2, r.WaitCorrelation, r.WaitSpread)
		})
	}
}
