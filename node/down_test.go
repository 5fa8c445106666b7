package node

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// downSeen puts together what all nodes that run say of the others.
func (w *world) downSeen() []DownStatus {
	v := DownView{Reports: map[crdt.NodeID][]Down{}, Names: map[crdt.NodeID]string{}}
	for _, m := range w.nodes {
		if m.core != nil {
			v.Running = append(v.Running, m.id)
			if all := m.core.shownDown.Load(); all != nil {
				v.Reports[m.id] = *all
			}
		}
	}
	return v.DownStatuses(w.now)
}

// held returns what a node owns of the places.
func (w *world) held(m *machine) int64 { return m.core.order[0].Rights().Held.Places }

func downWorld(t *testing.T, sites ...string) *world {
	s := testSettings(240)
	s.Policy, s.NewUsersPerMinute = room.Escrow, 10_000
	w := newWorld(t, s.WithDefaults(), sites...)
	for _, m := range w.nodes {
		m.core.name = m.site + string('1'+m.id[0]-1)
	}
	people := w.crowd(200, w.spread) // who move rights between nodes
	for range 3 {
		for _, p := range people {
			w.ask(p)
		}
		w.run(2 * time.Second)
	}
	return w
}

// TestWhatADeadNodeHeldIsKnownExactly compares what all say together with what the node owned
// when it died.
func TestWhatADeadNodeHeldIsKnownExactly(t *testing.T) {
	for _, c := range []struct {
		sites string
		dead  []int
		exact bool // each of them, and not only their sum
	}{
		{"a a a a", []int{3}, true},
		{"a a a a", []int{2, 3}, true},
		{"a a b b", []int{3}, true},
		{"a a b b", []int{1, 3}, true},
		{"a b", []int{1}, true},
		{"a a b b", []int{2, 3}, false},
		{"a a b b", []int{0, 1}, false}, // the minter among them
	} {
		w := downWorld(t, strings.Fields(c.sites)...)
		want, sum := map[string]int64{}, int64(0)
		for _, i := range c.dead {
			n := w.held(w.nodes[i])
			want[w.nodes[i].id.String()], sum = n, sum+n
			w.kill(w.nodes[i])
		}
		w.run(8 * time.Second)
		got := int64(0)
		all := w.downSeen()
		if len(all) != len(c.dead) {
			t.Fatalf("%s, %v: %d are down: %+v", c.sites, c.dead, len(all), all)
		}
		for _, d := range all {
			r := d.Rooms[0]
			got += r.Capacity.Places
			if r.Approximate == c.exact {
				t.Errorf("%s, %v: approximate is %v", c.sites, c.dead, r.Approximate)
			}
			if c.exact && r.Capacity.Places != want[d.Node] || r.Minted.Places != 240 || d.State != StateDown {
				t.Errorf("%s, %v: %s, want %d", c.sites, c.dead, d.Message, want[d.Node])
			}
		}
		if got != sum {
			t.Errorf("%s, %v: %d in all, want %d", c.sites, c.dead, got, sum)
		}
	}
}

// TestADeadNodesCapacityIsFollowed from its death until others can use it, by one that has started after it too.
func TestADeadNodesCapacityIsFollowed(t *testing.T) {
	w := downWorld(t, "a", "a", "b", "b")
	gone, teller := w.nodes[3], w.nodes[0]
	held := w.held(gone)
	w.kill(gone)
	w.run(8 * time.Second)
	w.kill(w.nodes[1]) // and starts again
	s := testSettings(240)
	s.Policy = room.Escrow
	w.start(w.nodes[1], s.WithDefaults())
	w.run(10 * time.Second)
	d := w.downSeen()
	if len(d) != 1 || d[0].Name != "b4" || d[0].Rooms[0].Capacity.Places != held || d[0].Rooms[0].Approximate ||
		!strings.Contains(d[0].Message, "b4 is down: ") || !strings.Contains(d[0].Message, "ropeline node declare-dead b4 --gone-for-good") {
		t.Fatalf("after a restart of another node: %+v, want b4 with %d", d, held)
	}
	if err := teller.core.DeclareDead(gone.id, w.now); err != nil {
		t.Fatal(err)
	}
	teller.core.lookForDown(w.now)
	d = w.downSeen()
	if len(d) != 1 || d[0].State != StateWaiting || d[0].Rooms[0].Capacity.Places != held || d[0].UsableAt == nil {
		t.Fatalf("at once: %+v", d)
	}
	first := *d[0].UsableAt
	w.run(5 * time.Second)
	d = w.downSeen()
	if len(d) != 1 || d[0].State != StateRecovering || d[0].Rooms[0].Capacity.Places != held || d[0].UsableAt.Sub(first).Abs() > 4*time.Second {
		t.Fatalf("when all have confirmed: %+v, want it usable near %v", d, first)
	}
	at := *d[0].UsableAt
	for w.now.Before(at.Add(-200 * time.Millisecond)) {
		w.run(100 * time.Millisecond)
		if d := w.downSeen(); len(d) != 1 || !d[0].UsableAt.Equal(at) {
			t.Fatalf("%v before the end: %+v", at.Sub(w.now), d)
		}
	}
	if free := teller.core.order[0].Rights(); free.Held.Places-free.InUse >= held {
		t.Errorf("%d places are free before the end", free.Held.Places-free.InUse)
	}
	w.run(5 * time.Second)
	if d := w.downSeen(); len(d) != 0 {
		t.Errorf("after the end: %+v", d)
	}
	total := int64(0)
	for _, m := range w.nodes[:3] {
		total += w.held(m)
	}
	if total != 240 {
		t.Errorf("%d places are held after the end, want all 240", total)
	}
	if all, err := teller.core.allRecovered(gone.id); !all || err != nil {
		t.Errorf("all recovered: %v, %v", all, err)
	}
}

// TestANodeThatIsBackIsNotDown though not all have noticed, and one that left never was.
func TestANodeThatIsBackIsNotDown(t *testing.T) {
	w := downWorld(t, "a", "a", "a")
	w.kill(w.nodes[2])
	w.run(8 * time.Second)
	s := testSettings(240)
	s.Policy = room.Escrow
	w.start(w.nodes[2], s.WithDefaults())
	w.run(50 * time.Millisecond)
	if d := w.downSeen(); len(d) != 0 {
		t.Errorf("one that is back is down: %+v", d)
	}
	w.run(5 * time.Second)
	if err := w.nodes[1].core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.run(5 * time.Second)
	w.kill(w.nodes[1])
	w.run(8 * time.Second)
	if d := w.downSeen(); len(d) != 0 {
		t.Errorf("one that has left is down: %+v", d)
	}
}

// TestDownInWords is what operators read.
func TestDownInWords(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	a, b1, b2 := crdt.NodeID{1}, crdt.NodeID{2}, crdt.NodeID{3}
	rights := func(n int64) ticket.Amount { return ticket.Amount{Places: n, Rate: 10 * n} }
	in := func(room byte, name string, n int64) DownRoom {
		return DownRoom{Room: crdt.RoomID{room}, Name: name, Minted: rights(240), Dealt: rights(n), LockSpan: 65 * time.Second}
	}
	for _, c := range []struct {
		all  []Down
		want string
	}{
		{
			[]Down{{Node: b1, Name: "b1", Rooms: []DownRoom{in(1, "shop", 102)}}},
			"b1 is down: 102 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead b1 --gone-for-good",
		},
		{
			[]Down{{Node: b1, Rooms: []DownRoom{in(1, "shop", 102)}}},
			b1.String() + " is down: 102 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead " + b1.String() + " --gone-for-good",
		},
		{
			[]Down{{Node: b1, Name: "a1", Rooms: []DownRoom{in(1, "shop", 102)}}},
			"a1 is down: 102 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead " + b1.String() + " --gone-for-good",
		},
		{
			[]Down{{Node: b1, Name: "b1", Rooms: []DownRoom{in(1, "shop", 102), in(2, "sale", 3)}}},
			"b1 is down: 3 of 240 capacity of sale, 102 of 240 capacity of shop unusable; start it again, or declare it dead: ropeline node declare-dead b1 --gone-for-good",
		},
		{
			[]Down{{Node: b1, Name: "b1", Rooms: []DownRoom{in(1, "shop", 102)}}, {Node: b2, Name: "b2", Rooms: []DownRoom{in(1, "shop", 40)}}},
			"b1 is down: about 71 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead b1 --gone-for-good" +
				"|b2 is down: about 71 of 240 capacity unusable; start it again, or declare it dead: ropeline node declare-dead b2 --gone-for-good",
		},
		{[]Down{{Node: b1, Name: "b1", Rooms: []DownRoom{in(1, "shop", 0)}}}, ""},
		{
			[]Down{{Node: b1, Name: "b1", Declared: true, Rooms: []DownRoom{func() DownRoom { r := in(1, "shop", 102); r.WaitsFor = []crdt.NodeID{a}; return r }()}}},
			"recovering b1's 102 of 240 capacity: waiting for a1 to confirm; then usable in about 1 min 5 s",
		},
		{[]Down{{Node: b1, Name: "b1", Declared: true, Rooms: []DownRoom{func() DownRoom {
			r := in(1, "shop", 102)
			r.By, r.Until = a, now.Add(33500*time.Millisecond)
			return r
		}()}}}, "recovering b1's 102 of 240 capacity: usable in 34 s"},
		{[]Down{{Node: b1, Name: "b1", Declared: true, Rooms: []DownRoom{func() DownRoom { r := in(1, "shop", 102); r.By = a; return r }()}}}, ""},
	} {
		v := DownView{Running: []crdt.NodeID{a}, Reports: map[crdt.NodeID][]Down{a: c.all}, Names: map[crdt.NodeID]string{a: "a1"}}
		var got []string
		for _, d := range v.DownStatuses(now) {
			got = append(got, d.Message)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("got  %q\nwant %q", s, c.want)
		}
	}
	v := DownView{Running: []crdt.NodeID{a, {9}}, Reports: map[crdt.NodeID][]Down{a: {{Node: b1, Name: "b1", Rooms: []DownRoom{in(1, "shop", 102)}}}}, Names: map[crdt.NodeID]string{}}
	if d := v.DownStatuses(now); len(d) != 1 || !d[0].Rooms[0].Approximate {
		t.Errorf("while one has not said what it knows: %+v, want it to be approximate", d)
	}
}
