package room

import (
	"math"
	"math/bits"
)

// Slots returns how many visitors may enter right now: what both limits leave,
// never below zero.
func Slots(totalActive, newPerMinute, active, admittedLast60s int64) int {
	free := min(totalActive-active, newPerMinute-admittedLast60s)
	return int(min(max(0, free), math.MaxInt32))
}

// rounding says which of several parts that do not divide evenly are rounded up:
// a fraction of 2^64. Over all roundings each part is, on average, exact.
type rounding uint64

// roundingOf returns the rounding of one minute. It changes every minute, not more
// often: a part that moves while news of its use is on the way would be used
// twice. The golden ratio leaves no long gaps, so whoever is owed one place in n
// has it once in about n minutes.
func roundingOf(minute int64) rounding {
	const golden = 0x9e3779b97f4a7c15 // of 2^64
	return rounding(uint64(minute) * golden)
}

// plain rounds to the nearest, as far as the sum allows.
const plain = rounding(1 << 63)

// of returns the rounding as a fraction of sum.
func (r rounding) of(sum uint64) uint64 {
	at, _ := bits.Mul64(uint64(r), sum)
	return at
}

// Apportion divides total by weight into whole parts that add up to it, each less
// than one away from its exact part. Negative weights are zero. If no weight is
// above zero, nobody gets anything.
func Apportion(total int, weights []int) []int {
	parts := make([]int, len(weights))
	apportion(parts, total, weights, plain)
	return parts
}

// apportion is Apportion into parts, with a rounding of one's own. It draws the
// parts side by side on a line and cuts where whole numbers lie, so that they
// add up without anybody being given what another one's remainder was:
//
//	exact   |---- 2.6 ----|--- 1.7 ---|---- 2.7 ----|
//	cuts at    1    2    3    4    5    6    7          (moved by the rounding)
//
// A part far below one so gets its one from time to time; by the largest
// remainder it never would.
func apportion(parts []int, total int, weights []int, r rounding) {
	clear(parts)
	var sum uint64
	for _, w := range weights {
		sum += uint64(max(0, w))
	}
	if sum == 0 || total <= 0 {
		return
	}
	offset := r.of(sum)
	var upTo, before uint64
	for i, w := range weights {
		upTo += uint64(max(0, w))
		// 128 bits: a product of two large counts must not wrap.
		hi, lo := bits.Mul64(uint64(total), upTo)
		lo, carry := bits.Add64(lo, offset, 0)
		cut, _ := bits.Div64(hi+carry, lo, sum)
		parts[i] = int(cut - before)
		before = cut
	}
}

// Shares divides slots between sites by their part of past traffic. While the
// traffic stays below limit, a site's part is measured against the limit, and
// what is left belongs to nobody: it is returned as anywhere. The parts and
// anywhere add up to slots.
func Shares(slots, limit int, seen []int) (parts []int, anywhere int) {
	parts = make([]int, len(seen))
	return parts, shares(parts, slots, limit, seen, plain)
}

// shares is Shares into parts, with a rounding of one's own.
func shares(parts []int, slots, limit int, seen []int, r rounding) (anywhere int) {
	sum := 0
	for _, n := range seen {
		sum += max(0, n)
	}
	if sum > 0 && sum >= limit {
		apportion(parts, slots, seen, r)
	} else {
		for i, n := range seen {
			parts[i] = scale(slots, n, limit) // n is below limit
		}
	}
	anywhere = max(0, slots)
	for _, n := range parts {
		anywhere -= n
	}
	return anywhere
}

// scale returns n × by ÷ of, rounded down. by is at most of; what is negative is
// zero. The product may be larger than an int.
func scale(n, by, of int) int {
	hi, lo := bits.Mul64(uint64(max(0, n)), uint64(max(0, by)))
	quotient, _ := bits.Div64(hi, lo, uint64(max(1, of)))
	return int(quotient)
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

// part returns share wholes of limit, rounded to the nearest.
func part(limit int, share uint64) int {
	hi, lo := bits.Mul64(uint64(max(0, limit)), share)
	lo, carry := bits.Add64(lo, whole/2, 0)
	cut, _ := bits.Div64(hi+carry, lo, whole)
	return int(cut)
}
