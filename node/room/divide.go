package room

import "math"

// places is how the slots of this moment are divided. Its slices are kept from
// one division to the next.
type places struct {
	reserved []int // by bucket
	partial  int   // index of the bucket that gets only a part; eligible if none
	eligible int   // buckets before this one may be let in
	served   int   // who waits in those
	rest     int   // slots beyond all waiting visitors
	waiting  []int // by site: for its waiting visitors
	inside   []int // by site: who waits in the partial bucket
	part     []int // by site: their places alone
	fresh    []int // by site: for its new visitors
	anywhere int   // for new visitors, wherever they are; Counter only

	// scratch, by site
	used, goals, weights, limits, spare []int
	before                              struct{ part, fresh []int }
}

// reset makes room for as many sites and buckets as t has.
func (p *places) reset(t *tally) {
	n := len(t.sites)
	for _, s := range []*[]int{&p.waiting, &p.inside, &p.part, &p.fresh, &p.used, &p.goals, &p.weights, &p.limits, &p.spare} {
		*s = resize(*s, n)
	}
	p.reserved = resize(p.reserved, len(t.buckets))
	p.partial, p.eligible, p.served, p.rest, p.anywhere = 0, 0, 0, 0, 0
	for i, st := range t.sites {
		if !st.frozen {
			p.used[i] = st.minute
		}
	}
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
//
// Under Random nobody has a place before others: all slots are split as those of
// new visitors are. During a pre-queue only those are served who came before it.
func (p *places) divide(v *View, t *tally, slots int) {
	p.reset(t)
	s := v.Settings
	p.eligible = len(t.buckets)
	if v.Event.Prequeueing {
		for p.eligible > 0 && t.buckets[p.eligible-1].start >= v.hold.Unix() {
			p.eligible--
		}
	}
	for _, q := range t.buckets[:p.eligible] {
		p.served += q.waiting
	}
	if v.Event.Prequeueing {
		slots = min(slots, p.served)
	}
	switch {
	case s.QueueingMethod == Random:
		p.partial, p.rest = p.eligible, slots
	case s.Policy == Escrow:
		p.reserveByRights(v, t, slots)
	default:
		p.reserve(t, slots)
	}
	if s.Policy == Escrow {
		p.splitByRights(t)
	} else if p.split(s, t, 0); t.minutes[0] != t.minutes[1] {
		p.splitAtEdge(s, t)
	}
	for i, n := range p.part {
		p.waiting[i] += n
	}
}

// split divides what is contested between sites, as of one of the minutes that it
// may be.
func (p *places) split(s *Settings, t *tally, minute int) {
	round := roundingOf(t.minutes[minute])
	clear(p.part)
	if p.partial < p.eligible {
		p.splitBucket(p.reserved[p.partial], round)
	}
	if s.Policy == Counter {
		p.splitForCounter(t, t.seen[minute], round)
	} else {
		p.splitNew(t, t.seen[minute], round)
	}
}

// splitAtEdge gives each site the smaller of what it has before and after the edge
// of a minute. For a moment some nodes go by the one and some by the other, and
// what both a site that gains and a site that loses take must not be more than
// there is.
func (p *places) splitAtEdge(s *Settings, t *tally) {
	p.before.part = append(p.before.part[:0], p.part...)
	p.before.fresh = append(p.before.fresh[:0], p.fresh...)
	anywhere := p.anywhere
	p.split(s, t, 1)
	for i := range p.part {
		p.part[i] = min(p.part[i], p.before.part[i])
		p.fresh[i] = min(p.fresh[i], p.before.fresh[i])
	}
	p.anywhere = min(p.anywhere, anywhere)
}

// reserve hands slots to those who wait, oldest bucket first.
func (p *places) reserve(t *tally, slots int) {
	p.rest = slots
	for p.partial < p.eligible {
		q := t.buckets[p.partial]
		p.reserved[p.partial] = min(q.waiting, p.rest)
		p.rest -= p.reserved[p.partial]
		if p.reserved[p.partial] < q.waiting {
			break
		}
		p.partial++
	}
	start := int64(math.MaxInt64) // of the partial bucket
	switch {
	case p.partial < p.eligible:
		start = t.buckets[p.partial].start
	case p.eligible < len(t.buckets):
		start = t.buckets[p.eligible].start
	}
	for _, q := range t.parts {
		switch {
		case q.bucket < start:
			p.waiting[q.site] += q.waiting
		case q.bucket == start && p.partial < p.eligible:
			p.inside[q.site] += q.waiting
		}
	}
}

// splitBucket divides the places of a partial bucket between sites by who waits
// in it. Those a site admitted
// lately count as if they still waited there: some came from it, and a site that
// was busy with older buckets shall not be last in this one.
func (p *places) splitBucket(places int, round rounding) {
	total := places
	for i, n := range p.inside {
		p.limits[i], p.weights[i] = n, 0
		if n > 0 {
			p.weights[i] = n + p.used[i]
		}
		total += p.used[i]
	}
	apportion(p.goals, total, p.weights, round)
	p.fill(p.part, places, round)
}

// splitNew divides the slots of new visitors between sites: by settled traffic,
// and what no traffic claims by live nodes.
func (p *places) splitNew(t *tally, seen []int, round rounding) {
	anywhere := p.claims(t, seen, round)
	for i := range t.sites {
		p.limits[i], p.weights[i] = p.rest, t.sites[i].nodes
	}
	apportion(p.spare, anywhere, p.weights, round)
	for i, n := range p.spare {
		p.goals[i] += n
	}
	for i := range t.sites {
		if t.sites[i].frozen {
			p.limits[i] = 0
		}
	}
	p.fill(p.fresh, p.rest, round)
}

// splitForCounter divides the slots of new visitors between sites by settled
// traffic, and leaves what no traffic claims to the room's own counter. Rows do
// not tell which ticket came from which counter. What a site has used beyond its
// goal it can only have from there, so it is charged to the anywhere part, and the
// site itself goes on from nothing, not from below it. With goal + anywhere being
// what there is together with what was used, that makes
//
//	Σ max(0, goal − used) + anywhere − Σ max(0, used − goal) = rest
func (p *places) splitForCounter(t *tally, seen []int, round rounding) {
	p.claims(t, seen, round)
	p.anywhere = p.rest
	for i, goal := range p.goals {
		p.fresh[i] = max(0, goal-p.used[i])
		p.anywhere -= p.fresh[i]
	}
	if p.anywhere < 0 { // more was used than anywhere had
		copy(p.weights, p.fresh)
		apportion(p.fresh, p.rest, p.weights, round)
		p.anywhere = 0
	}
	p.anywhere = inSight(t, p.anywhere)
}

// inSight returns the part of anywhere that those have who see each other. Two
// sides of a cut have a counter each for what belongs to no site.
func inSight(t *tally, anywhere int) int {
	all, seen := 0, 0
	for i := range t.sites {
		st := &t.sites[i]
		all += st.nodes
		if st.inSight {
			seen += st.nodes
		}
	}
	return scale(anywhere, seen, all)
}

// claims sets the goal of each site: its part, by settled traffic, of what new
// visitors may have and what was used lately together. It returns what no traffic
// claims.
func (p *places) claims(t *tally, seen []int, round rounding) (anywhere int) {
	total := p.rest
	for _, u := range p.used {
		total += u
	}
	return shares(p.goals, total, t.limit, seen, round)
}

// fill turns goals into parts of places: what each has not used of its goal,
// scaled down where that is too much, the rest to whoever has room under limits.
// News of somebody's use that comes late moves places and used alike, and leaves
// the goals of the others where they were. The parts add up to places as far as
// the limits allow.
func (p *places) fill(parts []int, places int, round rounding) {
	sum, room := 0, 0
	for i := range parts {
		parts[i] = min(max(0, p.goals[i]-p.used[i]), p.limits[i])
		sum += parts[i]
		p.spare[i] = p.limits[i] - parts[i]
		room += p.spare[i]
	}
	if sum > places {
		copy(p.weights, parts)
		apportion(parts, places, p.weights, round)
		return
	}
	apportion(p.weights, min(places-sum, room), p.spare, round)
	for i, n := range p.weights {
		parts[i] += n
	}
}

// cursor is how far the own site's line is let in. Visitors whose place is before
// cursor have one each, sure of them in all; those between cursor and edge
// compete for contested places.
//
//	oldest ──── whole buckets ────┬─ partial bucket ─────────────┐
//	        sure   sure   sure    │ sure  sure │ contested │ wait │  newest
//	                                         cursor       edge
type cursor struct {
	cursor, edge    int64 // Unix seconds
	sure, contested int
}

func newCursor(t *tally, p *places, width int64) cursor {
	c := cursor{sure: p.waiting[t.own] - p.part[t.own]}
	if p.partial == p.eligible {
		n := len(t.granules)
		for n > 0 && p.eligible < len(t.buckets) && t.granules[n-1].start >= t.buckets[p.eligible].start {
			n--
		}
		if n > 0 {
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
// an uneven crowd too early. Under Counter one node hands all of them out.
func nodePart(v *View, t *tally, contested int, turn turn) int {
	if contested <= 0 {
		return 0
	}
	nodes := t.sites[t.own].nodes
	by := float64(nodes)
	switch v.Settings.Policy {
	case Counter:
		return contested
	case Curve:
		by = AdaptedNodes(nodes, v.Utilization, v.Settings.CurveFactor)
	}
	part := int(float64(contested) / by)
	if turn.has(contested - nodes*part) {
		part++
	}
	fair := int(math.Ceil(float64(contested+t.siteLate)/by)) - t.selfLate
	return max(0, min(part, fair, contested))
}
