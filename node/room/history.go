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
// inside the minute over which they are counted, and inside the one that shares
// are taken from.
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

// closedMinute returns the newest calendar minute all of which the site has
// closed, or otherwise if it has not said.
func (s *Site) closedMinute(otherwise int64) int64 {
	if s.Own || s.Closed == 0 {
		return otherwise
	}
	return (s.Closed+1)/ticksPerMinute - 1
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
		h.frozen = Frozen{}
	case grew:
		h.frozen = h.draw(s, sites, now)
	case changed:
		h.frozen = h.still(s, sites, now)
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

// still returns what is left of frozen: those who were silent before and still are.
func (h *History) still(s *Settings, sites []Site, now time.Time) Frozen {
	return h.frozen.only(func(name string) bool {
		at := slices.IndexFunc(sites, func(site Site) bool { return site.Name == name })
		return at >= 0 && sites[at].standing(s, now) == silent
	})
}

// draw divides what nobody has frozen between all who are silent since now and all
// who take part. Whoever was silent before keeps what they had.
func (h *History) draw(s *Settings, sites []Site, now time.Time) Frozen {
	before := h.still(s, sites, now)
	rest := uint64(whole)
	for _, stake := range before.line {
		rest -= stake.to - stake.from
	}
	var shares []siteShare
	var from []*Site
	minute := crdt.TickOf(now)/ticksPerMinute - 1
	for i := range sites {
		site := &sites[i]
		is := site.standing(s, now)
		if is == left || before.Has(site.Name) {
			continue
		}
		from = append(from, site)
		minute = min(minute, site.closedMinute(minute))
	}
	slices.SortFunc(from, func(a, b *Site) int { return cmp.Compare(a.Name, b.Name) })
	seen, nodes := make([]int, len(from)), make([]int, len(from))
	for i, site := range from {
		shares = append(shares, siteShare{site: site.Name, silent: site.standing(s, now) == silent})
		nodes[i] = max(1, site.Nodes, h.marks[site.Name].nodes)
		seen[i] = seenIn(site, minute)
	}
	limit := part(min(s.TotalActiveUsers, s.NewUsersPerMinute), rest)
	claimed, free := Shares(int(rest), limit, seen)
	for i, n := range Apportion(free, nodes) {
		shares[i].share = uint64(claimed[i] + n)
	}
	return before.with(shares)
}
