package explore

import (
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/node/ticket"
)

// TestFindingCanBeReplayed: a history is told as it happens, and whether it breaks a promise.
func TestFindingCanBeReplayed(t *testing.T) {
	history, err := replay.Parse("aab/123: raise@2, leave@1 | lost facts 1>2 #1")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if broken, err := Rerun(history, ticket.FreshMint, &out); err != nil || !broken || !strings.Contains(out.String(), "BROKEN") || !strings.Contains(out.String(), "raise@2") {
		t.Errorf("got %v, %v; want that it is broken, and what happened: %s", broken, err, out.String())
	}
	out.Reset()
	if broken, err := Rerun(history, 0, &out); err != nil || broken || !strings.Contains(out.String(), "no promise was broken; 12 were inside at most") {
		t.Errorf("got %v, %v; want that all is well: %s", broken, err, out.String())
	}
}

// TestLeftOutRuleIsFound searches ledgers until it has found what the successor of a minter would do.
func TestLeftOutRuleIsFound(t *testing.T) {
	var out strings.Builder
	found := Ledgers(t.Context(), ticket.FreshMint, 1_000_000, &out)
	if !found || !strings.Contains(out.String(), "no limit was ever more than") || !strings.Contains(out.String(), "leave to node") {
		t.Errorf("got %v, want true, and how the limit is broken: %s", found, out.String())
	}
}

// TestBootstrapIsSearched goes through it up to a bound.
func TestBootstrapIsSearched(t *testing.T) {
	var out strings.Builder
	found := Bootstrap(t.Context(), 200, &out)
	if found || !strings.Contains(out.String(), "| {Named:3 Joins:false Order:321 Falling:true Restarts:0 Losses:2} | 2") || !strings.Contains(out.String(), "| false |") {
		t.Errorf("got %v, want false, and a row of each world: %s", found, out.String())
	}
}
