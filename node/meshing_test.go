package node

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
)

// newMeshWorld starts nodes of a mesh whose minter is the first of them.
func newMeshWorld(t *testing.T, minted bool, sites ...string) *world {
	t.Helper()
	w := newStoppedWorld(t)
	rec := bootstrap.Record{Mesh: bootstrap.MeshID{9}, Names: []string{"a1", "b1", "c1"}, Minter: crdt.NodeID{1, 0xaa}, MinterName: "a1", MinterSite: "a"}
	for i, site := range sites {
		m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: site, mesh: bootstrap.Disk{Record: rec, Minted: minted && i == 0}}
		if m.name = "d1"; i < len(rec.Names) {
			m.name = rec.Names[i]
		}
		w.nodes = append(w.nodes, m)
		w.start(m, escrowSettings(60))
	}
	w.run(5 * time.Second)
	return w
}

var laterID = crdt.RoomID{8}

// later has nodes that are up be started again with a file that has one more room.
func (w *world) later(policy room.Policy) {
	w.t.Helper()
	s := escrowSettings(40)
	s.ID, s.Name, s.Host, s.Policy = laterID, "later", "later.example", policy
	w.more = []room.Settings{s}
	for _, m := range w.nodes {
		if m.core != nil {
			w.kill(m)
			w.start(m, escrowSettings(60))
		}
	}
}

// heldOf returns what nodes that are up hold of a room, and who mints in it, as they say.
func (w *world) heldOf(id crdt.RoomID) (held int64, minters map[crdt.NodeID]bool) {
	minters = map[crdt.NodeID]bool{}
	for _, m := range w.nodes {
		if m.core == nil || m.core.rooms[id] == nil {
			continue
		}
		is := m.core.rooms[id].Rights()
		held += is.Held.Places
		if is.Minter != (crdt.NodeID{}) {
			minters[is.Minter] = true
		}
	}
	return held, minters
}

// watch runs a world and holds that a room never has more rights than its limit.
func (w *world) watch(id crdt.RoomID, limit int64, d time.Duration) {
	w.t.Helper()
	for range int(d / (50 * time.Millisecond)) {
		w.run(50 * time.Millisecond)
		if held, _ := w.heldOf(id); held > limit {
			w.t.Fatalf("%v: %d places of room %s are held, of %d", w.now, held, id, limit)
		}
	}
}

func (w *world) mintedBy(id crdt.RoomID, limit int64, by *machine, when string) {
	w.t.Helper()
	held, minters := w.heldOf(id)
	want := map[crdt.NodeID]bool{}
	if by != nil {
		want[by.id] = true
	}
	if held != limit || len(minters) != len(want) || by != nil && !minters[by.id] {
		w.t.Errorf("%s: %d places of room %s are held, minted by %v; want %d, by %v", when, held, id, minters, limit, want)
	}
}

// TestNothingIsMintedBeforeAllHoldTheRecord: the minter alone knows that all do.
func TestNothingIsMintedBeforeAllHoldTheRecord(t *testing.T) {
	w := newMeshWorld(t, false, "a", "b", "c")
	w.run(time.Minute)
	w.mintedBy(roomID, 0, nil, "before")
	for _, m := range w.nodes {
		if m.core.meshWaits(crdt.NodeID{}) == "" {
			t.Errorf("node %s waits for nothing", m.id)
		}
	}
	w.nodes[0].mesh.Minted = true
	w.nodes[0].core.SetMesh(w.nodes[0].mesh)
	w.watch(roomID, 60, 5*time.Second)
	w.mintedBy(roomID, 60, w.nodes[0], "after")
	for _, m := range w.nodes {
		if why := m.core.meshWaits(crdt.NodeID{}); why != "" {
			t.Errorf("node %s: %s", m.id, why)
		}
		if n := len(*m.core.shown.Load()); n != 1 {
			t.Errorf("node %s shows %d rooms: the mesh's own is nobody's business", m.id, n)
		}
	}
}

// TestTheMintersHeirMints has the minter leave. A room that comes later by files is minted
// by its heir, and by nobody else.
func TestTheMintersHeirMints(t *testing.T) {
	w := newMeshWorld(t, true, "a", "a", "b")
	w.mintedBy(roomID, 60, w.nodes[0], "at first")
	gone := w.nodes[0]
	if err := gone.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if w.run(100 * time.Millisecond); gone.core.Left() {
			break
		}
	}
	if !gone.core.Left() {
		t.Fatal("it does not get away")
	}
	heir := w.machine(gone.core.leave.heir)
	w.kill(gone)
	w.later(room.Escrow)
	w.watch(laterID, 40, 10*time.Second)
	w.mintedBy(laterID, 40, heir, "after it left")
	w.mintedBy(roomID, 60, heir, "of the room before")
}

// TestTheMinterIsLost has the minter's disk be lost. Nobody mints in a room that comes later
// before an operator says so, and then one node does, once the sessions are over that the lost
// one may have let into a room of which nobody has heard.
func TestTheMinterIsLost(t *testing.T) {
	w := newMeshWorld(t, true, "a", "b", "c")
	lost := w.nodes[0]
	w.kill(lost)
	w.later(room.Escrow)
	w.watch(laterID, 40, 30*time.Second)
	w.mintedBy(laterID, 0, nil, "before it is declared dead")
	for _, m := range w.nodes[1:] { // both are told at once
		if err := m.core.DeclareDead(lost.id, w.now); err != nil {
			t.Fatal(err)
		}
	}
	w.watch(laterID, 40, 30*time.Second)
	if held, minters := w.heldOf(laterID); held != 0 || len(minters) != 0 {
		t.Errorf("half a minute later %d are held, minted by %v", held, minters)
	}
	w.watch(laterID, 40, 2*time.Minute)
	_, minters := w.heldOf(laterID)
	if len(minters) != 1 || minters[lost.id] {
		t.Fatalf("minted by %v", minters)
	}
	for id := range minters {
		w.mintedBy(laterID, 40, w.machine(id), "after")
		w.mintedBy(roomID, 60, w.machine(id), "of the room before")
	}
}

// TestTheMinterIsLostBeforeItMinted: the mesh stays, and the others have its capacity made
// by one of them.
func TestTheMinterIsLostBeforeItMinted(t *testing.T) {
	w := newMeshWorld(t, false, "a", "b", "c")
	lost := w.nodes[0]
	w.kill(lost)
	w.run(10 * time.Second)
	if err := w.nodes[2].core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.watch(roomID, 60, 3*time.Minute)
	held, minters := w.heldOf(roomID)
	if held != 60 || len(minters) != 1 {
		t.Errorf("%d places are held, minted by %v", held, minters)
	}
}

// TestOnlyBootstrapNodesReplaceTheMinterOfAMeshThatNeverMinted: a node that is none of them may have taken
// over what never came to be, while they made another mesh.
func TestOnlyBootstrapNodesReplaceTheMinterOfAMeshThatNeverMinted(t *testing.T) {
	for _, minted := range []bool{false, true} {
		w := newMeshWorld(t, minted, "a", "b", "c", "d")
		lost, unnamed := w.nodes[0], w.nodes[3]
		w.kill(lost)
		if !minted {
			w.cutOff = func(a, b *machine) bool { return a == unnamed || b == unnamed }
			w.members()
		}
		w.run(10 * time.Second)
		if err := unnamed.core.DeclareDead(lost.id, w.now); (err == nil) != minted {
			t.Errorf("minted: %v; a node that is none of the bootstrap nodes is told that the minter is dead: %v", minted, err)
		}
		w.watch(roomID, 60, 3*time.Minute)
	}
}

// TestASwitchToEscrowAtTwoNodesAtOnce finds no node that mints: neither takes that to be
// itself. The room's limit is made once the mesh's minter is back.
func TestASwitchToEscrowAtTwoNodesAtOnce(t *testing.T) {
	w := newStoppedWorld(t)
	w.catalog = true
	rec := bootstrap.Record{Mesh: bootstrap.MeshID{9}, Names: []string{"a1"}, Minter: crdt.NodeID{1, 0xaa}, MinterName: "a1", MinterSite: "a"}
	s := testSettings(40)
	for i, site := range []string{"a", "b", "c"} {
		m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: site, mesh: bootstrap.Disk{Record: rec}}
		w.nodes = append(w.nodes, m)
		w.start(m, s)
	}
	w.run(3 * time.Second)
	w.kill(w.nodes[0])
	w.cut = true
	w.members()
	for _, m := range w.nodes[1:] {
		w.edit(m, roomID, func(r *catalog.Room) { r.Settings.Policy = room.Escrow })
	}
	w.watch(roomID, 40, 5*time.Second)
	w.cut = false
	w.members()
	w.watch(roomID, 40, 5*time.Second)
	w.mintedBy(roomID, 0, nil, "without the minter")
	w.nodes[0].mesh.Minted = true
	w.start(w.nodes[0], s)
	w.watch(roomID, 40, 10*time.Second)
	w.mintedBy(roomID, 40, w.nodes[0], "with it")
}
