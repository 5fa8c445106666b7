package replica

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func percentile(ds []time.Duration, p float64) time.Duration {
	slices.Sort(ds)
	return ds[min(len(ds)-1, int(p*float64(len(ds))))]
}

func TestNewsSpreadsInTime(t *testing.T) {
	m := newMesh(t, 1)
	nodes := m.sites(3, "east", "west")
	var near, far []time.Duration
	for i := range 300 {
		m.run(time.Duration(m.rng.IntN(1000)) * time.Millisecond)
		x, room, began := nodes[m.rng.IntN(len(nodes))], roomID(i), m.now
		m.active(x, room, uint64(i+1), 0)
		want := view{active: int64(i + 1)}
		m.until(5*time.Second, "the site sees it", func() bool {
			return !slices.ContainsFunc(nodes, func(y *member) bool {
				return y.peer.Site == x.peer.Site && y.view(x.peer.Site, room, m.now) != want
			})
		})
		near = append(near, m.now.Sub(began))
		m.until(5*time.Second, "all see it", func() bool { return m.all(x.peer.Site, room, want) })
		far = append(far, m.now.Sub(began))
	}
	t.Logf("own site: p50 %v p99 %v; other site: p50 %v p99 %v",
		percentile(near, .5), percentile(near, .99), percentile(far, .5), percentile(far, .99))
	if p := percentile(near, .99); p > 500*time.Millisecond {
		t.Errorf("p99 in the site: %v, want at most 500 ms", p)
	}
	if p := percentile(far, .99); p > 2*time.Second {
		t.Errorf("p99 between sites: %v, want at most 2 s", p)
	}
	m.noErrors()
}

func TestUrgentNewsDoesNotWait(t *testing.T) {
	m := newMesh(t, 2)
	nodes := m.sites(2, "east", "west")
	relay := nodes[slices.IndexFunc(nodes, func(x *member) bool { return x.lead.on })]
	var worst time.Duration
	for i := range 50 {
		m.run(time.Duration(m.rng.IntN(1000)) * time.Millisecond)
		m.active(relay, roomID(i), 1, 0)
		relay.Urgent(roomID(i))
		worst = max(worst, m.until(time.Second, "the other relay sees it", func() bool {
			return slices.ContainsFunc(nodes, func(x *member) bool {
				return x.peer.Site != relay.peer.Site && x.view(relay.peer.Site, roomID(i), m.now).active == 1
			})
		}))
	}
	if worst > 150*time.Millisecond {
		t.Errorf("urgent news took up to %v, want at most 150 ms", worst)
	}
}

// TestCountsSettleUnderFaults lets all nodes count while messages are lost,
// doubled and late and a cut goes through a site, and compares with the truth
// once the faults have ended. Meanwhile no node sees a counter of its own site
// that only grows fall. (Other sites may for a moment, when a relay takes over
// that was on the other side of the cut.)
func TestCountsSettleUnderFaults(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := newMesh(t, seed)
			nodes := m.sites(3, "east", "west")
			m.loss, m.dup, m.maxDelay = .15, .1, 400*time.Millisecond
			truth := map[string]*view{"east": {}, "west": {}}
			highest := map[*member]map[string]int64{}
			room := roomID(0)
			for i := range 400 {
				x := nodes[m.rng.IntN(len(nodes))]
				w := truth[x.peer.Site]
				switch m.rng.IntN(3) {
				case 0:
					m.seen(x, room, 1)
					w.seen++
				case 1:
					m.active(x, room, 1, 0)
					w.active++
				case 2:
					m.active(x, room, 0, 1)
					w.active--
				}
				if i == 100 {
					m.split(nodes[0], nodes[1], nodes[2], nodes[3])
				} else if i == 250 {
					m.heal()
				}
				m.run(time.Duration(m.rng.IntN(200)) * time.Millisecond)
				for _, y := range nodes {
					if highest[y] == nil {
						highest[y] = map[string]int64{}
					}
					for site := range truth {
						got := y.view(site, room, m.now).seen
						if y.peer.Site == site && got < highest[y][site] {
							t.Fatalf("%s seen at %s fell from %d to %d", site, y.peer.ID, highest[y][site], got)
						}
						highest[y][site] = got
					}
				}
			}
			m.loss, m.dup = 0, 0
			for site, want := range truth {
				m.until(10*time.Second, fmt.Sprintf("all see %+v of %s", *want, site), func() bool { return m.all(site, room, *want) })
			}
			m.noErrors()
		})
	}
}

func TestLongCutHeals(t *testing.T) {
	m := newMesh(t, 3)
	nodes := m.sites(3, "east", "west")
	room := roomID(0)
	m.active(nodes[0], room, 5, 0)
	m.active(nodes[3], room, 7, 0)
	m.until(3*time.Second, "all see both", func() bool {
		return m.all("east", room, view{active: 5}) && m.all("west", room, view{active: 7})
	})
	m.split(nodes[0], nodes[1], nodes[2])
	m.run(10 * time.Minute)
	if got := nodes[0].view("west", room, m.now); got.active != 0 {
		t.Errorf("west after ten minutes of silence: %+v, want it faded", got)
	}
	m.active(nodes[0], roomID(1), 11, 0)
	m.seen(nodes[3], room, 13)
	m.heal()
	took := m.until(10*time.Second, "both see all of each other", func() bool {
		return m.all("east", room, view{active: 5}) && m.all("east", roomID(1), view{active: 11}) &&
			m.all("west", room, view{active: 7, seen: 13})
	})
	t.Logf("healed after %v", took)
	m.noErrors()
}

// TestCutInsideSiteHeals checks that the rows that a half forgot while it could
// not hear them come back whole.
func TestCutInsideSiteHeals(t *testing.T) {
	m := newMesh(t, 4)
	nodes := m.sites(4, "east")
	for i, x := range nodes {
		m.active(x, roomID(0), uint64(i+1), 0)
	}
	m.until(time.Second, "all see ten", func() bool { return m.all("east", roomID(0), view{active: 10}) })
	m.split(nodes[0], nodes[1])
	m.run(12 * time.Minute)
	if got := nodes[0].view("east", roomID(0), m.now); got.active != 3 {
		t.Errorf("one half sees %+v, want its own 3", got)
	}
	m.heal()
	took := m.until(10*time.Second, "all see ten again", func() bool { return m.all("east", roomID(0), view{active: 10}) })
	t.Logf("healed after %v", took)
	m.noErrors()
}

// TestForgottenRowIsSentAgain cuts two members off without membership noticing,
// so that one forgets the other's row while that goes on from where it was.
// No pull helps: the acknowledgements have to say what is gone.
func TestForgottenRowIsSentAgain(t *testing.T) {
	m := newMesh(t, 14)
	m.pullEvery = 24 * time.Hour
	nodes := m.sites(2, "east")
	m.active(nodes[0], roomID(0), 5, 0)
	m.until(time.Second, "both see five", func() bool { return m.all("east", roomID(0), view{active: 5}) })
	m.run(time.Second) // and it is acknowledged
	m.split(nodes[0])
	for k := range m.cut {
		m.cut[k] = m.now.Add(time.Hour)
	}
	m.run(15 * time.Minute)
	if got := nodes[1].rows.Known(nodes[0].peer.incarnation()); got != 0 {
		t.Fatalf("the row is still known up to %d", got)
	}
	m.heal()
	m.until(3*time.Second, "both see five again", func() bool { return m.all("east", roomID(0), view{active: 5}) })
	m.noErrors()
}

// TestFormerRelayIsSilent pulls from a node that has laid down the lead: what it
// published last is old, and its version may be high.
func TestFormerRelayIsSilent(t *testing.T) {
	m := newMesh(t, 15)
	nodes := m.sites(2, "east", "west")
	for _, x := range nodes[:2] {
		asked := x.lead.on
		f := &frame{kind: pull, flags: flagFill}
		// Every node led before it knew of the other.
		x.sums.TakeOver("east", x.peer.incarnation(), 0, m.now)
		out, err := x.Receive(nodes[2].peer, f.encode(), m.now)
		if err != nil || len(out) != 1 {
			t.Fatalf("got %d messages, error %v, want one answer", len(out), err)
		}
		a, err := decodeFrame(out[0].Payload, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(a.sums.Pieces) > 0; got != asked {
			t.Errorf("a node that leads: %v; its answer holds its site's summary: %v", asked, got)
		}
		if !a.rows.Empty() {
			t.Error("rows left the site")
		}
	}
}

func TestJoinerIsFilledBeforeReady(t *testing.T) {
	m := newMesh(t, 5)
	nodes := m.sites(3, "east", "west")
	const rooms = 400 // several messages' worth
	for i := range rooms {
		for _, x := range nodes[:3] {
			m.active(x, roomID(i), 2, 1)
			for back := range int64(30) {
				x.Add(crdt.Key{Room: roomID(i), Kind: crdt.Waiting, Tick: m.now.Unix() - 5*back}, 3, 1, m.now)
			}
		}
	}
	m.run(5 * time.Second)
	m.kill(nodes[2])
	m.run(detection + 2*time.Second)
	m.maxDelay = 50 * time.Millisecond
	x := m.start(6, "east")
	if x.Ready() {
		t.Fatal("ready before it has asked anybody")
	}
	took := m.until(5*time.Second, "the joiner is ready", x.Ready)
	for i := range rooms {
		if got := x.view("east", roomID(i), m.now); got.active != 3 || got.waiting != 180 {
			t.Fatalf("room %d: the joiner became ready with %+v", i, got)
		}
	}
	t.Logf("filled with %d bytes after %v", m.bytes, took)
	m.noErrors()
}

func TestWholeSiteRestarts(t *testing.T) {
	for _, silent := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(silent, " do not answer"), func(t *testing.T) {
			m := newMesh(t, 6)
			for n := range 4 {
				if err := m.add(n, "east").Set("of the last start", []byte("v"), m.now); err != nil {
					t.Fatal(err)
				}
			}
			// Some are members and never say a word, to the end the very one
			// that would go first.
			for _, x := range m.nodes[:silent] {
				m.split(x)
			}
			for k := range m.cut {
				m.cut[k] = m.now.Add(time.Hour) // membership does not notice
			}
			m.refresh()
			speaking := m.nodes[silent:]
			if slices.ContainsFunc(speaking, (*member).Ready) {
				t.Fatal("ready without having asked")
			}
			took := m.until(forsaken+time.Second, "all that speak are ready", func() bool {
				return !slices.ContainsFunc(speaking, func(x *member) bool { return !x.Ready() })
			})
			t.Logf("ready after %v", took)
		})
	}
}

// TestTheFirstOfASite is in a site that is new, in a mesh in which operators have set more than a
// few messages hold: it is ready once it knows all of that, and says for whom it waits as long as
// nobody answers. One that restarts knows what it knew, and waits for a while.
func TestTheFirstOfASite(t *testing.T) {
	for name, restarts := range map[string]bool{"it is new": false, "it restarts": true} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t, 8)
			nodes := m.sites(2, "east", "west")
			for n := range 40 {
				if err := nodes[n%2].Set(fmt.Sprint("page ", n), make([]byte, 60_000), m.now); err != nil {
					t.Fatal(err)
				}
			}
			m.run(5 * time.Second)
			x := m.add(9, "north")
			if restarts {
				if err := x.Set("of the last start", []byte("v"), m.now); err != nil {
					t.Fatal(err)
				}
			}
			m.refresh()
			m.split(x)
			for k := range m.cut {
				m.cut[k] = m.now.Add(time.Hour) // membership does not notice
			}
			m.run(forsaken - time.Second)
			if got := len(x.FillsFrom()); x.Ready() || got != 4 {
				t.Errorf("while nobody answers it is ready: %v, and waits for %d nodes, want not, and 4", x.Ready(), got)
			}
			m.run(time.Minute)
			if x.Ready() != restarts {
				t.Errorf("after a minute in which nobody answered it is ready: %v, want %v", x.Ready(), restarts)
			}
			m.heal()
			m.until(5*time.Second, "it is ready", x.Ready)
			if got := x.MapLen(); !restarts && got < 40 {
				t.Errorf("it became ready with %d of 40 pages", got)
			}
		})
	}
}

func TestAloneIsReadyAtOnce(t *testing.T) {
	m := newMesh(t, 7)
	if x := m.start(0, "east"); !x.Ready() {
		t.Error("a node without peers is not ready")
	}
}

func TestRelayIsReplaced(t *testing.T) {
	m := newMesh(t, 8)
	nodes := m.sites(3, "east", "west")
	room := roomID(0)
	m.active(nodes[0], room, 3, 0)
	m.until(3*time.Second, "all see three", func() bool { return m.all("east", room, view{active: 3}) })
	relay := slices.IndexFunc(nodes, func(x *member) bool { return x.peer.Site == "east" && x.lead.on })
	m.kill(nodes[relay])
	other := nodes[(relay+1)%3]
	m.active(other, room, 4, 0)
	m.until(10*time.Second, "the next relay speaks for the site", func() bool { return m.all("east", room, view{active: 7}) })
	// The dead relay was the anchor of three or of none; either way its row
	// fades and the site's count follows.
	want := view{active: 7}
	if relay == 0 {
		want.active = 4
	}
	m.until(2*time.Minute, "the dead row fades everywhere", func() bool { return m.all("east", room, want) })
	for _, site := range []string{"east", "west"} {
		for _, x := range nodes {
			for _, s := range x.Sites(room, m.now) {
				if x.alive && s.Site == site && s.Closed < crdt.TickOf(m.now)-3 {
					t.Errorf("%s sees %s closed up to %d, now is %d", x.peer.ID, site, s.Closed, crdt.TickOf(m.now))
				}
			}
		}
	}
	m.noErrors()
}

// TestRelayIsHeardAfterAUsurper lets a second node believe for a while that it
// speaks for the site. The true relay never doubts itself and has to find out
// that it is not heard any more.
func TestRelayIsHeardAfterAUsurper(t *testing.T) {
	m := newMesh(t, 9)
	nodes := m.sites(2, "east", "west")
	relay, usurper := nodes[0], nodes[1]
	if usurper.lead.on {
		relay, usurper = usurper, relay
	}
	for _, k := range [][2]crdt.NodeID{{usurper.peer.ID, relay.peer.ID}, {relay.peer.ID, usurper.peer.ID}} {
		m.cut[k] = m.now
	}
	m.run(12 * time.Second)
	if !relay.lead.on || !usurper.lead.on {
		t.Fatal("no two relays to tell apart")
	}
	m.heal()
	m.run(3 * time.Second)
	m.active(relay, roomID(0), 9, 0)
	m.until(5*time.Second, "the relay is heard", func() bool { return m.all("east", roomID(0), view{active: 9}) })
	m.noErrors()
}

func TestRestartCountsOnce(t *testing.T) {
	m := newMesh(t, 10)
	nodes := m.sites(3, "east")
	room := roomID(0)
	m.active(nodes[0], room, 6, 1)
	m.run(time.Second)
	state, err := nodes[0].AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	m.active(nodes[0], room, 2, 0) // after the snapshot, but heard by others
	m.until(time.Second, "all see seven", func() bool { return m.all("east", room, view{active: 7}) })
	m.kill(nodes[0])
	m.run(500 * time.Millisecond)
	x := m.start(0, "east")
	if err := x.Restore([][]byte{state}, m.now); err != nil {
		t.Fatal(err)
	}
	if got := x.PreviousActive(room); got != 5 {
		t.Errorf("from the snapshot: %d leases before, want 5", got)
	}
	m.until(5*time.Second, "it is ready again", x.Ready)
	if got := x.PreviousActive(room); got != 7 {
		t.Errorf("from its peers: %d leases before, want 7", got)
	}
	m.active(x, room, 7, 0)
	m.until(2*time.Second, "all see seven, not fourteen", func() bool { return m.all("east", room, view{active: 7}) })
	m.run(5 * time.Minute)
	if !m.all("east", room, view{active: 7}) {
		t.Error("the old row came back")
	}
	m.noErrors()
}

func TestRestoreRefuses(t *testing.T) {
	m := newMesh(t, 11)
	x := m.start(0, "east")
	m.active(x, roomID(0), 1, 0)
	state, err := x.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Restore([][]byte{state}, m.now); err == nil {
		t.Error("a snapshot of this very boot was taken: the number was not raised")
	}
	y := m.start(0, "east")
	for name, bad := range map[string][]byte{"empty": nil, "version": {9}, "cut": state[:len(state)/2]} {
		if err := y.Restore([][]byte{bad}, m.now); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := y.Restore([][]byte{state}, m.now); err != nil {
		t.Errorf("an honest snapshot: %v", err)
	}
}

func TestMapSpreadsEverywhere(t *testing.T) {
	m := newMesh(t, 12)
	nodes := m.sites(3, "east", "west", "north")
	m.loss = .1
	for i, x := range nodes {
		if err := x.Set(fmt.Sprint("room/", i), []byte{byte(i)}, m.now); err != nil {
			t.Fatal(err)
		}
	}
	m.until(10*time.Second, "all have all keys", func() bool {
		for _, x := range nodes {
			if len(slices.Collect(x.Keys())) != len(nodes) {
				return false
			}
		}
		return true
	})
	_, was, _ := nodes[8].Get("room/0")
	if err := nodes[8].CompareAndSet("room/0", nil, was, m.now); err != nil {
		t.Fatal(err)
	}
	if err := nodes[8].CompareAndSet("room/0", []byte("x"), was, m.now); !errors.Is(err, crdt.ErrConflict) {
		t.Errorf("a stale compare-and-set: got %v, want ErrConflict", err)
	}
	m.until(10*time.Second, "all have forgotten one", func() bool {
		return !slices.ContainsFunc(nodes, func(x *member) bool { _, _, ok := x.Get("room/0"); return ok })
	})
	m.noErrors()
}

// TestMapIsToldAgain has a relay, which no longer looks at who has all of the map, hear that
// another one has lost a part of it.
func TestMapIsToldAgain(t *testing.T) {
	m := newMesh(t, 14)
	nodes := m.sites(1, "east", "west")
	if err := nodes[0].Set("room/0", []byte{1}, m.now); err != nil {
		t.Fatal(err)
	}
	writer, west := nodes[0].peer.ID, nodes[1]
	l := nodes[0].links[west.peer.ID]
	told := func() bool { return l.lww.acked[writer] == nodes[0].lww.KnownOf(writer) && l.full > 0 }
	m.until(5*time.Second, "the other site has said that it has all", told)
	lost := &frame{kind: push, haveLWW: crdt.LWWDigest{writer: 0}}
	if _, err := nodes[0].Receive(west.peer, lost.encode(), m.now); err != nil {
		t.Fatal(err)
	}
	m.until(5*time.Second, "it is told again and says so", told)
	m.noErrors()
}

// TestNewsOfTheDeadIsToldAfterACut: part of a site, behind a cut, hears of a write whose writer then
// dies. Who led that part leads it no longer once the cut has healed, and whoever does is told of the
// write as soon as it sees that the others are back, and not with its next pull.
func TestNewsOfTheDeadIsToldAfterACut(t *testing.T) {
	for seed := range uint64(20) {
		m := newMesh(t, seed)
		m.pullEvery = time.Hour
		nodes := m.sites(3, "east", "west")
		lead := nodes[slices.IndexFunc(nodes, func(x *member) bool { return x.peer.Site == "east" && x.lead.on })]
		m.split(lead)
		m.run(detection + 2*time.Second)
		writer := nodes[5]
		if err := writer.Set("limit", []byte("7"), m.now); err != nil {
			t.Fatal(err)
		}
		knows := func(x *member) bool { _, _, ok := x.Get("limit"); return ok }
		m.until(5*time.Second, "all on this side know it", func() bool {
			return !slices.ContainsFunc(nodes, func(x *member) bool { return x != lead && !knows(x) })
		})
		for _, x := range nodes {
			if x.peer.Site == "west" {
				m.kill(x)
			}
		}
		m.run(detection + 2*time.Second)
		m.heal()
		m.refresh()
		m.until(time.Second, "who leads the site knows it", func() bool { return knows(lead) })
		m.noErrors()
	}
}

// TestNewsGoesThroughSitesInTime: two sites that do not reach each other hear of what operators set
// through a third one, within the two seconds in which all have to know it.
func TestNewsGoesThroughSitesInTime(t *testing.T) {
	m := newMesh(t, 15)
	m.minDelay, m.maxDelay = 50*time.Millisecond, 150*time.Millisecond
	nodes := m.sites(2, "east", "middle", "west")
	for _, a := range nodes[:2] {
		for _, b := range nodes[4:] {
			m.cut[[2]crdt.NodeID{a.peer.ID, b.peer.ID}], m.cut[[2]crdt.NodeID{b.peer.ID, a.peer.ID}] = m.now, m.now
		}
	}
	m.run(detection + 2*time.Second)
	for i := range 40 {
		m.run(time.Duration(m.rng.IntN(1000)) * time.Millisecond)
		key := fmt.Sprint("limit/", i)
		if err := nodes[i%2].Set(key, []byte("7"), m.now); err != nil {
			t.Fatal(err)
		}
		m.until(1800*time.Millisecond, "all know it", func() bool {
			return !slices.ContainsFunc(nodes, func(x *member) bool { _, _, ok := x.Get(key); return !ok })
		})
	}
	m.noErrors()
}

// TestLostNewsGoesToSitesAgainInTime: what operators set is lost on its way to another site, since the
// way is closed for a moment that nobody notices. It is known there within two seconds all the same,
// at whatever moment between two summaries it was set.
func TestLostNewsGoesToSitesAgainInTime(t *testing.T) {
	m := newMesh(t, 16)
	m.minDelay, m.maxDelay = 50*time.Millisecond, 150*time.Millisecond
	m.pullEvery = time.Hour
	nodes := m.sites(2, "east", "west")
	for i := range 40 {
		m.run(time.Duration(m.rng.IntN(1000)) * time.Millisecond)
		m.split(nodes[:2]...)
		key := fmt.Sprint("limit/", i)
		if err := nodes[i%2].Set(key, []byte("7"), m.now); err != nil {
			t.Fatal(err)
		}
		m.run(500 * time.Millisecond)
		m.heal()
		m.until(1500*time.Millisecond, "all know it", func() bool {
			return !slices.ContainsFunc(nodes, func(x *member) bool { _, _, ok := x.Get(key); return !ok })
		})
	}
	m.noErrors()
}

func TestRestIsQuiet(t *testing.T) {
	m := newMesh(t, 13)
	m.sites(3, "east", "west")
	for i, x := range m.nodes {
		m.active(x, roomID(i), 1, 0)
	}
	m.run(10 * time.Second)
	m.bytes, m.sent = 0, 0
	m.run(time.Minute)
	perNode := float64(m.bytes) / float64(len(m.nodes)) / 60
	t.Logf("at rest: %.0f bytes and %.1f messages per node and second", perNode, float64(m.sent)/float64(len(m.nodes))/60)
	if perNode > 300 {
		t.Errorf("at rest a node sends %.0f bytes a second, want at most 300", perNode)
	}
	m.noErrors()
}
