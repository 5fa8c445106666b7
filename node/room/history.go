package room

import (
	"cmp"
	"math"
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

// History remembers what of a room's past outlives the counts of sites that have
// fallen silent: the line that was drawn between their shares and the others'. It
// grows with the number of sites. The zero value is empty and ready. It is not
// safe for concurrent use.
type History struct {
	frozen *Frozen    // nil: no site is silent, nor in doubt
	marks  []siteMark // of the other sites, by name
	base   int64      // the oldest by which the room was divided last; 0: there is none
	looked int64      // Unix seconds of that
}

// siteMark is the mark of one site.
type siteMark struct {
	site string
	mark
}

// find returns where the mark of a site is, or would be.
func (h *History) find(site string) (i int, known bool) {
	return slices.BinarySearchFunc(h.marks, site, func(m siteMark, site string) int { return cmp.Compare(m.site, site) })
}

// nodes returns how many nodes a site had when it last closed a tick; 0: it is not known.
func (h *History) nodes(site string) int {
	if i, known := h.find(site); known {
		return h.marks[i].nodes
	}
	return 0
}

// mark is what a site was like when it last closed a tick.
type mark struct {
	closed int64
	nodes  int

	most, before promised // since it closed that tick, and the one before; see Promise
}

// promised is what a site may have taken by itself.
type promised struct{ active, rate int32 }

// Observe takes a look at what every site has said by now and returns what Build
// needs to know of those that have fallen silent. It is due before every Build;
// the sites are those of its Input. It is a function of what it was ever given.
//
// A line is drawn when a site falls silent, from the newest minute of traffic that
// it has closed. A site cut off at the same time draws it from what it knows to be
// closed; the two may differ by a minute, and what both sides then admit too much
// is bounded by how far shares moved within it. Sites that were silent before keep
// what they had.
func (h *History) Observe(s *Settings, sites []Site, now time.Time) Frozen {
	h.note(sites)
	f := h.was()
	grew, changed, n := false, false, 0
	for i := range sites {
		is := s.freezes() && sites[i].standing(s, now) == silent
		was := f.Has(sites[i].Name)
		grew = grew || is && !was
		changed = changed || is != was
		if is {
			n++
		}
	}
	switch {
	case n == 0:
		f = Frozen{}
	case grew:
		f = h.draw(s, sites, now)
	case changed:
		f = h.still(s, sites, now)
	}
	f.doubt = h.doubts(s, sites, now)
	f.promises, f.back = h.promises(f), h.returns(s, f, sites, now)
	h.hold(&f, s, sites, now)
	h.keep(f)
	return f
}

// promises returns what sites that are silent may have taken: known of those that were
// heard from while this node was there.
func (h *History) promises(f Frozen) []promise {
	if !f.Any() {
		return nil
	}
	before := h.was().promises
	var all []promise
	for _, site := range f.sites {
		if i := slices.IndexFunc(before, func(p promise) bool { return p.site == site }); i >= 0 {
			all = append(all, before[i])
		} else if at, known := h.find(site); known && !h.was().Has(site) {
			m := h.marks[at].mark
			all = append(all, promise{site, int(max(m.most.active, m.before.active)), int(max(m.most.rate, m.before.rate))})
		}
	}
	return all
}

// returns returns the sites that were silent and are not, for as long as settles.
func (h *History) returns(s *Settings, f Frozen, sites []Site, now time.Time) (all []returned) {
	was := h.was()
	if !was.Any() && len(was.back) == 0 {
		return nil
	}
	takesPart := func(name string) bool {
		at := slices.IndexFunc(sites, func(site Site) bool { return site.Name == name })
		return at >= 0 && !f.Has(name) && s.freezes() && sites[at].standing(s, now) == takesPart
	}
	for _, r := range was.back {
		if takesPart(r.site) && now.Before(r.until) {
			all = append(all, r)
		}
	}
	for _, name := range was.sites {
		if !takesPart(name) {
			continue
		}
		r := returned{promise: promise{site: name}, until: now.Add(settles)}
		for _, p := range was.promises {
			if p.site == name {
				r.promise = p
			}
		}
		for _, st := range was.line {
			if st.site == name {
				r.line = append(r.line, st)
			}
		}
		all = append(all, r)
	}
	return all
}

// hold keeps an old base for a while when the base jumps, which it does at the end of a
// silence: others may still go by the old one.
func (h *History) hold(f *Frozen, s *Settings, sites []Site, now time.Time) {
	closed, any := f.closed(s, sites, now)
	is := min(crdt.TickOf(now.Add(-edgeAfter)), closed+1)
	was := h.was()
	if f.base, f.baseEnds = was.base, was.baseEnds; !now.Before(f.baseEnds) {
		f.base, f.baseEnds = 0, time.Time{}
	}
	switch {
	case !any || s.Policy == Escrow:
		is, f.base, f.baseEnds = 0, 0, time.Time{}
	case f.base == 0 && h.base > 0 && is > h.base+1 && now.Unix()-h.looked <= int64(settles/time.Second):
		f.base, f.baseEnds = h.base, now.Add(settles)
	}
	h.base, h.looked = is, now.Unix()
}

// Promise notes in h what each site that takes part may take by the view that was built last
// without hearing from this one: what it has, and its part. Once it has fallen silent, others
// have no more than the rest. It may go by what was known here up to a tick ago, so the most
// counts. anywhere is the site whose counter hands out the places of no site.
func (b *Builder) Promise(h *History, anywhere string) {
	p := b.bound()
	for i := range b.tally.sites {
		site := &b.tally.sites[i]
		at, known := h.find(site.name)
		if !known || site.own || site.frozen || site.back {
			continue
		}
		more := p.most[i]
		if site.name == anywhere {
			more += p.mostAnywhere
		}
		m := &h.marks[at].mark
		m.most.active = max(m.most.active, int32(min(site.active+more, maxCount)))
		m.most.rate = max(m.most.rate, int32(min(site.minute+more, maxCount)))
	}
}

// keep has f be what Observe returned last.
func (h *History) keep(f Frozen) {
	switch {
	case !f.Any() && len(f.line) == 0 && len(f.doubt) == 0 && len(f.back) == 0 && f.base == 0:
		h.frozen = nil
	case h.frozen == nil:
		kept := f
		h.frozen = &kept
	default:
		*h.frozen = f
	}
}

// was returns what Observe returned last.
func (h *History) was() Frozen {
	if h.frozen == nil {
		return Frozen{}
	}
	return *h.frozen
}

// Hidden returns the sites that have a part in the room, as of the last look, and none of
// whose nodes is among those in sight; nearly always there is none.
func (h *History) Hidden(s *Settings, inSight map[string]int) (sites []string) {
	was := h.was()
	for _, d := range was.doubt {
		if inSight[d.site] == 0 {
			sites = append(sites, d.site)
		}
	}
	for _, site := range was.sites {
		if s.freezes() && inSight[site] == 0 {
			sites = append(sites, site)
		}
	}
	return sites
}

// doubts returns the sites that are in doubt; nearly always there is none.
func (h *History) doubts(s *Settings, sites []Site, now time.Time) []doubt {
	var list []doubt
	for i := range sites {
		site := &sites[i]
		if site.Own || site.Closed == 0 {
			continue
		}
		if n := h.nodes(site.Name); site.Nodes < n && site.standing(s, now) == takesPart {
			list = append(list, doubt{site.Name, n})
		}
	}
	return list
}

// freezes reports whether silent sites keep their share at all. Where rights are
// the limit there are no shares: what a silent site owns stays its own anyway.
func (s *Settings) freezes() bool { return s.ShareFreeze >= 0 && s.Policy != Escrow }

// note keeps what sites are like while they are heard from. Membership notices
// that a site is gone long before its share is frozen, so nodes are noted only
// together with a tick that they closed.
func (h *History) note(sites []Site) {
	own := 0
	for i := range sites {
		site := &sites[i]
		if site.Own {
			own = 1
		}
		if site.Nodes <= 0 || site.Own { // the own site is never in doubt
			continue
		}
		if at, known := h.find(site.Name); !known {
			h.marks = slices.Insert(h.marks, at, siteMark{site.Name, mark{closed: site.Closed, nodes: site.Nodes}})
		} else if m := &h.marks[at]; site.Closed > m.closed {
			m.closed, m.nodes = site.Closed, site.Nodes
			m.most, m.before = promised{}, m.most
		}
	}
	if len(h.marks)+own > 2*len(sites) {
		h.forget(sites)
	}
}

// forget drops sites that nobody speaks of any more.
func (h *History) forget(sites []Site) {
	named := make(map[string]bool, len(sites))
	for i := range sites {
		named[sites[i].Name] = true
	}
	h.marks = slices.Clip(slices.DeleteFunc(h.marks, func(m siteMark) bool { return !named[m.site] }))
}

// still returns what is left of frozen: those who were silent before and still are.
func (h *History) still(s *Settings, sites []Site, now time.Time) Frozen {
	return h.was().only(func(name string) bool {
		at := slices.IndexFunc(sites, func(site Site) bool { return site.Name == name })
		return at >= 0 && sites[at].standing(s, now) == silent
	})
}

// draw gives stakes to all who are silent since now. Whoever was silent before
// keeps what they had. One who fell silent earlier goes first, with the others
// still there: so a node that was not looking, or not running, comes to the line
// that its mates drew one by one.
func (h *History) draw(s *Settings, sites []Site, now time.Time) Frozen {
	f := h.still(s, sites, now)
	for {
		closed, more := int64(math.MaxInt64), false
		for i := range sites {
			if site := &sites[i]; site.standing(s, now) == silent && !f.Has(site.Name) {
				closed, more = min(closed, site.Closed), true
			}
		}
		if !more {
			return f
		}
		f = f.with(f.divide(s, sites, closed, now))
	}
}

// divide divides what nobody has frozen between all others who matter, as those
// fall silent who last closed a tick: by the traffic of the newest minute that
// they have closed. While that is below the limit, the rest of the room belongs to
// nobody, and each site gets the same of it. Numbers of nodes would be fairer, but
// that of a site out of sight is not known to a node that has just started, nor
// whether those in sight there are as many; a line that sides draw differently
// is worse than one that is drawn crudely.
func (f Frozen) divide(s *Settings, sites []Site, closed int64, now time.Time) []siteShare {
	rest := uint64(whole)
	for _, stake := range f.line {
		rest -= stake.to - stake.from
	}
	var from []*Site
	for i := range sites {
		if site := &sites[i]; site.standing(s, now) != left && !f.Has(site.Name) {
			from = append(from, site)
		}
	}
	slices.SortFunc(from, func(a, b *Site) int { return cmp.Compare(a.Name, b.Name) })
	minute := (closed+1)/ticksPerMinute - 1
	shares := make([]siteShare, len(from))
	seen, alike := make([]int, len(from)), make([]int, len(from))
	for i, site := range from {
		is := site.Closed == closed && site.standing(s, now) == silent
		shares[i] = siteShare{site: site.Name, silent: is}
		seen[i], alike[i] = seenIn(site, minute), 1
	}
	limit := part(min(s.TotalActiveUsers, s.NewUsersPerMinute), rest)
	claimed, free := Shares(int(rest), limit, seen)
	for i, n := range Apportion(free, alike) {
		shares[i].share = uint64(claimed[i] + n)
	}
	return shares
}
