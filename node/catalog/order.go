package catalog

import (
	"cmp"
	"slices"
	"time"
)

// Where things are in an ordered list each says for itself, by a number that is only compared:
// who adds one, or moves one, says nothing about the others, so that two who move two of them
// at once have moved both.

const unitRank = "rank"

// rankStep is the distance of two that were put next to each other. A new one at the end is one
// step behind the last.
const rankStep = 1 << 32

// inOrder puts things in the order that they have in their list.
func inOrder[T any](all []T, at func(*T) *thing, created func(*T) time.Time, key func(*T) string) {
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(at(&a).rank, at(&b).rank), created(&a).Compare(created(&b)), cmp.Compare(key(&a), key(&b)))
	})
}

// ranked returns a copy of things that have the order of their list. Of those that were there
// before as many as can be keep their rank.
func ranked[T any](was, is []T, at func(*T) *thing, key func(*T) string) []T {
	before := make(map[string]int, len(was)) // places, not ranks: two who each added one at once gave both the same
	for i := range was {
		before[key(&was[i])] = i
	}
	out := slices.Clone(is)
	kept := make([]bool, len(is))
	for _, i := range rising(out, func(t *T) (int, bool) { place, ok := before[key(t)]; return place, ok }) {
		kept[i], at(&out[i]).rank = true, at(&was[before[key(&out[i])]]).rank
	}
	for i := 0; i < len(out); i++ {
		if kept[i] {
			continue
		}
		lo := int64(0)
		if i > 0 {
			lo = at(&out[i-1]).rank
		}
		n := 1 // how many get a rank between this one's neighbours
		for i+n < len(out) && (!kept[i+n] || at(&out[i+n]).rank-lo <= int64(n)) {
			n++
		}
		step := int64(rankStep)
		if i+n < len(out) {
			step = (at(&out[i+n]).rank - lo) / int64(n+1)
		}
		for j := range n {
			at(&out[i+j]).rank = lo + step*int64(j+1)
		}
		i += n - 1
	}
	return out
}

// rising returns the places of as many as possible that only grow by what was says of each; false: nothing.
func rising[T any](all []T, was func(*T) (int, bool)) []int {
	type run struct {
		was        int
		at, before int // before: in runs; -1: it is the first
		long       int
	}
	var runs []run
	best := -1
	for i := range all {
		r, ok := was(&all[i])
		if !ok {
			continue
		}
		next := run{r, i, -1, 1}
		for j, o := range runs {
			if o.was < r && o.long >= next.long {
				next.before, next.long = j, o.long+1
			}
		}
		runs = append(runs, next)
		if best < 0 || next.long > runs[best].long {
			best = len(runs) - 1
		}
	}
	var places []int
	for ; best >= 0; best = runs[best].before {
		places = append(places, runs[best].at)
	}
	slices.Reverse(places)
	return places
}
