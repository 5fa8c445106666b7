package room

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Slots returns how many visitors may enter right now: what both limits leave,
// never below zero.
func Slots(totalActive, newPerMinute, active, admittedLast60s int64) int {
	free := min(totalActive-active, newPerMinute-admittedLast60s)
	return int(min(max(0, free), math.MaxInt32))
}

// Reserve hands slots to waiting visitors, oldest bucket first: whole buckets,
// then a part of the next. It returns what each bucket gets, and the slots
// beyond all who wait, which belong to new visitors. Negative counts are zero.
func Reserve(slots int, waiting []int) (reserved []int, rest int) {
	reserved = make([]int, len(waiting))
	rest = max(0, slots)
	for i, n := range waiting {
		reserved[i] = min(max(0, n), rest)
		rest -= reserved[i]
	}
	return reserved, rest
}

// Apportion divides total by weight into whole parts that add up to it, by the
// largest remainder; on a tie the earlier one gets it. Negative weights are
// zero. If no weight is above zero, nobody gets anything.
func Apportion(total int, weights []int) []int { return apportion(total, weights, 0) }

// apportion is Apportion with ties going to the first one at or after index
// first, wrapping round.
func apportion(total int, weights []int, first int) []int {
	parts := make([]int, len(weights))
	var sum uint64
	for _, w := range weights {
		sum += uint64(max(0, w))
	}
	if sum == 0 || total <= 0 {
		return parts
	}
	type remainder struct {
		value       uint64
		index, rank int
	}
	left := total
	order := make([]remainder, len(weights))
	for i, w := range weights {
		// 128 bits: a product of two large counts must not wrap.
		hi, lo := bits.Mul64(uint64(total), uint64(max(0, w)))
		quotient, rem := bits.Div64(hi, lo, sum)
		parts[i] = int(quotient)
		left -= parts[i]
		order[i] = remainder{rem, i, (i - first%len(weights) + len(weights)) % len(weights)}
	}
	slices.SortFunc(order, func(a, b remainder) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.rank, b.rank))
	})
	for i := range left { // left < the number of remainders above zero
		parts[order[i].index]++
	}
	return parts
}

// Shares divides slots between sites by their part of past traffic. While the
// traffic stays below limit, a site's part is measured against the limit, and
// what is left belongs to nobody: it is returned as anywhere. The parts and
// anywhere add up to slots.
func Shares(slots, limit int, seen []int) (parts []int, anywhere int) {
	var sum int
	for _, n := range seen {
		sum += max(0, n)
	}
	if sum >= limit {
		parts = Apportion(slots, seen)
	} else {
		parts = make([]int, len(seen))
		for i, n := range seen {
			hi, lo := bits.Mul64(uint64(max(0, slots)), uint64(max(0, n)))
			quotient, _ := bits.Div64(hi, lo, uint64(limit))
			parts[i] = int(quotient)
		}
	}
	anywhere = max(0, slots)
	for _, n := range parts {
		anywhere -= n
	}
	return parts, anywhere
}

// AdaptedNodes returns by how many nodes a site's part is divided under Curve:
// all of them once the room is full, fewer while it is empty, never below one.
// Utilization is clamped to 0 … 1; a factor of 0 gives nodes.
func AdaptedNodes(nodes int, utilization, factor float64) float64 {
	if math.IsNaN(utilization) {
		utilization = 1
	}
	u := min(max(utilization, 0), 1)
	return max(1, float64(nodes)*math.Pow(u, factor))
}

// settle divides places by weight between those who have used some of theirs
// already. Each one's goal is a part of places and everything used together:
// news of somebody's use that comes late moves places and used alike, and
// leaves the goals of the others where they were. Nobody gets more than cap;
// the parts add up to places as far as the caps allow.
func settle(places int, weights, used, limits []int, first int) []int {
	total := places
	for _, u := range used {
		total += u
	}
	return fill(places, apportion(total, weights, first), used, limits, first)
}

// fill turns goals into parts of places: what each has not used of its goal,
// scaled down where that is too much, the rest to whoever has room under cap.
func fill(places int, goals, used, limits []int, first int) []int {
	parts := make([]int, len(goals))
	sum := 0
	for i := range parts {
		parts[i] = min(max(0, goals[i]-used[i]), limits[i])
		sum += parts[i]
	}
	if sum > places {
		return apportion(places, parts, first)
	}
	spare := make([]int, len(goals))
	room := 0
	for i := range spare {
		spare[i] = limits[i] - parts[i]
		room += spare[i]
	}
	for i, n := range apportion(min(places-sum, room), spare, first) {
		parts[i] += n
	}
	return parts
}
