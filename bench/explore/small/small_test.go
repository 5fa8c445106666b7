package small

import (
	"slices"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/node/ticket"
)

// TestLimitHoldsInSmallWorlds goes through everything that can happen in worlds that are
// small enough for every run of the tests.
func TestLimitHoldsInSmallWorlds(t *testing.T) {
	for _, c := range []Config{
		{Nodes: 2, Budget: Budget{Limits: 1, Leaves: 1}},
		{Nodes: 2, Minter: 1, Budget: Budget{Losses: 1, Gifts: 1, Crowds: 1}},
		{Nodes: 2, Minter: 1, Budget: Budget{Stops: 1, Gifts: 1}},
		{Nodes: 3, Coarse: true, Budget: Budget{Leaves: 1, Crowds: 1}},
		{Nodes: 3, Coarse: true, Budget: Budget{Leaves: 2}},
		{Nodes: 3, Minter: 2, Coarse: true, Budget: Budget{Losses: 1, Crowds: 1}},
		{Nodes: 3, Coarse: true, Halfway: true, Budget: Budget{Losses: 1, Leaves: 1}},
	} {
		if c.Halfway && testing.Short() {
			continue // TestLostHalfWay has the same of whole nodes
		}
		r := c.Search(t.Context(), 0)
		if r.Broken != "" || !r.Whole {
			t.Errorf("%d nodes, %v: %q after %d states, all of them: %v\n%s", c.Nodes, c.Budget, r.Broken, r.States, r.Whole, strings.Join(r.Trace, "\n"))
		}
		if r.States < 100 {
			t.Errorf("%d nodes, %v: only %d states", c.Nodes, c.Budget, r.States)
		}
	}
}

// TestRulesShow leaves out one rule after the other, and has the search say what then
// happens.
func TestRulesShow(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  ticket.Rules
		nodes int
		Budget
	}{
		{"restart block", ticket.RestartBlock, 2, Budget{Stops: 1, Crowds: 2}},
		{"give before send", ticket.GiveBeforeSend, 2, Budget{Stops: 1, Gifts: 1}},
		{"bound before use", ticket.BoundBeforeUse, 2, Budget{Stops: 1, Gifts: 1, Crowds: 2}},
		{"recovery lock", ticket.RecoveryLock, 2, Budget{Losses: 1, Crowds: 2}},
		{"final ledgers", ticket.FinalLedgers, 3, Budget{Losses: 1, Leaves: 1}},
		{"one minter", ticket.OneMinter, 2, Budget{Limits: 1}}, // not even the first rights are all there
		{"fresh mint", ticket.FreshMint, 2, Budget{Limits: 1, Leaves: 1}},
		{"fresh mint, three nodes", ticket.FreshMint, 3, Budget{Limits: 1, Leaves: 1}},
	} {
		cfg := Config{Nodes: c.nodes, Coarse: c.nodes > 2, Budget: c.Budget, LeaveOut: c.rule}
		if r := cfg.Search(t.Context(), 0); r.Broken == "" {
			t.Errorf("without the rule %s nothing happens in %d states, which are all: %v", c.name, r.States, r.Whole)
		}
	}
}

// TestShortestFirst: the history that is shown of a finding is a shortest one, and the same
// in every run.
func TestShortestFirst(t *testing.T) {
	cfg := Config{Nodes: 2, Coarse: true, Budget: Budget{Limits: 1, Leaves: 1, Crowds: 1}, LeaveOut: ticket.FreshMint}
	first := cfg.Search(t.Context(), 0)
	want := []string{"node 2: limit 3", "node 1: hear of node 2", "node 1: leave to node 2", "node 2: receive hand-over of node 1"}
	if !slices.Equal(first.Trace, want) {
		t.Errorf("got %q, want %q", first.Trace, want)
	}
	if again := cfg.Search(t.Context(), 0); !slices.Equal(again.Trace, first.Trace) || again.States != first.States {
		t.Errorf("got %q in %d states, and then %q in %d", first.Trace, first.States, again.Trace, again.States)
	}
}

// TestBudgetsBound: no history has more of anything than its budget says, and a bound on
// states ends a search that is then not said to be whole.
func TestBudgetsBound(t *testing.T) {
	quiet := Config{Nodes: 2}.Search(t.Context(), 0)
	if quiet.States != 1 || !quiet.Whole {
		t.Errorf("without a budget there are %d states, want 1", quiet.States)
	}
	cut := Config{Nodes: 2, Budget: Budget{Limits: 1, Leaves: 1}}.Search(t.Context(), 100)
	if cut.Whole || cut.States < 100 {
		t.Errorf("%d states, whole: %v; want 100 and not all", cut.States, cut.Whole)
	}
}
