package room

import (
	"slices"
	"testing"
	"time"
)

// siteRights is what the nodes of one site own of a room under Escrow: what all
// ledgers, loans and transfers come to, done at once. Where rights are is not
// these rules' business; whose turn it is to use one is.
type siteRights struct {
	places, rate int
	used         int         // by leases
	cools        []time.Time // when rate rights that were used may be used again, in order
}

func (r *siteRights) free() int { return r.places - r.used }

func (r *siteRights) freeRate(now time.Time) int {
	warm := 0
	for warm < len(r.cools) && !r.cools[warm].After(now) {
		warm++
	}
	r.cools = slices.Delete(r.cools, 0, warm)
	return r.rate - len(r.cools)
}

// supply has as many rights as the limits of the moment have it: the first site
// makes what is missing, and burns what is too much as far as it is free anywhere.
func (m *mesh) supply() {
	if m.rights == nil {
		m.rights = make([]siteRights, len(m.sites))
	}
	s, _ := m.settings.At(m.now)
	places, rate := s.TotalActiveUsers, s.NewUsersPerMinute
	for i := range m.rights {
		places -= m.rights[i].places
		rate -= m.rights[i].rate
	}
	if first := &m.rights[0]; places > 0 || rate > 0 {
		first.places += max(0, places)
		first.rate += max(0, rate)
	}
	for i := range m.rights {
		r := &m.rights[i]
		burn := min(max(0, -places), max(0, r.free()))
		r.places -= burn
		places += burn
		burn = min(max(0, -rate), max(0, r.freeRate(m.now)))
		r.rate -= burn
		rate += burn
	}
}

// right uses a right for a session at n. A site that has none gets one of another
// site, unless a cut is between them. It reports whether there was one.
func (m *mesh) right(n *meshNode) bool {
	m.supply()
	own := &m.rights[n.site.index()]
	fetch := func(has func(r *siteRights) bool, move func(from *siteRights)) bool {
		for i := range m.rights {
			if r := &m.rights[i]; !has(own) && has(r) && !n.site.cut && !m.sites[i].cut {
				move(r)
			}
		}
		return has(own)
	}
	return fetch(func(r *siteRights) bool { return r.free() > 0 }, func(from *siteRights) { from.places--; own.places++ }) &&
		fetch(func(r *siteRights) bool { return r.freeRate(m.now) > 0 }, func(from *siteRights) { from.rate--; own.rate++ })
}

// useRight is called when a session begins, endRight when it ends.
func (m *mesh) useRight(l *lease) {
	if l.right {
		r := &m.rights[l.anchor.site.index()]
		r.used++
		r.cools = append(r.cools, m.now.Add(time.Minute))
		m.checkHeld()
	}
}

func (m *mesh) endRight(l *lease) {
	if l.right {
		m.rights[l.anchor.site.index()].used--
	}
}

// showRights puts into counts what a site owns.
func (m *mesh) showRights(in *Input) {
	if m.settings.Policy != Escrow {
		return
	}
	m.supply()
	for i := range in.Sites {
		in.Sites[i].Held, in.Sites[i].HeldRate = int64(m.rights[i].places), int64(m.rights[i].rate)
	}
}

// checkHeld looks at whether more are in than there are rights: only those whose
// limits were lowered may be.
func (m *mesh) checkHeld() {
	for i := range m.rights {
		if r := &m.rights[i]; r.used > r.places || len(r.cools) > r.rate && r.freeRate(m.now) < 0 {
			m.failAt("site %s has %d in with %d places, %d cooling of %d", m.sites[i].name, r.used, r.places, len(r.cools), r.rate)
		}
	}
}

// TestRightsAreUsed: while people wait, hardly any place lies idle and no part of
// the rate does, whichever limit binds, and the order is kept as well as by
// policies under which places wait for people.
func TestRightsAreUsed(t *testing.T) {
	for _, c := range []struct {
		name        string
		total, rate int
		visitors    int
	}{{"places", 500, 400, 6000}, {"rate", 100_000, 60, 1200}, {"high rate", 100_000, 300, 6000}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := Settings{TotalActiveUsers: c.total, NewUsersPerMinute: c.rate, Policy: Escrow, SessionDuration: time.Minute}
			m := newMesh(s, 250*time.Millisecond, 1200*time.Millisecond, 1, 3, 3, 3, 3, 3)
			m.run(time.Second)
			for range c.visitors {
				at := time.Duration(m.rng.Int64N(int64(14 * time.Minute)))
				m.visit(m.rng.IntN(len(m.nodes)), at, habits{stay: time.Minute + time.Duration(m.rng.Int64N(int64(2*time.Minute)))})
			}
			m.run(5 * time.Minute)
			m.used, m.busy = 0, 0
			before := len(m.admitted)
			m.run(8 * time.Minute)
			idle, used := 1-m.used/m.busy, float64(len(m.admitted)-before)/float64(8*c.rate)
			t.Logf("%.2f %% of the places idle, %.1f %% of the rate used, order error %.4f, at most %d in and %d in 60 s",
				100*idle, 100*used, m.orderError(), m.peak, m.peakRate)
			if m.waiting < 100 {
				t.Errorf("only %d wait at the end", m.waiting)
			}
			if idle > 0.01 && used < 0.99 {
				t.Errorf("%.2f %% of the places idle, %.1f %% of the rate used", 100*idle, 100*used)
			}
			if e := m.orderError(); e > 0.015 {
				t.Errorf("order error %.4f", e)
			}
			if m.peak > c.total || m.peakRate > c.rate {
				t.Errorf("%d in, %d in 60 s", m.peak, m.peakRate)
			}
		})
	}
}
