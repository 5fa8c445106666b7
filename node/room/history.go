package room

import (
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// standing is whether a site takes part in the division of a room.
type standing uint8

const (
	takesPart standing = iota
	silent             // not heard from lately; its share is frozen, if shares are
	left               // left, or silent for so long that it counts as if it had
)

// silentAfter is how old the end of the newest closed tick may be before a site
// is taken for silent. A tick lasts ten seconds, is closed two after its end,
// published within one and then on its way, so a site in touch stays below
// fourteen; one message lost and fetched again by the next pull takes five more.
// What the silence hides until it is noticed is two ticks of admissions, well
// inside the minute over which they are counted.
const silentAfter = 2*crdt.TickSpan + 5*time.Second

// standing judges a site by what it has closed alone, so that a node that has
// just started comes to the same as one that heard it fall silent. A site that
// has never closed anything is new.
func (s *Site) standing(set *Settings, now time.Time) standing {
	switch {
	case s.Own:
		return takesPart
	case s.Gone:
		return left
	case s.Closed == 0:
		return takesPart
	}
	age := now.Sub(time.Unix(0, 0)) - time.Duration(s.Closed+1)*crdt.TickSpan
	switch {
	case age <= silentAfter:
		return takesPart
	case set.freezes() && age >= cmp.Or(set.ShareFreeze, DefaultShareFreeze):
		return left
	}
	return silent
}

// whole is a share of everything. Shares are whole numbers of it, so that two
// nodes on two kinds of machine come to the same.
const whole = 1 << 40

// stake is one site's share of a room.
type stake struct {
	site   string
	share  uint64 // of whole
	frozen bool
}

// Frozen says how a room is divided while sites are silent: each of them keeps
// the share that it had when everybody was last in touch, and the others divide
// the rest. The zero value: no site is silent. It is never changed once made.
type Frozen struct {
	line []stake // by name

	// doubt lists sites of which fewer nodes are in sight than when they were last
	// heard from, before it is clear whether they have fallen silent.
	doubt []doubt
}

// doubt is how many nodes a site may still have.
type doubt struct {
	site  string
	nodes int
}

// nodes returns how many nodes to reckon with at a site of which so many are in
// sight. Membership notices within seconds that a site is out of reach, and the
// site notices the same of us; if each side counted itself as the whole from then
// on until shares are frozen, both would give away what no traffic claims.
func (f Frozen) nodes(site string, inSight int) int {
	for _, d := range f.doubt {
		if d.site == site {
			return max(d.nodes, inSight)
		}
	}
	return inSight
}

// Any reports whether any site is silent.
func (f Frozen) Any() bool { return len(f.line) > 0 }

// Has reports whether the share of a site is frozen.
func (f Frozen) Has(site string) bool {
	i, ok := f.find(site)
	return ok && f.line[i].frozen
}

func (f Frozen) find(site string) (int, bool) {
	return slices.BinarySearchFunc(f.line, site, func(s stake, name string) int { return cmp.Compare(s.site, name) })
}

// kept returns how much of limit belongs to those who are silent. The cuts
// between sites are the same on both sides of a partition, so what one side keeps
// for the other and what that one uses add up to no more than limit, and to no
// less.
func (f Frozen) kept(limit int) int {
	var upTo uint64
	before, kept := 0, 0
	for _, s := range f.line {
		upTo += s.share
		cut := part(limit, upTo)
		if s.frozen {
			kept += cut - before
		}
		before = cut
	}
	return kept
}

// History remembers what of a room's past outlives the counts of sites that have
// fallen silent: the line that was drawn between their shares and the others'. It
// grows with the number of sites. The zero value is empty and ready. It is not
// safe for concurrent use.
type History struct {
	frozen Frozen
	marks  map[string]mark
}

// mark is what a site was like when it last closed a tick.
type mark struct {
	closed int64
	nodes  int
}

// Observe takes a look at what every site has said by now and returns what Build
// needs to know of those that have fallen silent. It is due before every Build;
// the sites are those of its Input. It is a function of what it was ever given.
//
// A line is drawn when a site falls silent, from the newest minute of traffic
// that all have closed who still matter. A site cut off at the same time draws it
// from what it knows to be closed; the two may differ by a minute, and what both
// sides then admit too much is bounded by how far shares moved within it. Sites
// that were silent before keep what they had. While a minute's traffic is below
// the limit, the rest of the room belongs to nobody, and is staked by nodes.
func (h *History) Observe(s *Settings, sites []Site, now time.Time) Frozen {
	h.note(sites)
	grew, changed, n := false, false, 0
	for i := range sites {
		is := s.freezes() && sites[i].standing(s, now) == silent
		was := h.frozen.Has(sites[i].Name)
		grew = grew || is && !was
		changed = changed || is != was
		if is {
			n++
		}
	}
	switch {
	case n == 0:
		h.frozen.line = nil
	case grew:
		h.frozen.line = h.draw(s, sites, now)
	case changed:
		h.frozen.line = h.thaw(s, sites, now)
	}
	h.frozen.doubt = h.doubts(s, sites, now)
	return h.frozen
}

// doubts returns the sites that are in doubt; nearly always there is none.
func (h *History) doubts(s *Settings, sites []Site, now time.Time) []doubt {
	var list []doubt
	for i := range sites {
		site := &sites[i]
		if m := h.marks[site.Name]; !site.Own && site.Closed != 0 && site.Nodes < m.nodes && site.standing(s, now) == takesPart {
			list = append(list, doubt{site.Name, m.nodes})
		}
	}
	return list
}

// freezes reports whether silent sites keep their share at all.
func (s *Settings) freezes() bool { return s.ShareFreeze >= 0 }

// note keeps what sites are like while they are heard from. Membership notices
// that a site is gone long before its share is frozen, so nodes are noted only
// together with a tick that they closed.
func (h *History) note(sites []Site) {
	if h.marks == nil {
		h.marks = make(map[string]mark, len(sites))
	}
	for i := range sites {
		site := &sites[i]
		if m, ok := h.marks[site.Name]; site.Nodes > 0 && (site.Closed > m.closed || !ok) {
			h.marks[site.Name] = mark{site.Closed, site.Nodes}
		}
	}
	if len(h.marks) > 2*len(sites) {
		h.forget(sites)
	}
}

// forget drops sites that nobody speaks of any more.
func (h *History) forget(sites []Site) {
	marks := make(map[string]mark, len(sites))
	for i := range sites {
		if m, ok := h.marks[sites[i].Name]; ok {
			marks[sites[i].Name] = m
		}
	}
	h.marks = marks
}

// thaw is the line as it was, with fewer sites frozen.
func (h *History) thaw(s *Settings, sites []Site, now time.Time) []stake {
	line := slices.Clone(h.frozen.line)
	for i := range line {
		at := slices.IndexFunc(sites, func(site Site) bool { return site.Name == line[i].site })
		line[i].frozen = line[i].frozen && at >= 0 && sites[at].standing(s, now) == silent
	}
	return line
}

// draw divides the room anew between all who are silent since now and all who
// take part. Whoever was silent before keeps what they had.
func (h *History) draw(s *Settings, sites []Site, now time.Time) []stake {
	sorted := slices.Clone(sites)
	slices.SortFunc(sorted, func(a, b Site) int { return cmp.Compare(a.Name, b.Name) })
	line := make([]stake, len(sorted))
	rest := whole
	minute := crdt.TickOf(now)/ticksPerMinute - 1
	takes := make([]bool, len(sorted)) // of the rest
	for i := range sorted {
		site := &sorted[i]
		is := site.standing(s, now)
		line[i] = stake{site: site.Name, frozen: is == silent}
		if at, ok := h.frozen.find(site.Name); ok && h.frozen.line[at].frozen && is == silent {
			line[i].share = h.frozen.line[at].share
			rest -= int(line[i].share)
		} else if is != left {
			takes[i] = true
			minute = min(minute, site.closedMinute(minute))
		}
	}
	seen, nodes := make([]int, len(sorted)), make([]int, len(sorted))
	for i := range sorted {
		if !takes[i] {
			continue
		}
		nodes[i] = max(1, sorted[i].Nodes, h.marks[sorted[i].Name].nodes)
		for at, v := range sorted[i].Seen {
			if at/ticksPerMinute == minute {
				seen[i] += clampCount(v)
			}
		}
	}
	limit := part(min(s.TotalActiveUsers, s.NewUsersPerMinute), uint64(rest))
	shared, free := Shares(rest, limit, seen)
	for i, n := range Apportion(free, nodes) {
		if takes[i] {
			line[i].share = uint64(shared[i] + n)
		}
	}
	return line
}
