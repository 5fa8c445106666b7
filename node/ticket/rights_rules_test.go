package ticket

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// leftOut is a rule, and the world in which its absence shows soonest.
type leftOut struct {
	rule  Rules
	name  string
	world worldOptions
}

func rulesLeftOut() []leftOut {
	return []leftOut{
		{LeaseGuard, "lease guard", worldOptions{}},
		{RestartBlock, "restart block", worldOptions{}},
		{OpenBlockOnly, "open block only", worldOptions{Open: true}},
		{RecoveryLock, "recovery lock", worldOptions{Lose: true}},
		{FinalLedgers, "final ledgers", worldOptions{Lose: true, Leave: true}},
		{OneMinter, "one minter", worldOptions{Limits: true}},
		{RateCools, "rate cools", worldOptions{}},
		{FreshMint, "fresh mint", worldOptions{Limits: true, Leave: true, Lose: true, Often: true}},
		{RestartCools, "restart cools", worldOptions{}},
	}
}

// TestRulesAreNeeded leaves out one rule after the other, of those that worlds
// like these need often; TestRulesInShort has the others. Each absence is found.
// It says how often, and what it did.
func TestRulesAreNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("that the rules hold is in TestRightsHold; that each is needed changes seldom, and takes longer")
	}
	limit, batch := 200, 10
	if *rightsRuns > 0 {
		limit, batch = *rightsRuns, *rightsRuns
	}
	for _, x := range rulesLeftOut() {
		t.Run(x.name, func(t *testing.T) {
			opt := x.world
			opt.LeftOut = x.rule
			kinds, runs := map[string]int{}, 0
			for ; runs < limit && len(kinds) == 0; runs += batch {
				runWorlds(opt, 1+runs, batch, func(_ uint64, got truth) {
					if got.wrong() {
						kinds[got.kind()]++
					}
				})
			}
			t.Logf("%s: %s of %d runs", x.name, shares(kinds, runs), runs)
			if len(kinds) == 0 {
				t.Errorf("%d runs of %+v went well without it", runs, opt)
			}
		})
	}
}

func shares(kinds map[string]int, runs int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		out = append(out, fmt.Sprintf("%s in %.1f %%", kind, 100*float64(kinds[kind])/float64(runs)))
	}
	return strings.Join(out, ", ")
}
