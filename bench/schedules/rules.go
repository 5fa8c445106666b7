package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// rule is a rule that can be left out, as flags name it.
type rule struct {
	name string
	bit  ticket.Rules
}

// rules are all of them.
func rules() []rule {
	return []rule{
		{"lease-guard", ticket.LeaseGuard},
		{"restart-block", ticket.RestartBlock},
		{"give-before-send", ticket.GiveBeforeSend},
		{"bound-before-use", ticket.BoundBeforeUse},
		{"open-block-only", ticket.OpenBlockOnly},
		{"count-until-block-ends", ticket.CountUntilBlockEnds},
		{"recovery-lock", ticket.RecoveryLock},
		{"final-ledgers", ticket.FinalLedgers},
		{"one-minter", ticket.OneMinter},
		{"rate-cools", ticket.RateCools},
		{"restart-cools", ticket.RestartCools},
		{"loan-kept", ticket.LoanKept},
		{"born-once", ticket.BornOnce},
		{"receive-before-use", ticket.ReceiveBeforeUse},
		{"fence", ticket.Fence},
		{"pause-check", ticket.PauseCheck},
		{"fresh-mint", ticket.FreshMint},
	}
}

func ruleNames() string {
	var names []string
	for _, r := range rules() {
		names = append(names, r.name)
	}
	return strings.Join(names, ", ")
}

func parseRules(text string) (bits ticket.Rules, err error) {
	if text == "" {
		return 0, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(rules(), func(r rule) bool { return r.name == name })
		if i < 0 {
			return 0, fmt.Errorf("there is no rule %q; there are %s", name, ruleNames())
		}
		bits |= rules()[i].bit
	}
	return bits, nil
}

// leftOutFlag returns the flag that leaves these rules out.
func leftOutFlag(bits ticket.Rules) string {
	var names []string
	for _, r := range rules() {
		if bits&r.bit != 0 {
			names = append(names, r.name)
		}
	}
	if names == nil {
		return ""
	}
	return " -leave-out " + strings.Join(names, ",")
}

// knockOut leaves out each rule in turn and prints how many schedules notice, as a
// table in Markdown. What a rule is for that none misses, TestRulesAreNeeded and
// TestRulesInShort of node/ticket have to show, which fail if they do not.
func knockOut(ctx context.Context, o options, out, errOut io.Writer) int {
	fmt.Fprintf(out, "| rule left out | schedules | caught | by | first seed |\n|---|--:|--:|---|--:|\n")
	missed := 0
	for _, r := range rules() {
		start, total, first := time.Now(), newTally(), uint64(0)
		err := runAll(ctx, o, r.bit, nil, func(done outcome) bool {
			total.add(done)
			if len(done.result.Violations) > 0 && (first == 0 || done.cfg.Seed < first) {
				first = done.cfg.Seed
			}
			return true
		})
		if err != nil {
			fmt.Fprintf(errOut, "schedules: without %s: %v\n", r.name, err)
			return 1
		}
		if total.failed == 0 {
			missed++
		}
		fmt.Fprintf(out, "| `%s` | %d | %.2f %% | %s | %d |\n", r.name, total.runs,
			100*float64(total.failed)/float64(max(1, total.runs)), strings.Join(byCount(total.kinds), ", "), first)
		fmt.Fprintf(errOut, "%s: %v\n", r.name, time.Since(start).Round(time.Second))
	}
	if missed > 0 {
		fmt.Fprintf(errOut, "schedules: %d rules were left out and no schedule noticed; go test -run Rules ./node/ticket shows what those are for\n", missed)
	}
	return 0
}

// byCount returns keys, those with the largest count first.
func byCount(counts map[string]int) []string {
	keys := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(keys, func(a, b string) int { return counts[b] - counts[a] })
	for i, k := range keys {
		keys[i] = fmt.Sprintf("`%s` (%d)", k, counts[k])
	}
	return keys
}
