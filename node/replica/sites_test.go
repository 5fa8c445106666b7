package replica

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func sameCounts(a, b []SiteCounts) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.Site != y.Site || x.Own != y.Own || x.Closed != y.Closed || !x.Changed.Equal(y.Changed) || x.Counts.Active != y.Counts.Active ||
			!maps.Equal(x.Counts.Waiting, y.Counts.Waiting) || !maps.Equal(x.Counts.Seen, y.Counts.Seen) || !maps.Equal(x.Counts.Admitted, y.Counts.Admitted) {
			return false
		}
	}
	return true
}

// TestSitesInto reads counts into the same memory through all that can happen to
// them and expects what a fresh reading gives: of the own site always, of others at once
// where there is news, and within a second where only time has passed. Whoever writes
// to the counts says so.
func TestSitesInto(t *testing.T) {
	m := newMesh(t, 4)
	nodes := m.sites(2, "a", "b", "c")
	reader, room := nodes[0], roomID(0)
	var list []SiteCounts
	differs := time.Duration(0)
	look := func() {
		t.Helper()
		list = reader.SitesInto(list, room, m.now)
		fresh := reader.Sites(room, m.now)
		if i := slices.IndexFunc(list, func(s SiteCounts) bool { return s.Own }); i >= 0 && !sameCounts(list[i:i+1], fresh[i:i+1]) {
			t.Fatalf("the own site's counts read again are\n%+v, want\n%+v", list[i], fresh[i])
		}
		if sameCounts(list, fresh) {
			differs = 0
		} else if differs += stepSpan; differs > rereadAfter {
			t.Fatalf("counts read again differ for %v:\n%+v\n%+v", differs, list, reader.Sites(room, m.now))
		}
		if m.rng.IntN(20) == 0 {
			s := &list[m.rng.IntN(len(list))]
			s.Counts.Active += 1000
			s.Reread()
		}
	}
	for step := range 12_000 { // two minutes
		switch step {
		case 3000: // a site dies; its counts fade
			m.kill(nodes[4])
			m.kill(nodes[5])
		case 11_000: // another one comes
			m.start(6, "d")
		}
		x := nodes[m.rng.IntN(len(nodes))]
		if x.alive && m.rng.IntN(10) == 0 && step < 10_000 {
			tick := crdt.TickOf(m.now)
			for _, k := range []crdt.Key{
				{Room: room, Kind: crdt.Active},
				{Room: room, Kind: crdt.Seen, Tick: tick},
				{Room: room, Kind: crdt.Waiting, Tick: m.now.Unix() / 60 * 60},
				{Room: room, Kind: crdt.Admitted, Tick: tick},
			} {
				x.Add(k, 1, uint64(m.rng.IntN(2)), m.now)
			}
		}
		m.step()
		look()
	}
	if len(list) != 4 {
		t.Errorf("%d sites at the end, want four", len(list))
	}
}

func TestOwnAdmitted(t *testing.T) {
	m := newMesh(t, 5)
	x := m.sites(1, "a")[0]
	tick := crdt.TickOf(m.now)
	for back := range int64(5) {
		x.rows.Add(x.cfg.Self, crdt.Key{Room: roomID(0), Kind: crdt.Admitted, Tick: tick - back}, uint64(10-back), 0, m.now)
	}
	var got map[int64]int64
	x.OwnAdmitted(&got, roomID(0), tick-2, tick+1)
	if want := map[int64]int64{tick: 10, tick - 1: 9, tick - 2: 8}; !maps.Equal(got, want) {
		t.Errorf("admitted = %v, want %v", got, want)
	}
	x.OwnAdmitted(&got, roomID(9), tick-2, tick)
	if len(got) != 3 {
		t.Errorf("a room without counts has some: %v", got)
	}
}
