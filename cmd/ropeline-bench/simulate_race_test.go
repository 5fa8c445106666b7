package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
	"github.com/ropeline/ropeline/bench/sim/input"
	"github.com/ropeline/ropeline/node/room"
)

// TestRunsShareNothing runs a simulation twice at once. All other tests of simulations have one goroutine;
// make test has the race detector look at this one.
func TestRunsShareNothing(t *testing.T) {
	arrivals, err := input.ParseShape("uniform:60/1m")
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{
		Seed: 1, Sites: 2, Nodes: 2,
		Room: room.Settings{
			TotalActiveUsers: 60, NewUsersPerMinute: 300, SessionDuration: 30 * time.Second,
			RefreshInterval: 10 * time.Second,
		},
		Arrivals: arrivals,
		Stay:     20 * time.Second, Think: 8 * time.Second,
		Network: sim.Network{Jitter: 0.3, Loss: 0.05, Duplicate: 0.02, Reorder: 0.05},
		Roam:    0.1, Abandon: 0.2, Lost: 0.02,
		Faults: []sim.Fault{
			{Kind: sim.Crash, Site: 1, Node: 1, From: 20 * time.Second, For: 10 * time.Second},
			{Kind: sim.Partition, Site: 2, From: 40 * time.Second, For: 10 * time.Second},
		},
	}
	var results []*sim.Result
	err = sim.RunAll(t.Context(), 2, slices.Values([]sim.Config{cfg, cfg}), func(_ sim.Config, r *sim.Result) bool {
		if len(r.Violations) > 0 || r.LetIn == 0 {
			t.Errorf("%d were let in; %v", r.LetIn, r.Violations)
		}
		results = append(results, r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || !reflect.DeepEqual(results[0], results[1]) {
		t.Errorf("%d results of one seed differ: %+v", len(results), results)
	}
}
