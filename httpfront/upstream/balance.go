package upstream

import "time"

// member is one origin as the choice sees it.
type member struct {
	health
	weight  int64
	current int64 // of the smooth weighted round robin
}

// indexes is a set of members, by their place.
type indexes uint64

func (s indexes) has(i int) bool { return s&(1<<i) != 0 }

// shareScale is what weights are multiplied by, so that a part of the smallest
// weight is more than nothing.
const shareScale = 100

// share is the member's weight at that moment: of one that has been out, a
// tenth at first, and more and more of it over slow.
func (m *member) share(now time.Time, slow time.Duration) int64 {
	full := m.weight * shareScale
	if m.since.IsZero() || m.isOut() {
		return full
	}
	age := now.Sub(m.since)
	if age >= slow {
		return full
	}
	return max(full*max(int64(age/time.Millisecond), 0)/int64(slow/time.Millisecond+1), full/10)
}

// choose returns the member for the next request: of those that are in or due
// for a trial, that have not been tried for this request and have room for it,
// the next in turn. Rather than nowhere it goes to one without room, then to one
// that is out, then to one that has been tried.
//
// Those that are out are better than nothing, because being out is a guess, from
// a few failures or from a check that may itself be wrong. Where every origin is
// out, refusing everybody would make a certainty of the guess, and the site would
// be found to be back only when an ejection ends. (Envoy calls this the panic
// threshold.)
func choose(members []member, now time.Time, slow time.Duration, tried, full indexes) int {
	all := indexes(1)<<len(members) - 1
	out := indexes(0)
	for i := range members {
		if !members[i].isEligible(now) {
			out |= 1 << i
		}
	}
	for _, but := range [...]indexes{tried | out | full, tried | out, tried, 0} {
		if rest := all &^ but; rest != 0 {
			return turn(members, now, slow, rest)
		}
	}
	panic("upstream: a choice among no origins")
}

// turn is smooth weighted round robin among some of the members: each gains its
// share, the one that has the most is next, and pays what all have gained. So
// the weights 5, 1, 1 give a a b a c a a and not five times a in a row. From
// nginx, commit 52327e0627f4 "Upstream: smooth weighted round-robin balancing".
func turn(members []member, now time.Time, slow time.Duration, among indexes) int {
	best, total := -1, int64(0)
	for i := range members {
		if !among.has(i) {
			continue
		}
		m := &members[i]
		share := m.share(now, slow)
		total += share
		m.current += share
		if best < 0 || m.current > members[best].current {
			best = i
		}
	}
	m := &members[best]
	m.current -= total
	if m.isDue(now) {
		m.try(now)
	}
	return best
}
