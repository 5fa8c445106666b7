// Package nearest finds the name that was meant by one that is not known.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Name returns the one of known that name was probably meant for, and whether
// there is one: a third of its letters may be wrong, or letters be missing at its
// end. Of several that are equally near it is the first.
func Name(name string, known []string) (string, bool) {
	longest := 0
	for _, k := range known {
		longest = max(longest, len(k))
	}
	if len(known) == 0 || len(name)-longest > wrongMax(name) {
		return "", false // whatever its letters are, and it may have a million
	}
	best := slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(editDistance(name, a), editDistance(name, b))
	})
	return best, editDistance(name, best) <= wrongMax(name) || name != "" && strings.HasPrefix(best, name)
}

// wrongMax is how many letters of a name may be wrong.
func wrongMax(name string) int { return 1 + len(name)/3 }

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
