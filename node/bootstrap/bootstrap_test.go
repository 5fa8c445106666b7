package bootstrap

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// calm runs a world without faults.
func (w *world) calm(d time.Duration) {
	for range int(d / testStep) {
		w.step(false, 0, 0)
	}
}

func (w *world) startAll() {
	for _, h := range w.hosts {
		w.start(h)
	}
}

// TestLateOfferIsVoid has what a proposer said arrive after its disk is gone and its
// successor was told that there is nothing: taken then, two meshes would hold one name each,
// and neither would ever have all.
func TestLateOfferIsVoid(t *testing.T) {
	w := newWorld(1, testLists[2], nil, testLists[2])
	a1, a2 := w.hosts[0], w.hosts[1]
	w.startAll()
	for a1.disk.Record.Mesh.IsZero() {
		w.step(false, 0, 0)
	}
	w.air = nil // nobody has heard of it
	var offer []flying
	for len(offer) == 0 {
		for _, o := range a2.m.Tick(w.now.Add(time.Second), []Peer{{a1.id, "a1"}}) {
			for _, back := range a1.m.Receive(a2.id, o.Message, w.now) {
				offer = append(offer, flying{w.now.Add(time.Hour), a1.id, back})
			}
		}
	}
	first := a1.disk.Record.Mesh
	w.empty(a1)
	w.start(a1)
	for a1.disk.Record.Mesh.IsZero() {
		w.step(false, 0, 0)
	}
	a2.m.Receive(offer[0].from, offer[0].out.Message, w.now)
	w.settle(a2, 0)
	w.calm(20 * time.Second)
	if mesh := a1.disk.Record.Mesh; mesh == first || a2.disk.Record.Mesh != mesh || !a1.disk.Minted {
		t.Errorf("first %s, then a1 holds %+v and a2 %+v", first, a1.disk, a2.disk)
	}
}

// TestFirstNodeFindsItsMesh empties the only named node while one that is not named lives,
// and tries every 3 s to reach it.
func TestFirstNodeFindsItsMesh(t *testing.T) {
	w := newWorld(1, testLists[0], []string{"x1"}, testLists[0])
	a1, x1 := w.hosts[0], w.hosts[1]
	w.startAll()
	w.calm(20 * time.Second)
	mesh := x1.disk.Record.Mesh
	if mesh.IsZero() || !a1.disk.Minted {
		t.Fatalf("there is no mesh: %+v", a1.disk)
	}
	w.empty(a1)
	w.start(a1)
	x1.cut = true
	for range int(3 * time.Second / testStep) {
		w.now = w.now.Add(testStep)
		a1.m.Tick(w.now, nil)
	}
	w.calm(5 * time.Second)
	if a1.disk.Record.Mesh != mesh || a1.disk.Minted || a1.m.Returned() != a1.id || x1.m.Returned() != a1.id {
		t.Errorf("a1 holds %+v, want mesh %s, which it does not mint; gone are %s, %s", a1.disk, mesh, a1.m.Returned(), x1.m.Returned())
	}
}

// TestPromiseAtAnUnnamedNode has a first node lose its disk when only one that is not named has
// taken its promise. The next one cannot reach that one, asks a2, and promises another mesh; a2
// reaches both, and must not take what nobody else will hold.
func TestPromiseAtAnUnnamedNode(t *testing.T) {
	now := time.Unix(1e9, 0)
	names, b := testLists[1], byte(0)
	random := func(p []byte) { b++; p[0] = b }
	before := Record{Mesh: MeshID{9}, Names: names, Minter: crdt.NodeID{9}, MinterName: "a1"}
	for _, c := range []struct {
		what     string
		minted   bool
		teller   string
		takes    bool
		complete bool
	}{
		{"a promise", false, "x1", false, false},
		{"a mesh that is complete", true, "x1", true, true},
		{"a promise at a named node", false, "a1", true, false},
	} {
		a2 := New(Config{Self: crdt.NodeID{2}, Name: "a2", Names: names, Random: random}, now)
		x := New(Config{Self: crdt.NodeID{3}, Name: c.teller, Disk: Disk{Record: before}, Random: random}, now)
		if c.minted {
			x.Complete()
		}
		for _, o := range a2.Tick(now, []Peer{{x.cfg.Self, c.teller}}) {
			for _, answer := range x.Receive(a2.cfg.Self, o.Message, now) {
				in, err := Decode(answer.Append(nil))
				if err != nil || in.Complete != c.complete {
					t.Fatalf("%s: got %+v, %v", c.what, in, err)
				}
				a2.Receive(x.cfg.Self, in, now)
			}
		}
		if _, takes := a2.Write(); takes != c.takes {
			t.Errorf("%s, of %s: a2 takes it: %v, want %v", c.what, c.teller, takes, c.takes)
		}
	}
}

// TestDiskLostWithinARound has a node say "nothing", and then be told of a mesh by one that loses
// its disk and says "nothing" as well, in the same round: not all were without a mesh at once.
func TestDiskLostWithinARound(t *testing.T) {
	now := time.Unix(1e9, 0)
	names, b := testLists[2], byte(0)
	random := func(p []byte) { b++; p[0] = b }
	node := func(id byte, name string, d Disk) *Machine {
		return New(Config{Self: crdt.NodeID{id}, Name: name, Names: names, Disk: d, Random: random}, now)
	}
	peer := func(m *Machine) Peer { return Peer{m.cfg.Self, m.cfg.Name} }
	of := func(m *Machine, out []Out) Message {
		for _, o := range out {
			if o.To == m.cfg.Self {
				return o.Message
			}
		}
		t.Fatalf("%s is not asked", m.cfg.Name)
		return Message{}
	}
	before := Record{Mesh: MeshID{9}, Names: names, Minter: crdt.NodeID{9}, MinterName: "a1"}
	a1, a2, b1 := node(1, "a1", Disk{}), node(2, "a2", Disk{}), node(3, "b1", Disk{Record: before})
	next := node(4, "b1", Disk{})

	now = now.Add(Quiet)
	asked := a1.Tick(now, []Peer{peer(a2), peer(b1)})
	a1.Receive(a2.cfg.Self, a2.Receive(a1.cfg.Self, of(a2, asked), now)[0].Message, now)
	offer := b1.Receive(a2.cfg.Self, of(b1, a2.Tick(now, []Peer{peer(a1), peer(b1)})), now)[0].Message
	now = now.Add(askEvery)
	asked = a1.Tick(now, []Peer{peer(a2), peer(next)})
	a1.Receive(next.cfg.Self, next.Receive(a1.cfg.Self, of(next, asked), now)[0].Message, now)
	a2.Receive(b1.cfg.Self, offer, now)
	mine, promised := a1.Write()
	other, took := a2.Write()
	if promised && took {
		t.Errorf("a1 promises mesh %s, and a2 takes mesh %s: neither will ever have all disks", mine.Record.Mesh, other.Record.Mesh)
	}
	if !took {
		t.Error("a2 does not take what it asked for")
	}
}

// TestLateQuestionOfALostDisk has a question of the first node arrive when its disk is long gone
// and the mesh is made by the next one: that one is not gone, and nobody says so.
func TestLateQuestionOfALostDisk(t *testing.T) {
	w := newWorld(1, testLists[1], nil, testLists[1])
	a1, a2 := w.hosts[0], w.hosts[1]
	w.startAll()
	before, late := a1.id, a1.m.Tick(w.now, []Peer{{a2.id, "a2"}})
	w.empty(a1)
	w.start(a1)
	w.calm(20 * time.Second)
	if !a1.disk.Minted || a2.disk.Record.Minter != a1.id {
		t.Fatalf("there is no mesh: %+v, %+v", a1.disk, a2.disk)
	}
	a2.m.Receive(before, late[0].Message, w.now)
	w.calm(time.Second)
	if gone := a2.m.Returned(); gone != (crdt.NodeID{}) {
		t.Errorf("a2 says that the disk of its minter %s is gone, and that %s came back without one", a1.id, gone)
	}
	w.empty(a1)
	w.start(a1)
	w.calm(20 * time.Second)
	if gone := a2.m.Returned(); gone != a1.id {
		t.Errorf("a2 says that %s came back with an empty disk, want %s", gone, a1.id)
	}
}

// TestWhatItWaitsFor checks that a node says who is missing, and which lists differ.
func TestWhatItWaitsFor(t *testing.T) {
	for _, c := range []struct {
		what         string
		lists        map[string][]string
		up           []string
		at           string
		want, forbid string
	}{
		{"b1 is down", nil, []string{"a1", "a2"}, "a1", "waits for b1 (not reached)", "a2 "},
		{"the first is down", nil, []string{"a2", "b1"}, "b1", "waits for a1", ""},
		{
			"another list",
			map[string][]string{"a2": {"a2", "a1", "b1"}},
			[]string{"a1", "a2", "b1"},
			"a1",
			"node a2 was given a2,a1,b1", "holds",
		},
		{
			"the same, at the other",
			map[string][]string{"a2": {"a2", "a1", "b1"}},
			[]string{"a1", "a2", "b1"},
			"a2",
			"this node, a2, was given --bootstrap-nodes a2,a1,b1, and node a1 was given a1,a2,b1", "",
		},
		{"no list", map[string][]string{"b1": nil}, []string{"a1", "a2", "b1"}, "a1", "node b1 was given no list", ""},
		{"no list, at that node", map[string][]string{"b1": nil}, []string{"a1", "a2", "b1"}, "b1", "never makes a mesh itself", ""},
	} {
		w := newWorld(1, testLists[2], nil, testLists[2])
		for _, h := range w.hosts {
			if l, ok := c.lists[h.name]; ok {
				h.list = l
			}
			if strings.Contains(strings.Join(c.up, " "), h.name) {
				w.start(h)
			}
		}
		w.calm(30 * time.Second)
		for _, h := range w.hosts {
			if !h.disk.Record.Mesh.IsZero() {
				t.Errorf("%s: %s holds a mesh", c.what, h.name)
			}
			if h.name != c.at {
				continue
			}
			if got := h.m.Waits(w.now); !strings.Contains(got, c.want) || c.forbid != "" && strings.Contains(got, c.forbid) {
				t.Errorf("%s: got %q, want %q", c.what, got, c.want)
			}
		}
	}
}

// TestTwoOfOneName has two nodes say that they are a2: neither counts.
func TestTwoOfOneName(t *testing.T) {
	w := newWorld(1, []string{"a1", "a2", "a2"}, nil, testLists[1])
	w.startAll()
	w.calm(30 * time.Second)
	got := w.hosts[0].m.Waits(w.now)
	for _, want := range []string{"both named a2", w.hosts[1].id.String(), w.hosts[2].id.String()} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !w.hosts[0].disk.Record.Mesh.IsZero() {
		t.Error("a mesh was made")
	}
}

// TestTheMintersOwnID has the minter come back with an empty disk and its old id, as with a
// certificate that names it: it must not mint again.
func TestTheMintersOwnID(t *testing.T) {
	w := newWorld(1, testLists[1], nil, testLists[1])
	w.startAll()
	w.calm(20 * time.Second)
	a1 := w.hosts[0]
	if !a1.disk.Minted {
		t.Fatal("there is no mesh")
	}
	id := a1.id
	w.empty(a1)
	a1.id = id
	w.start(a1)
	w.calm(20 * time.Second)
	if a1.m.Lost() == nil || a1.disk.Minted {
		t.Errorf("it goes on: %+v", a1.disk)
	}
}

func TestCheckNames(t *testing.T) {
	if err := CheckNames([]string{"a1", "a2", "b1"}); err != nil {
		t.Error(err)
	}
	if err := CheckNames([]string{"a1", "a2", "a1"}); err == nil || !strings.Contains(err.Error(), `"a1" stands in the list twice, at positions 1 and 3`) {
		t.Errorf("got %v", err)
	}
}

func FuzzMessage(f *testing.F) {
	rec := Record{Mesh: MeshID{1}, Names: []string{"a1", "b1"}, Minter: crdt.NodeID{2}, MinterName: "a1", MinterSite: "a"}
	f.Add(Message{Kind: ask, Name: "a1", Names: rec.Names, Nonce: 1 << 60}.Append(nil))
	f.Add(Message{Kind: answer, Name: "a1", Nonce: 1, Echo: 2, Holds: rec, Complete: true}.Append(nil))
	f.Add([]byte("\x98\x010\xa200\x9000\x95\xc4\x100000000000000000\x91\xa200\xc6zM\x02h8.00")) // an id that says it has 2 GiB
	f.Add([]byte("\x98\x010\xdb\x7fM\x02h8.00"))                                                // and a name
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Decode(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(100*len(b)+1<<16) {
			t.Errorf("a message of %d bytes is read into %d", len(b), n)
		}
		if err != nil {
			return
		}
		again, err := Decode(m.Append(nil))
		if err != nil || !again.Holds.Same(m.Holds) || again.Echo != m.Echo || again.Complete != m.Complete || again.Name != m.Name {
			t.Errorf("got %+v, %v, want %+v", again, err, m)
		}
	})
}
