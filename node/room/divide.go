package room

import (
	"math"
	"time"
)

// places is how the slots of this moment are divided.
type places struct {
	reserved []int // by bucket
	partial  int   // index of the bucket that gets only a part; len(reserved) if none
	rest     int   // slots beyond all waiting visitors
	waiting  []int // by site: for its waiting visitors
	part     []int // by site: of the partial bucket alone
	fresh    []int // by site: for its new visitors
}

// divide reserves slots for waiting visitors and splits them between sites.
//
// Whole buckets need no split: everyone in them has a place, wherever they are.
// The bucket that gets only a part is split by who waits in it, so no place
// lies idle where nobody wants it. Slots beyond all waiting visitors are split
// by settled traffic. Both splits count in what a site has admitted in the last
// minute, so that late news of it does not move the others' parts. The minute
// slides: at the edge of a calendar minute, news that is on its way would be
// missing from both terms.
func divide(s Settings, t tally, slots int, now time.Time) places {
	counts := make([]int, len(t.buckets))
	for i, q := range t.buckets {
		counts[i] = q.waiting
	}
	var p places
	p.reserved, p.rest = Reserve(slots, counts)
	for p.partial < len(counts) && p.reserved[p.partial] == counts[p.partial] {
		p.partial++
	}
	p.waiting = make([]int, len(t.sites))
	for _, q := range t.buckets[:p.partial] {
		for i, n := range q.bySite {
			p.waiting[i] += n
		}
	}
	used := make([]int, len(t.sites))
	for i, st := range t.sites {
		used[i] = st.minute
	}
	// Ties change hands every minute, not more often: a part that moves while
	// news of its use is on the way would be used twice.
	first := int((now.Unix()/60%int64(len(t.sites)) + int64(len(t.sites))) % int64(len(t.sites)))
	p.part = make([]int, len(t.sites))
	if p.partial < len(counts) {
		p.part = splitBucket(t.buckets[p.partial], p.reserved[p.partial], used, first)
		for i, n := range p.part {
			p.waiting[i] += n
		}
	}
	p.fresh = splitNew(s, t, p.rest, used, first)
	return p
}

// splitBucket divides the places of a partial bucket between sites by who waits
// in it. Those a site admitted lately count as if they still waited there: some
// came from it, and a site that was busy with older buckets shall not be last in
// this one.
func splitBucket(q queue, places int, used []int, first int) []int {
	weights := make([]int, len(used))
	for i, n := range q.bySite {
		if n > 0 {
			weights[i] = n + used[i]
		}
	}
	return settle(places, weights, used, q.bySite, first)
}

// splitNew divides the slots of new visitors between sites: by settled traffic,
// and what no traffic claims by live nodes.
func splitNew(s Settings, t tally, rest int, used []int, first int) []int {
	total := rest
	limits := make([]int, len(used))
	nodes := make([]int, len(used))
	for i, u := range used {
		total += u
		limits[i] = rest
		nodes[i] = t.sites[i].nodes
	}
	goals, anywhere := Shares(total, min(s.TotalActiveUsers, s.NewUsersPerMinute), t.seen)
	for i, n := range apportion(anywhere, nodes, first) {
		goals[i] += n
	}
	return fill(rest, goals, used, limits, first)
}

// cursor is how far the own site's line is let in. Visitors who arrived before
// cursor have a place each, sure of them in all; those between cursor and edge
// compete for contested places.
//
//	oldest ──── whole buckets ────┬─ partial bucket ─────────────┐
//	        sure   sure   sure    │ sure  sure │ contested │ wait │  newest
//	                                         cursor       edge
type cursor struct {
	cursor, edge    int64 // Unix seconds
	sure, contested int
}

func newCursor(t tally, p places, width int64) cursor {
	c := cursor{sure: p.waiting[t.own] - p.part[t.own]}
	if p.partial == len(t.buckets) {
		if n := len(t.granules); n > 0 {
			c.cursor = granuleEnd(t.granules[n-1].start, width)
		}
		c.edge = c.cursor
		return c
	}
	c.cursor = t.buckets[p.partial].start
	end := c.cursor + width
	left := p.part[t.own]
	for _, g := range t.granules {
		if g.start < c.cursor || left == 0 {
			continue
		}
		if g.start >= end {
			break
		}
		if g.n > left {
			c.contested = left
			c.edge = granuleEnd(g.start, width)
			break
		}
		left -= g.n
		c.sure += g.n
		c.cursor = granuleEnd(g.start, width)
	}
	c.edge = max(c.edge, c.cursor)
	return c
}

// nodePart is this node's part of its site's contested places. Two things bound
// it. The places of this moment are divided between the nodes, and what does not
// divide goes to the nodes whose turn it is: those parts never add up to more
// than there is. And the node's use so far counts against its part of those
// places and of what the site admitted lately: else a node would, before the
// others hear of it, take its part again and again.
//
// Even divides by all nodes. Curve divides by fewer while the room is empty, so
// several nodes may use the same place; that is what it trades for not queueing
// an uneven crowd too early.
func nodePart(s Settings, t tally, contested int, utilization float64, turn turn) int {
	if contested <= 0 {
		return 0
	}
	nodes := float64(t.sites[t.own].nodes)
	by := nodes
	if s.Policy == Curve {
		by = AdaptedNodes(t.sites[t.own].nodes, utilization, s.CurveFactor)
	}
	part := int(float64(contested) / by)
	if turn.has(contested - int(nodes)*part) {
		part++
	}
	fair := int(math.Ceil(float64(contested+t.siteLate)/by)) - t.selfLate
	return max(0, min(part, fair, contested))
}
