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

// knockOut leaves out each rule in turn and prints how many schedules notice, as a
// table in Markdown. What a rule is for that none misses, TestRulesAreNeeded and
// TestRulesInShort of node/ticket have to show, which fail if they do not.
func knockOut(ctx context.Context, o options, out, errOut io.Writer) int {
	fmt.Fprintf(out, "| rule left out | schedules | caught | by | first seed |\n|---|--:|--:|---|--:|\n")
	missed := 0
	for _, name := range ticket.RuleNames() {
		rule, err := ticket.ParseRules(name)
		if err != nil {
			panic(err)
		}
		start, total, first := time.Now(), newTally(), uint64(0)
		err = runAll(ctx, o, rule, nil, func(done outcome) bool {
			total.add(done)
			if len(done.result.Violations) > 0 && (first == 0 || done.cfg.Seed < first) {
				first = done.cfg.Seed
			}
			return true
		})
		if err != nil {
			fmt.Fprintf(errOut, "schedules: without %s: %v\n", name, err)
			return 1
		}
		if total.failed == 0 {
			missed++
		}
		fmt.Fprintf(out, "| `%s` | %d | %.2f %% | %s | %d |\n", name, total.runs,
			100*float64(total.failed)/float64(max(1, total.runs)), strings.Join(byCount(total.kinds), ", "), first)
		fmt.Fprintf(errOut, "%s: %v\n", name, time.Since(start).Round(time.Second))
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
