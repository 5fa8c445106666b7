package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// state is all that a replica knows, for comparing before and after.
func (m *mesh) state(x *member) string {
	m.t.Helper()
	s, err := x.AppendSnapshot(nil)
	if err != nil {
		m.t.Fatal(err)
	}
	parts, _ := x.MapParts(0)
	return fmt.Sprintf("%s%q", s, parts)
}

// forge returns a push with one row piece that raises active in a room.
func forge(owner crdt.Incarnation, site string, from, to uint64, now time.Time) []byte {
	f := &frame{kind: push, rows: crdt.RowDelta{Pieces: []crdt.RowPiece{{
		Owner: owner, Site: site, From: from, To: to, Changed: now.UnixMilli(),
		Rooms: []crdt.RoomChanges{{Room: roomID(0), Cells: []crdt.CellChange{
			{Kind: crdt.Active, Seq: to, Cell: crdt.Cell{P: 1_000_000}},
		}}},
	}}}}
	return f.encode()
}

func forgeSummary(site string, by crdt.Incarnation, now time.Time) []byte {
	v := crdt.Version{Epoch: uint64(now.UnixMilli()) + 60_000, Publisher: by, Seq: 1}
	f := &frame{kind: push, sums: crdt.SummaryDelta{Pieces: []crdt.SummaryPiece{{
		Site: site, Epoch: v.Epoch, Publisher: by, To: 1, Changed: now.UnixMilli(),
		Rooms: []crdt.RoomSummary{{Room: roomID(0), Version: v, At: now.UnixMilli(), Summary: crdt.Summary{Active: 1_000_000}}},
	}}}}
	return f.encode()
}

func TestForgedStateIsRefused(t *testing.T) {
	m := newMesh(t, 20)
	nodes := m.sites(3, "east", "west")
	victim, mate, stranger := nodes[0], nodes[1].peer, nodes[3].peer
	m.active(nodes[2], roomID(0), 4, 0)
	// Pushes keep coming, so all members of the site speak for themselves.
	for _, x := range nodes {
		m.seen(x, roomID(1), 1)
	}
	m.run(time.Second)
	live := nodes[2].peer.incarnation()
	known := victim.rows.Known(live)
	future := crdt.Incarnation{Node: mate.ID, Boot: mate.Boot + 1}
	for name, c := range map[string]struct {
		from    Peer
		payload []byte
		reason  string
	}{
		"our own row":              {mate, forge(victim.peer.incarnation(), "east", 0, 1_000, m.now), refusedOwnRow},
		"a living node's row":      {mate, forge(live, "east", known, known+1, m.now), refusedLive},
		"its next start":           {mate, forge(crdt.Incarnation{Node: live.Node, Boot: live.Boot + 1}, "east", 0, 1, m.now), refusedRow},
		"its own next start":       {mate, forge(future, "east", 0, 1, m.now), refusedRow},
		"a row of another site":    {stranger, forge(stranger.incarnation(), "west", 0, 1_000, m.now), refusedRow},
		"a row in our site's name": {stranger, forge(stranger.incarnation(), "east", 0, 1_000, m.now), refusedRow},
		"a mate's row, other site": {mate, forge(mate.incarnation(), "west", 0, 1_000, m.now), refusedRow},
		"our site's summary":       {stranger, forgeSummary("east", stranger.incarnation(), m.now), refusedSummary},
		"a third site's summary":   {stranger, forgeSummary("north", stranger.incarnation(), m.now), refusedSummary},
		"an earlier start":         {Peer{ID: mate.ID, Boot: mate.Boot - 1, Site: "east"}, forge(mate.incarnation(), "east", 0, 1, m.now), refusedStale},
		"rubbish":                  {mate, []byte("GET / HTTP/1.1\r\n\r\n"), refusedMalformed},
		"a future change":          {mate, forge(mate.incarnation(), "east", 0, 1_000, m.now.Add(time.Minute)), refusedHostile},
	} {
		before, refused := m.state(victim), victim.Stats().Refused[c.reason]
		_, err := victim.Receive(c.from, c.payload, m.now)
		if (err == nil) != (c.reason == refusedLive) {
			t.Errorf("%s: got error %v", name, err)
		}
		if got := victim.Stats().Refused[c.reason]; got != refused+1 {
			t.Errorf("%s: refused %d times as %s, want once; all: %v", name, got-refused, c.reason, victim.Stats().Refused)
		}
		if m.state(victim) != before {
			t.Errorf("%s: it changed the state", name)
		}
	}
	if _, ok := victim.Conflict(); ok {
		t.Error("a forged row made a conflict")
	}
	if _, err := victim.Receive(mate, forge(mate.incarnation(), "east", 0, 1_000, m.now), m.now); err != nil {
		t.Errorf("a mate's own row: %v", err)
	}
}

// TestRefusedPartLeavesTheRest checks that one bad piece does not take honest
// ones with it.
func TestRefusedPartLeavesTheRest(t *testing.T) {
	m := newMesh(t, 21)
	nodes := m.sites(2, "east")
	x, mate := nodes[0], nodes[1].peer
	good, err := decodeFrame(forge(mate.incarnation(), "east", 0, 1_000, m.now), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	bad, err := decodeFrame(forge(x.peer.incarnation(), "east", 0, 1_000, m.now), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	good.rows.Pieces = append(bad.rows.Pieces, good.rows.Pieces...)
	if _, err := x.Receive(mate, good.encode(), m.now); !errors.Is(err, ErrForged) {
		t.Errorf("got %v, want ErrForged", err)
	}
	if got := x.view("east", roomID(0), m.now).active; got != 1_000_000 {
		t.Errorf("the honest piece: active %d, want 1000000", got)
	}
}

func TestSilentOwnersRowIsPassedOn(t *testing.T) {
	m := newMesh(t, 22)
	nodes := m.sites(3, "east")
	a, b, c := nodes[0], nodes[1], nodes[2]
	m.cut[[2]crdt.NodeID{c.peer.ID, a.peer.ID}] = m.now // c's messages to a are lost
	m.active(c, roomID(0), 5, 0)
	m.run(time.Second)
	if got := b.view("east", roomID(0), m.now).active; got != 5 {
		t.Fatalf("b sees %d, want 5", got)
	}
	m.until(30*time.Second, "a hears of it through b", func() bool { return a.view("east", roomID(0), m.now).active == 5 })
	m.noErrors()
}

func TestCloneIsNoticed(t *testing.T) {
	m := newMesh(t, 23)
	nodes := m.sites(3, "east")
	old := nodes[0]
	if _, ok := old.Conflict(); ok {
		t.Fatal("a conflict from the beginning")
	}
	// The same disk starts a second time elsewhere while the first goes on: its
	// peers hear of the next boot number, and the first hears it from them.
	clone := crdt.Incarnation{Node: old.peer.ID, Boot: old.peer.Boot + 1}
	twin := Peer{ID: clone.Node, Boot: clone.Boot, Site: "east"}
	if _, err := nodes[1].Receive(twin, forge(clone, "east", 0, 1, m.now), m.now); err != nil {
		t.Fatal(err)
	}
	m.until(30*time.Second, "the first notices", func() bool { _, ok := old.Conflict(); return ok })
	if got, _ := old.Conflict(); got != clone {
		t.Errorf("conflict with %s, want %s", got, clone)
	}
	// A lower number is our own past and no conflict.
	other := nodes[2]
	other.SetPeers([]Peer{{ID: other.peer.ID, Boot: other.peer.Boot - 1, Site: "east"}}, m.now)
	if got, ok := other.Conflict(); ok {
		t.Errorf("conflict with an earlier start, %s", got)
	}
	other.SetPeers([]Peer{{ID: other.peer.ID, Boot: other.peer.Boot + 1, Site: "east"}}, m.now)
	if _, ok := other.Conflict(); !ok {
		t.Error("membership named a later start and there is no conflict")
	}
}

// TestRolledBackDiskIsNoticed starts a node from an older copy of its disk, with
// a boot number that it has used before. Were it to go on, its peers would take
// its counts for old ones.
func TestRolledBackDiskIsNoticed(t *testing.T) {
	m := newMesh(t, 24)
	nodes := m.sites(2, "east")
	for range 200 {
		m.active(nodes[0], roomID(0), 1, 0)
	}
	m.run(time.Second)
	m.kill(nodes[0])
	m.run(time.Second)
	x := m.add(0, "east")
	again := crdt.Incarnation{Node: x.peer.ID, Boot: x.peer.Boot - 1}
	r, err := New(Config{Self: again, Site: "east", Rand: rand.New(rand.NewPCG(24, 1))})
	if err != nil {
		t.Fatal(err)
	}
	x.Replica, x.peer.Boot = r, again.Boot
	m.refresh()
	m.until(30*time.Second, "it notices", func() bool {
		_, ok := r.Conflict()
		if r.Ready() && !ok {
			t.Fatal("it is ready, and has not noticed")
		}
		return ok
	})
}

func TestLaggardWithRunawayClockIsRefused(t *testing.T) {
	m := newMesh(t, 24)
	nodes := m.sites(2, "east")
	x, y := nodes[0], nodes[1]
	if err := y.Set("k", []byte("v"), m.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	m.run(3 * time.Second)
	if _, _, ok := x.Get("k"); ok {
		t.Error("a write from an hour ahead was believed")
	}
	if x.Stats().Refused[refusedHostile] == 0 {
		t.Error("it was not counted")
	}
}

func TestNewChecksItsConfig(t *testing.T) {
	m := newMesh(t, 25)
	good := Config{Self: crdt.Incarnation{Node: nodeID(0), Boot: 1}, Site: "s", Rand: m.rng}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no self":           func(c *Config) { c.Self = crdt.Incarnation{} },
		"no site":           func(c *Config) { c.Site = "" },
		"no rand":           func(c *Config) { c.Rand = nil },
		"negative interval": func(c *Config) { c.PullInterval = -1 },
		"tiny messages":     func(c *Config) { c.MaxMessage = 1000 },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLateCountsGoToTheOpenTick checks that settled history stays as it is.
func TestLateCountsGoToTheOpenTick(t *testing.T) {
	m := newMesh(t, 26)
	x := m.start(0, "east")
	m.run(25 * time.Second)
	closed := x.Sites(roomID(0), m.now)[0].Closed
	x.Add(crdt.Key{Room: roomID(0), Kind: crdt.Seen, Tick: closed}, 3, 0, m.now)
	c := x.Own(roomID(0), m.now)
	if c.Seen[closed] != 0 || c.Seen[closed+1] != 3 {
		t.Errorf("closed up to %d, seen %v, want 3 in the tick after", closed, c.Seen)
	}
}

func FuzzReceive(f *testing.F) {
	m := newMesh(f, 27)
	m.sites(2, "east", "west")
	m.active(m.nodes[0], roomID(0), 3, 1)
	if err := m.nodes[0].Set("k", []byte("v"), m.now); err != nil {
		f.Fatal(err)
	}
	m.minDelay, m.maxDelay = time.Hour, time.Hour // nothing arrives
	m.run(12 * time.Second)
	for _, fl := range m.air {
		f.Add(uint8(0), fl.payload)
		f.Add(uint8(1), fl.payload)
	}
	now := m.now
	f.Fuzz(func(t *testing.T, who uint8, payload []byte) {
		x, err := New(Config{Self: crdt.Incarnation{Node: nodeID(0), Boot: 1}, Site: "east", Rand: newMesh(t, 1).rng})
		if err != nil {
			t.Fatal(err)
		}
		peers := []Peer{{ID: nodeID(1), Boot: 1, Site: "east", Ready: true}, {ID: nodeID(2), Boot: 1, Site: "west", Ready: true}}
		x.SetPeers(peers, now)
		x.Add(crdt.Key{Room: roomID(0), Kind: crdt.Active}, 7, 0, now)
		out, err := x.Receive(peers[int(who)%2], payload, now)
		if err != nil && len(out) > 0 && errors.Is(err, errFrame) {
			t.Error("rubbish was answered")
		}
		if got := x.Own(roomID(0), now).Active; got != 7 {
			t.Errorf("our own row says %d, want 7", got)
		}
		later := now
		for range 30 {
			later = later.Add(100 * time.Millisecond)
			for _, msg := range x.Tick(later) {
				if !slices.ContainsFunc(peers, func(p Peer) bool { return p.ID == msg.To }) {
					t.Errorf("message to %s, which is no peer", msg.To)
				}
			}
		}
	})
}
