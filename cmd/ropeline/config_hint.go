package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// unknownKey names what is allowed, the likeliest first.
func unknownKey(key string, fs *pflag.FlagSet, more lists) error {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	names = slices.AppendSeq(names, maps.Keys(more))
	slices.Sort(names)
	best := slices.MinFunc(names, func(a, b string) int {
		return cmp.Compare(editDistance(key, a), editDistance(key, b))
	})
	hint := ""
	if editDistance(key, best) <= 1+len(key)/3 || strings.HasPrefix(best, key) {
		hint = fmt.Sprintf("; did you mean %q?", best)
	}
	return fmt.Errorf("unknown key%s Allowed are %s", cmp.Or(hint, "."), strings.Join(names, ", "))
}

// editDistance is Levenshtein's: the fewest letters to insert, delete or change.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
