package sim

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// TestRunsShareNothing runs a simulation twice at once. make test has the race detector look at it.
func TestRunsShareNothing(t *testing.T) {
	cfg := small(60, time.Minute)
	cfg.Stay, cfg.Room.SessionDuration = 20*time.Second, 30*time.Second
	cfg.Network = Network{Jitter: 0.3, Loss: 0.05, Duplicate: 0.02, Reorder: 0.05}
	cfg.Roam, cfg.Abandon, cfg.Lost = 0.1, 0.2, 0.02
	cfg.Faults = []Fault{
		{Kind: Crash, Site: 1, Node: 1, From: 20 * time.Second, For: 10 * time.Second},
		{Kind: Partition, Site: 2, From: 40 * time.Second, For: 10 * time.Second},
	}
	var results [][]byte
	err := RunAll(t.Context(), 2, slices.Values([]Config{cfg, cfg}), func(_ Config, r *Result) bool {
		if len(r.Violations) > 0 || r.LetIn == 0 {
			t.Errorf("%d were let in; %v", r.LetIn, r.Violations)
		}
		results = append(results, bytesOf(t, r))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || !bytes.Equal(results[0], results[1]) {
		t.Errorf("%d results of one seed differ:\n%s", len(results), bytes.Join(results, []byte("\n")))
	}
}
