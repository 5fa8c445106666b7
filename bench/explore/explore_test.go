package explore

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/explore/boot"
	"github.com/ropeline/ropeline/bench/explore/breadth"
	"github.com/ropeline/ropeline/bench/explore/replay"
	"github.com/ropeline/ropeline/bench/explore/small"
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
	var text strings.Builder
	found := Exhaust(t.Context(), small.Worlds(ticket.FreshMint), 1_000_000, func(_ small.Config, r breadth.Result) {
		text.WriteString(r.Broken + strings.Join(r.Trace, ", "))
	})
	if !found || !strings.Contains(text.String(), "no limit was ever more than") || !strings.Contains(text.String(), "leave to node") {
		t.Errorf("got %v, want true, and how the limit is broken: %s", found, text.String())
	}
}

// TestBootstrapIsSearched goes through it up to a bound.
func TestBootstrapIsSearched(t *testing.T) {
	cut, all := 0, boot.Worlds()
	var seen []boot.Config
	found := Exhaust(t.Context(), all, 200, func(c boot.Config, r breadth.Result) {
		seen = append(seen, c)
		if !r.Whole {
			cut++
		}
	})
	if found || len(seen) != len(all) || !slices.Contains(seen, all[len(all)-1]) || cut != len(all) {
		t.Errorf("got %v of %d worlds, %d up to the bound; want false of %d", found, len(seen), cut, len(all))
	}
}

// TestWholeNodesAreSearched until a history breaks a promise, which is as short as it can be and breaks it again.
func TestWholeNodesAreSearched(t *testing.T) {
	var parts []Part
	broken, err := Nodes(t.Context(), replay.Search{Seed: 1, LeaveOut: ticket.RestartBlock}, time.Hour, func(p Part) { parts = append(parts, p) })
	if err != nil || broken == nil || len(broken.Steps) != 1 || len(parts) != 1 {
		t.Fatalf("got %v, %v, %+v", broken, err, parts)
	}
	if p := parts[0]; p.Runs == 0 || p.Of < p.Runs || p.Took <= 0 {
		t.Errorf("the first part is %+v", p)
	}
	if again, err := Rerun(*broken, ticket.RestartBlock, io.Discard); !again || err != nil {
		t.Errorf("again: %v, %v", again, err)
	}
}
