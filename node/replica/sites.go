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
// has written to those of another site calls Reread.
func (r *Replica) SitesInto(dst []SiteCounts, room crdt.RoomID, now time.Time) []SiteCounts {
	own, hasOwn := r.rows.SiteHeader(r.cfg.Site, now)
	if !r.sameSites(dst, hasOwn) {
		dst = r.namesOfSites(hasOwn)
	}
	for i := range dst {
		s := &dst[i]
		if s.Own {
			s.Closed, s.Changed = own.Closed, own.Changed
			s.Counts.Reset()
			r.rows.AddSite(&s.Counts, s.Site, room, now, r.cfg.Retention)
			continue
		}
		h, _ := r.sums.Header(s.Site)
		s.Closed, s.Changed = h.Closed, h.Changed
		known := r.sums.Known(s.Site)
		if age := now.Sub(s.read); s.known == known && age >= 0 && age < rereadAfter {
			continue
		}
		s.known, s.read = known, now
		s.Counts.Reset()
		r.sums.Add(&s.Counts, s.Site, room, now, r.cfg.Retention)
	}
	return dst
}

// Reread has the next SitesInto read the counts anew.
func (s *SiteCounts) Reread() { s.read = time.Time{} }

// sameSites reports whether a list names the sites that are known.
func (r *Replica) sameSites(list []SiteCounts, hasOwn bool) bool {
	n := 0
	if hasOwn {
		n = 1
	}
	for site := range r.sums.Sites() {
		if site != r.cfg.Site {
			n++
		}
	}
	if n != len(list) {
		return false
	}
	for i := range list {
		if s := &list[i]; s.Own != (s.Site == r.cfg.Site) || s.Own && !hasOwn {
			return false
		} else if _, ok := r.sums.Header(s.Site); !s.Own && !ok {
			return false
		}
	}
	return true
}

func (r *Replica) namesOfSites(hasOwn bool) []SiteCounts {
	var names []string
	for site := range r.sums.Sites() {
		if site != r.cfg.Site {
			names = append(names, site)
		}
	}
	if hasOwn {
		names = append(names, r.cfg.Site)
	}
	slices.Sort(names)
	list := make([]SiteCounts, len(names))
	for i, name := range names {
		list[i] = SiteCounts{Site: name, Own: name == r.cfg.Site}
	}
	return list
}

// OwnAdmitted adds what our row counts as admitted in the ticks from … to, both
// included, to m.
func (r *Replica) OwnAdmitted(m *map[int64]int64, room crdt.RoomID, from, to int64) {
	r.rows.AddTicks(m, r.cfg.Self, room, crdt.Admitted, from, to)
}
