package main

import (
	"strings"
	"testing"
)

func explored(args ...string) (code int, out, errOut string) {
	var o, e strings.Builder
	code = command(args, &o, &e)
	return code, o.String(), e.String()
}

// TestFindingCanBeReplayed: what is found is printed with the flags that run it again.
func TestFindingCanBeReplayed(t *testing.T) {
	const history = "aab/123: raise@2, leave@1 | lost facts 1>2 #1"
	code, out, _ := explored("-leave-out", "fresh-mint", "-replay", history)
	if code != 1 || !strings.Contains(out, "BROKEN") || !strings.Contains(out, "raise@2") {
		t.Errorf("exit code %d, want 1, and what happened: %s", code, out)
	}
	code, out, _ = explored("-replay", history)
	if code != 0 || !strings.Contains(out, "no promise was broken; 12 were inside at most") {
		t.Errorf("exit code %d, want 0, and that all is well: %s", code, out)
	}
}

// TestLeftOutRuleIsFound runs the search of ledgers as the program does, until it has found
// what the successor of a minter would do.
func TestLeftOutRuleIsFound(t *testing.T) {
	code, out, errOut := explored("-leave-out", "fresh-mint", "-only", "ledgers")
	if code != 1 || !strings.Contains(out, "no limit was ever more than") || !strings.Contains(out, "leave to node") {
		t.Errorf("exit code %d, want 1, and how the limit is broken: %s%s", code, out, errOut)
	}
}

// TestBootstrapIsSearched runs that search as the program does, up to a bound.
func TestBootstrapIsSearched(t *testing.T) {
	code, out, errOut := explored("-only", "bootstrap", "-states", "200")
	if code != 0 || !strings.Contains(out, "| {Named:3 Joins:false Order:321 Falling:true Restarts:0 Losses:2} | 2") || !strings.Contains(out, "| false |") {
		t.Errorf("exit code %d, want 0, and a row of each world: %s%s", code, out, errOut)
	}
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	for _, args := range [][]string{{"-leave-out", "gravity"}, {"-replay", "abc"}, {"more"}, {"-only", "rows"}} {
		if code, out, errOut := explored(args...); code != 2 || errOut == "" || out != "" {
			t.Errorf("%v: exit code %d, %q and %q; want 2 and an error", args, code, out, errOut)
		}
	}
}
