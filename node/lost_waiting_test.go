package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// line is a queue of people with browsers, and the truth about it.
type line struct {
	*world
	people []*person
	polled map[*person]time.Time // the last time
	gaveUp map[*person]bool
	at     int
	loyal  bool // who has a node stays there while it runs
}

// polls has everybody who is due ask a node that runs.
func (l *line) polls() {
	for _, p := range l.people {
		if l.gaveUp[p] || l.now.Before(p.next) {
			continue
		}
		if !l.loyal || p.at == nil || p.at.core == nil {
			p.at = l.next()
		}
		if p.in && p.pass.Accepted() {
			l.gaveUp[p] = true // has seen the page, and leaves
			continue
		}
		v := l.ask(p)
		l.polled[p] = l.now
		p.next = l.now.Add(max(time.Second, v.Refresh))
	}
}

// next returns the node that a balancer takes next.
func (l *line) next() *machine {
	for l.at++; l.nodes[l.at%len(l.nodes)].core == nil; l.at++ {
	}
	return l.nodes[l.at%len(l.nodes)]
}

// truth returns how many people stand in line: who has asked, is not in, and asks again.
func (l *line) truth() (n int) {
	for p := range l.polled {
		if !p.in && !l.gaveUp[p] {
			n++
		}
	}
	return n
}

func (l *line) join(n int) {
	for range n {
		l.people = append(l.people, &person{next: l.now})
	}
}

// shown returns how many each node that runs shows as waiting: the fewest and the most.
func (l *line) shown() (least, most int) {
	least = 1 << 30
	for _, m := range l.nodes {
		if m.core != nil && m.core.Ready() {
			n := m.core.View(roomID).Waiting
			least, most = min(least, n), max(most, n)
		}
	}
	return least, most
}

// finds has one node hear who lives; the others do not.
func (l *line) finds(m *machine) {
	var peers []replica.Peer
	for _, o := range l.nodes {
		if o != m && o.core != nil {
			peers = append(peers, replica.Peer{ID: o.id, Boot: o.boot, Site: o.site, Ready: o.core.Ready()})
		}
	}
	m.core.SetPeers(peers, l.now)
}

func queueSettings() room.Settings {
	s := testSettings(40)
	s.Policy, s.RefreshInterval, s.SessionDuration = room.Escrow, 20*time.Second, 30*time.Second
	s.DisableSessionRenewal = true
	s.BucketSpan = time.Minute
	return s.WithDefaults()
}

// crowded returns a line of 400 in which some are let in every second.
func crowded(t *testing.T, s room.Settings, loyal bool, sites ...string) *line {
	l := &line{loyal: loyal, world: newWorld(t, s, sites...), polled: map[*person]time.Time{}, gaveUp: map[*person]bool{}}
	for range 60 {
		l.join(8)
		l.polls()
		l.run(time.Second)
	}
	for range 30 {
		l.polls()
		l.run(time.Second)
	}
	return l
}

// watch compares what is shown with the truth for a while, and returns by how much it was
// away at most, in both directions, and for how long it was too many by more than slack.
func (l *line) watch(d time.Duration, slack int, each func(t time.Duration)) (under, over int, twice time.Duration) {
	const step = 200 * time.Millisecond
	for at := time.Duration(0); at < d; at += step {
		if each != nil {
			each(at)
		}
		l.polls()
		l.run(step)
		least, most := l.shown()
		n := l.truth()
		under, over = max(under, n-least), max(over, most-n)
		if most-n > slack {
			twice += step
		}
		if at%(5*time.Second) == 0 {
			l.t.Logf("%v: true %d, shown %d to %d", at, n, least, most)
		}
	}
	return under, over, twice
}

// TestWaitingOfADeadNodeIsCountedOnce kills one of four nodes, and two, in one site. The others
// find it at different times.
func TestWaitingOfADeadNodeIsCountedOnce(t *testing.T) {
	for _, dead := range []int{1, 2} {
		l := crowded(t, queueSettings(), false, "a", "a", "a", "a")
		const slack = 8
		if under, over, _ := l.watch(10*time.Second, slack, nil); under > slack || over > slack {
			t.Fatalf("with all nodes %d too few and %d too many are shown", under, over)
		}
		for _, m := range l.nodes[4-dead:] {
			m.core = nil
		}
		under, over, twice := l.watch(90*time.Second, slack, func(at time.Duration) {
			for i, m := range l.nodes[:4-dead] {
				if at == 6*time.Second+time.Duration(i)*600*time.Millisecond {
					l.finds(m)
				}
			}
		})
		t.Logf("%d dead: %d too few and %d too many at most, more than %d for %v", dead, under, over, slack, twice)
		if under > slack {
			t.Errorf("%d dead: %d too few are shown: who comes later would be let in first", dead, under)
		}
		if twice > 2*time.Second {
			t.Errorf("%d dead: visitors are counted twice for %v, %d of them at most", dead, twice, over)
		}
	}
}

// TestWaitingIsCountedOnceThroughARestart has a node start again, or one of another id in its
// place, before its row has faded.
func TestWaitingIsCountedOnceThroughARestart(t *testing.T) {
	for _, name := range []string{"the same id", "another id"} {
		s := queueSettings()
		l := crowded(t, s, false, "a", "a", "a")
		const slack = 8
		l.kill(l.nodes[2])
		l.watch(8*time.Second, slack, nil)
		if name == "another id" {
			l.nodes = append(l.nodes, &machine{id: crdt.NodeID{9, 0xaa}, site: "a"})
		}
		l.start(l.nodes[len(l.nodes)-1], s)
		under, over, twice := l.watch(80*time.Second, slack, nil)
		t.Logf("%s: %d too few and %d too many at most, more than %d for %v", name, under, over, slack, twice)
		if name == "another id" {
			twice = 0 // it takes over visitors of those that run as well, which count them until they have polled elsewhere for a while
		}
		if under > slack || twice > s.RefreshInterval {
			t.Errorf("%s: %d too few and %d too many are shown, too many for %v", name, under, over, twice)
		}
	}
}

// TestWaitingOfADeadSiteIsCountedOnce kills all nodes of one of two sites.
func TestWaitingOfADeadSiteIsCountedOnce(t *testing.T) {
	s := queueSettings()
	l := crowded(t, s, true, "a", "b")
	l.kill(l.nodes[1])
	const slack = 8
	under, over, twice := l.watch(70*time.Second, slack, nil)
	t.Logf("%d too few and %d too many at most, more than %d for %v", under, over, slack, twice)
	if twice > s.RefreshInterval {
		t.Errorf("visitors are counted twice for %v, %d of them at most", twice, over)
	}
}

// TestANodeThatWasNotDead is taken for dead for a while by one of its site: whoever is counted
// there is counted again only until that is noticed.
func TestANodeThatWasNotDead(t *testing.T) {
	l := crowded(t, queueSettings(), false, "a", "a", "a")
	const slack = 8
	gone := l.nodes[2]
	apart := true
	l.cutOff = func(a, b *machine) bool { return apart && (a == gone || b == gone) }
	l.members()
	l.watch(15*time.Second, slack, nil)
	apart = false
	l.members()
	l.watch(70*time.Second, slack, nil)
	under, over, _ := l.watch(10*time.Second, slack, nil)
	if under > slack || over > slack {
		t.Errorf("long after the cut %d too few and %d too many are shown", under, over)
	}
}

// TestPlacesOfThoseThatRunAreUsed looks at the places of three nodes after the fourth died, while its
// sessions are still counted and its rights are not any more.
func TestPlacesOfThoseThatRunAreUsed(t *testing.T) {
	s := queueSettings()
	s.TotalActiveUsers, s.SessionDuration = 80, 90*time.Second
	l := crowded(t, s, false, "a", "a", "a", "a")
	l.watch(40*time.Second, 0, nil)
	l.kill(l.nodes[3])
	l.watch(35*time.Second, 0, nil)
	idle, held := int64(0), int64(0)
	l.watch(50*time.Second, 0, func(time.Duration) {
		for _, m := range l.nodes[:3] {
			is := m.core.order[0].Rights()
			idle, held = idle+is.Held.Places-is.InUse, held+is.Held.Places
		}
	})
	if part := float64(idle) / float64(held); part > 0.03 {
		t.Errorf("%.0f %% of the places of the nodes that run were idle while people waited", 100*part)
	} else {
		t.Logf("%.1f %% idle", 100*part)
	}
}

// TestActiveOfADeadNodeEndsWithItsSessions where those are shorter than a row of a node that runs may be silent.
func TestActiveOfADeadNodeEndsWithItsSessions(t *testing.T) {
	s := queueSettings()
	s.SessionDuration = 12 * time.Second
	l := crowded(t, s, false, "a", "a", "a")
	l.kill(l.nodes[2])
	after := time.Duration(0)
	for ; after < 40*time.Second; after += 200 * time.Millisecond {
		l.polls()
		l.run(200 * time.Millisecond)
		use := int64(0)
		for _, m := range l.nodes[:2] {
			use += m.core.order[0].Rights().InUse
		}
		if v := l.nodes[0].core.View(roomID); after > s.SessionDuration+2*time.Second && int64(v.Active) > use+8 { // a view is a moment old
			t.Fatalf("%v after the death %d are shown as active, and %d are", after, v.Active, use)
		}
	}
}
