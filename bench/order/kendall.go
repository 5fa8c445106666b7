// Package order compares the order in which visitors came with the one in which
// they were let in.
package order

import (
	"cmp"
	"slices"
)

// Rank is one visitor's time in two orders that are compared.
type Rank struct{ First, Second int64 }

// Error returns the normalized Kendall tau distance between the two orders:
// the share of all pairs that stand in opposite order, 0 when the orders agree,
// 1 when one is the reverse of the other. A pair that is equal in either order
// does not stand in opposite order. Less than two visitors have no order: 0.
//
// It sorts ranks, and takes O(n log n).
func Error(ranks []Rank) float64 {
	n := len(ranks)
	if n < 2 {
		return 0
	}
	// Those equal in the first order are put in the second one's order, so
	// that they hold no inversion among themselves.
	slices.SortFunc(ranks, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second))
	})
	values := make([]int64, n)
	for i, r := range ranks {
		values[i] = r.Second
	}
	pairs := float64(n) * float64(n-1) / 2
	return float64(inversions(values, make([]int64, n))) / pairs
}

// inversions sorts v and returns how many pairs stood in falling order.
// scratch must be as long as v.
func inversions(v, scratch []int64) uint64 {
	if len(v) < 2 {
		return 0
	}
	half := len(v) / 2
	left, right := v[:half], v[half:]
	count := inversions(left, scratch[:half]) + inversions(right, scratch[half:])

	merged := scratch[:0]
	for len(left) > 0 && len(right) > 0 {
		if left[0] <= right[0] {
			merged, left = append(merged, left[0]), left[1:]
			continue
		}
		// All that is left of the left half is larger than this one.
		count += uint64(len(left))
		merged, right = append(merged, right[0]), right[1:]
	}
	merged = append(append(merged, left...), right...)
	copy(v, merged)
	return count
}
