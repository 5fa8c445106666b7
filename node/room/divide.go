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
	anywhere int   // for new visitors, wherever they are; Counter and Curve only

	// The most that a site may take for itself to be right, by any base; see Builder.Promise.
	most         []int // by site, without anywhere
	mostAnywhere int

	// scratch, by site
	used, goals, weights, limits, spare []int
	least                               struct{ part, fresh []int }
}

// reset makes room for as many sites and buckets as t has.
func (p *places) reset(t *tally) {
	n := len(t.sites)
	for _, s := range []*[]int{&p.waiting, &p.inside, &p.part, &p.fresh, &p.most, &p.used, &p.goals, &p.weights, &p.limits, &p.spare} {
		*s = resize(*s, n)
	}
	p.reserved = resize(p.reserved, len(t.buckets))
	p.partial, p.eligible, p.served, p.rest, p.anywhere, p.mostAnywhere = 0, 0, 0, 0, 0, 0
}

// divide reserves slots for waiting visitors and splits them between sites.
//
// Whole buckets need no split: everyone in them has a place, wherever they are.
// The bucket that gets only a part is split by who waits in it, so no place
// lies idle where nobody wants it. Slots beyond all waiting visitors are split
// by settled traffic. Both splits count in what a site has admitted in the minute
// before a base, and since; see setBases.
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
	} else {
		p.splitByBases(s, t)
	}
	for i, n := range p.part {
		p.waiting[i] += n
		p.most[i] += p.waiting[i] - n
	}
}

// splitByBases gives each site the smallest part that it has by any base: nodes go by
// different ones for a moment, and what both a site that gains and a site that loses take
// must not be more than there is.
func (p *places) splitByBases(s *Settings, t *tally) {
	anywhere := 0
	for k := range t.bases {
		for i := range t.sites {
			if p.used[i] = 0; !t.sites[i].frozen {
				p.used[i] = t.sites[i].used[k]
			}
		}
		p.split(s, t, k)
		p.mostAnywhere = max(p.mostAnywhere, p.anywhere)
		for i := range p.part {
			p.most[i] = max(p.most[i], p.part[i]+p.fresh[i])
			if k > 0 {
				p.part[i] = min(p.part[i], p.least.part[i])
				p.fresh[i] = min(p.fresh[i], p.least.fresh[i])
			}
		}
		if k > 0 {
			p.anywhere = min(p.anywhere, anywhere)
		}
		anywhere = p.anywhere
		p.least.part = append(p.least.part[:0], p.part...)
		p.least.fresh = append(p.least.fresh[:0], p.fresh...)
	}
}

// split divides what is contested between sites, as of one of the bases.
func (p *places) split(s *Settings, t *tally, base int) {
	round := roundingOf(t.bases[base] / ticksPerMinute)
	clear(p.part)
	if p.partial < p.eligible {
		p.splitBucket(t, p.reserved[p.partial], round)
	}
	if s.Policy == Even {
		p.splitNew(t, t.seen[base], round)
	} else {
		p.splitAnywhere(t, t.seen[base], round)
	}
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
		if t.bare {
			q.waiting -= q.young
		}
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
func (p *places) splitBucket(t *tally, places int, round rounding) {
	total := places
	for i, n := range p.inside {
		p.limits[i], p.weights[i] = n, 0
		if n > 0 {
			p.weights[i] = n + p.used[i]
			if i == t.own {
				p.weights[i] -= min(n, t.leaving)
			}
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

// splitAnywhere divides the slots of new visitors between sites by settled
// traffic, and leaves what no traffic claims to the room's own counter, or to all nodes
// under Curve. Rows do not tell which ticket came from where. What a site has used beyond
// its goal it can only have from there, so it is charged to the anywhere part, and the
// site itself goes on from nothing, not from below it. With goal + anywhere being
// what there is together with what was used, that makes
//
//	Σ max(0, goal − used) + anywhere − Σ max(0, used − goal) = rest
func (p *places) splitAnywhere(t *tally, seen []int, round rounding) {
	p.claims(t, seen, round)
	p.lower(p.rest, round) // if more was used than anywhere had
	p.anywhere = p.rest
	for i, goal := range p.goals {
		p.fresh[i] = max(0, goal-p.used[i])
		p.anywhere -= p.fresh[i]
	}
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

// fill turns goals into parts of places: what each has not used of its goal, the rest to
// whoever has room under limits. News of somebody's use that comes late moves places and
// used alike, and leaves the goals of the others where they were. The parts add up to
// places as far as the limits allow.
func (p *places) fill(parts []int, places int, round rounding) {
	p.lower(places, round)
	sum, room := 0, 0
	for i := range parts {
		parts[i] = min(max(0, p.goals[i]-p.used[i]), p.limits[i])
		sum += parts[i]
		p.spare[i] = p.limits[i] - parts[i]
		room += p.spare[i]
	}
	apportion(p.weights, min(places-sum, room), p.spare, round)
	for i, n := range p.weights {
		parts[i] += n
	}
}

// lower scales goals down where some sites have used more than theirs, so that nothing is
// left of it for the others: what these have used and what there is together is divided by
// their goals. To scale what is left of each goal instead would have a site that uses some
// of its part take less of the loss, and leave more of it to those who do not know of that
// use yet.
func (p *places) lower(places int, round rounding) {
	for {
		left, total := 0, places
		for i, goal := range p.goals {
			p.weights[i] = 0
			if goal > p.used[i] {
				left += goal - p.used[i]
				total += p.used[i]
				p.weights[i] = goal
			}
		}
		if left <= places {
			return
		}
		apportion(p.goals, total, p.weights, round)
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
		for n > 0 && (p.eligible < len(t.buckets) && t.granules[n-1].start >= t.buckets[p.eligible].start || t.isYoung(t.granules[n-1].start, width)) {
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
	c.walk(t, &p.part[t.own], width, func(start int64) bool { return start < end && !t.isYoung(start, width) })
	return c
}

// walk lets in own granules from the cursor on, as far as *left goes and ok says, and takes
// what it gives off *left.
func (c *cursor) walk(t *tally, left *int, width int64, ok func(start int64) bool) {
	rest := *left
	for _, g := range t.granules {
		if g.start < c.cursor || rest == 0 {
			continue
		}
		if !ok(g.start) {
			break
		}
		if g.n > rest {
			c.contested = rest
			c.edge = granuleEnd(g.start, width)
			rest = 0
			break
		}
		rest -= g.n
		c.sure += g.n
		c.cursor = granuleEnd(g.start, width)
	}
	*left = rest
	c.edge = max(c.edge, c.cursor)
}

// nodePart is this node's part of its site's contested places. Two things bound
// it. The places of this moment are divided between the nodes, and what does not
// divide goes to the nodes whose turn it is: those parts never add up to more
// than there is. And the node's use so far counts against its part of those
// places and of what the site admitted lately: else a node would, before the
// others hear of it, take its part again and again.
//
// Even divides by all nodes. Under Counter one node hands all of them out.
func nodePart(v *View, t *tally, contested int, turn turn) int {
	if contested <= 0 || v.Settings.Policy == Counter {
		return max(0, contested)
	}
	nodes := t.sites[t.own].nodes
	part := contested / nodes
	if turn.has(contested - nodes*part) {
		part++
	}
	fair := int(math.Ceil(float64(contested+t.siteLate)/float64(nodes))) - t.selfLate
	return max(0, min(part, fair, contested))
}

// curvePart is nodePart under Curve, which divides by fewer nodes while the room is empty:
// the site's places by those of the site, and the places that no site claims by those of
// the world. So several nodes may use the same place; that is what it trades for not
// queueing an uneven crowd too early.
func curvePart(v *View, t *tally, contested, anywhere int, turn turn) int {
	all := contested + anywhere
	if all <= 0 {
		return 0
	}
	nodes, world := t.sites[t.own].nodes, 0
	for i := range t.sites {
		world += t.sites[i].nodes
	}
	divided := func(places, nodes int) float64 {
		return float64(places) / AdaptedNodes(nodes, v.Utilization, v.Settings.CurveFactor)
	}
	exact := divided(contested, nodes) + divided(anywhere, world)
	part := int(exact)
	if turn.has(contested + scale(anywhere, nodes, world) - nodes*part) {
		part++
	}
	late := float64(t.siteLate) * exact / float64(all)
	fair := int(math.Ceil(exact+late)) - t.selfLate
	return max(0, min(part, fair, all))
}
