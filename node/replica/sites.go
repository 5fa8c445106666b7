package replica

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// rereadAfter is how long counts of another site are taken as read when no news
// of it has come. What time alone does to them, it does within minutes.
const rereadAfter = time.Second

// Sites returns what every known site counts of a room, in order of name. A
// site that has fallen silent stays in the list for a day; its counts fade, and
// Changed tells since when.
func (r *Replica) Sites(room crdt.RoomID, now time.Time) []SiteCounts {
	return r.SitesInto(nil, room, now)
}

// SitesInto is Sites in the memory of an earlier result for the same room, which
// it overwrites. Counts that cannot have changed it leaves as they are; whoever
// has written to them calls Reread.
func (r *Replica) SitesInto(dst []SiteCounts, room crdt.RoomID, now time.Time) []SiteCounts {
	own, hasOwn := r.rows.SiteHeader(r.cfg.Site, now)
	if names := r.namesOfSites(hasOwn); !sameSites(dst, names) {
		dst = make([]SiteCounts, len(names))
		for i, name := range names {
			dst[i] = SiteCounts{Site: name, Own: name == r.cfg.Site}
		}
	}
	for i := range dst {
		s := &dst[i]
		if s.Own {
			s.Closed, s.Changed = own.Closed, own.Changed
			if !r.rows.Same(s.basis, s.Site, room, now, r.cfg.Retention) {
				s.Counts.Reset()
				s.basis = r.rows.AddSite(&s.Counts, s.Site, room, now, r.cfg.Retention)
			}
			continue
		}
		h, _ := r.sums.Header(s.Site)
		s.Closed, s.Changed = h.Closed, h.Changed
		known := r.sums.Known(s.Site)
		if s.other == nil {
			s.other = new(summaryRead)
		} else if age := now.Sub(s.other.at); s.other.known == known && age >= 0 && age < rereadAfter {
			continue
		}
		s.other.known, s.other.at = known, now
		s.Counts.Reset()
		r.sums.Add(&s.Counts, s.Site, room, now, r.cfg.Retention)
	}
	return dst
}

// Reread has the next SitesInto read the counts anew.
func (s *SiteCounts) Reread() {
	s.basis = crdt.Basis{}
	if s.other != nil {
		s.other.at = time.Time{}
	}
}

// namesOfSites returns the names of the sites that are known, in order.
func (r *Replica) namesOfSites(hasOwn bool) []string {
	is := siteNames{of: r.sums.Shape(), hasOwn: hasOwn}
	if n := &r.names; n.all == nil || n.of != is.of || n.hasOwn != is.hasOwn {
		is.all = []string{} // known to be empty
		for site := range r.sums.Sites() {
			if site != r.cfg.Site {
				is.all = append(is.all, site)
			}
		}
		if hasOwn {
			is.all = append(is.all, r.cfg.Site)
		}
		slices.Sort(is.all)
		*n = is
	}
	return r.names.all
}

// siteNames are the names of sites, and what they were gathered from.
type siteNames struct {
	all    []string // nil: not gathered yet
	of     uint64   // the shape of the summaries
	hasOwn bool
}

// sameSites reports whether a list is of these sites.
func sameSites(list []SiteCounts, names []string) bool {
	return slices.EqualFunc(list, names, func(s SiteCounts, name string) bool { return s.Site == name })
}

// OwnChanges returns a number that grows with every change of a room in our row.
func (r *Replica) OwnChanges(room crdt.RoomID) uint64 { return r.rows.Changes(r.cfg.Self, room) }

// OwnAdmitted adds what our row counts as admitted in the ticks from … to, both
// included, to m.
func (r *Replica) OwnAdmitted(m *map[int64]int64, room crdt.RoomID, from, to int64) {
	r.rows.AddTicks(m, r.cfg.Self, room, crdt.Admitted, from, to)
}
