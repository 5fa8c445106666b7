package node

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// keeps fails unless a node keeps one room, of this id, and its rights work.
func (w *world) keeps(m *machine, id crdt.RoomID) {
	w.t.Helper()
	if rooms := m.core.order; len(rooms) != 1 || rooms[0].id != id || rooms[0].Rights().Retired {
		w.t.Errorf("node %d keeps %d rooms, the first %s; want %s alone", m.id[0], len(rooms), rooms[0].id, id)
	}
}

// TestARoomMadeAgain: a room that was retired is made again by its founder, which is
// started with it as before. All other nodes go on with it as they run, those who start
// later too. It has all its rights; sessions of before are nobody's, and no ticket
// number is that of a room before.
func TestARoomMadeAgain(t *testing.T) {
	w := newWorld(t, escrowSettings(60), "a", "a", "b")
	w.run(20 * time.Second)
	before := w.crowd(40, w.spread)
	if in := w.askAll(before); in != 40 {
		t.Fatalf("%d of 40 were let in", in)
	}
	numbers := map[ticket.Ticket]bool{}
	for _, p := range before {
		numbers[p.pass.Ticket] = true
	}
	id := roomID
	for turn := range 3 {
		if err := w.nodes[2].core.Retire(id, w.now); err != nil {
			t.Fatal(err)
		}
		w.run(3 * time.Second)
		w.kill(w.nodes[0])
		w.start(w.nodes[0], escrowSettings(60))
		w.run(ticket.NewFor + 10*time.Second)
		id = successor(id)
		for _, m := range w.nodes {
			w.keeps(m, id)
		}
		w.holds(60, 10_000, "in the room made again")
		if in := w.askAll(before); in != 40 {
			t.Errorf("turn %d: %d of the 40 of before were let in", turn, in)
		}
		for _, p := range before {
			if p.pass.Room != id || numbers[p.pass.Ticket] {
				t.Errorf("turn %d: ticket %v of room %s, want a new one of room %s", turn, p.pass.Ticket, p.pass.Room, id)
			}
			numbers[p.pass.Ticket] = true
		}
		if in := w.askAll(w.crowd(30, w.spread)); in != 20 {
			t.Errorf("turn %d: %d more were let in, want 20", turn, in)
		}
		w.run(70 * time.Second) // all have left
	}
	late := &machine{id: crdt.NodeID{0x11, 0xaa}, site: "b"}
	w.nodes = append(w.nodes, late)
	w.start(late, escrowSettings(60))
	w.run(20 * time.Second)
	w.keeps(late, id)
	w.holds(60, 10_000, "with another node")
	if err := late.core.Configure(escrowSettings(50), w.now); err != nil { // by the id in the file
		t.Fatal(err)
	}
	w.run(20 * time.Second)
	w.holds(50, 10_000, "with another limit")
	if err := late.core.Retire(crdt.RoomID{99}, w.now); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("a room that nobody has was retired: %v", err)
	}
}

// TestARetiredRoomLeavesNothingBehind: nodes that are started without a room go on
// keeping its rights for the others, until it is retired; then they forget it, and soon
// nothing is stored of it but that it is retired.
func TestARetiredRoomLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, escrowSettings(60), "a", "a", "b")
	w.run(20 * time.Second)
	restart := func() {
		for _, m := range w.nodes {
			w.kill(m)
			m.bare = true
			w.start(m, escrowSettings(60))
			w.run(20 * time.Second)
		}
	}
	restart()
	w.holds(60, 10_000, "in a room that no configuration has")
	for _, m := range w.nodes {
		if st := m.core.order[0].status(); !st.Resting || m.core.Route("", "/") != nil {
			t.Errorf("node %d: a room that is not configured takes requests: %+v", m.id[0], st)
		}
	}
	if err := w.nodes[1].core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	for _, m := range w.nodes {
		if n := len(m.core.order); n != 0 {
			t.Errorf("node %d keeps %d rooms", m.id[0], n)
		}
	}
	w.run(strayFor + 2*strayInterval)
	for _, m := range w.nodes {
		for _, s := range m.disk.content() {
			if strings.HasPrefix(s.Object, rightsObject) {
				t.Errorf("node %d still has %s/%s", m.id[0], s.Object, s.Key)
			}
		}
	}
}

// TestARoomOutOfOneConfiguration: a node that is started without a room does not take
// its part of the places along, is an heir, and has its say when another is lost.
func TestARoomOutOfOneConfiguration(t *testing.T) {
	w := newWorld(t, escrowSettings(60), "a", "a", "a", "a")
	w.run(20 * time.Second)
	without, leaver, lost := w.nodes[1], w.nodes[2], w.nodes[3]
	w.kill(without)
	without.bare = true
	w.start(without, escrowSettings(60))
	w.run(80 * time.Second) // rights that may have been in use are aside for a session
	first := w.nodes[0]
	if in := w.askAll(w.crowd(70, at(first))); in != 60 {
		t.Errorf("%d were let in, want 60: one node does not have the room", in)
	}
	if s := without.core.order[0].Settings().SessionDuration; s != escrowSettings(60).SessionDuration {
		t.Errorf("sessions last %v with the node that keeps rights only", s)
	}
	w.run(70 * time.Second)
	w.leaves(leaver)
	w.kill(lost)
	w.members()
	w.run(5 * time.Second)
	if err := first.core.DeclareDead(lost.id, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(4 * time.Minute)
	if held, _ := w.rights(); held.Places != 60 {
		t.Errorf("%d places are held by those who are left, want 60", held.Places)
	}
}

// TestAnotherPolicysRoomMadeAgain: a room without rights is retired and made again, too.
func TestAnotherPolicysRoomMadeAgain(t *testing.T) {
	s := testSettings(60)
	w := newWorld(t, s, "a", "b")
	w.run(5 * time.Second)
	if err := w.nodes[1].core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(3 * time.Second)
	if in := w.askAll(w.crowd(10, w.spread)); in != 0 {
		t.Errorf("%d were let into a retired room", in)
	}
	w.kill(w.nodes[0])
	w.start(w.nodes[0], s)
	w.run(20 * time.Second)
	for _, m := range w.nodes {
		w.keeps(m, successor(roomID))
	}
	if in := w.askAll(w.crowd(10, w.spread)); in != 10 {
		t.Errorf("%d of 10 were let into the room made again", in)
	}
}

// TestGiftsInARoomThatALeaverNeverHad: a node leaves before it has heard of a room, and
// another one gives it rights in that room, since it is still there. Its heir has them,
// whoever was the first or the last to say that it has left.
func TestGiftsInARoomThatALeaverNeverHad(t *testing.T) {
	for name, at := range map[string]string{"the leaver alone says it": "", "its heir says it first": "before", "its heir, which has not heard of that, says it again": "after"} {
		w := newWorld(t, escrowSettings(60), "a", "a", "a")
		w.run(20 * time.Second)
		giver, leaver := w.nodes[0], w.nodes[2]
		heard := func() bool { _, left := leaver.core.facts.left[leaver.id]; return left }
		w.lose = func(l letter) bool {
			return l.to == leaver.id && l.m.Kind == kindReplica && !leaver.core.leave.on ||
				l.from == leaver.id && l.m.Kind == kindHandover && at == "before" && !heard()
		}
		second := escrowSettings(30)
		second.ID, second.Name, second.Path = crdt.RoomID{8}, "second", "/second"
		w.more = []room.Settings{second}
		w.kill(giver)
		w.start(giver, escrowSettings(60))
		w.run(10 * time.Second)
		if leaver.core.rooms[second.ID] != nil {
			t.Fatal("the leaver has heard of the room")
		}
		giver.core.rooms[second.ID].give(leaver.id, ticket.Amount{Places: 5, Rate: 7}, w.now)
		w.run(time.Second)
		if err := leaver.core.Leave(w.now); err != nil {
			t.Fatal(err)
		}
		for said := at == ""; !leaver.core.Left(); w.run(10 * time.Millisecond) {
			told := !leaver.core.leave.told.IsZero()
			if said || !leaver.core.leave.on || at == "after" && !told {
				continue
			}
			if said = true; told != (at == "after") {
				t.Fatalf("%s: the leaver has said it already: %v", name, told)
			}
			heir := w.machine(leaver.core.leave.heir)
			if err := heir.core.replica.Set(nodeKey(factLeft, leaver.id), heir.id[:], w.now.Add(5*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		w.kill(leaver)
		w.run(30 * time.Second)
		var held ticket.Amount
		for _, m := range w.nodes[:2] {
			held = held.Add(m.core.rooms[second.ID].Rights().Held)
		}
		if held != (ticket.Amount{Places: 30, Rate: 10_000}) {
			t.Errorf("%s: %+v are held by those who are left, want all", name, held)
		}
	}
}

// TestStatusWhileRoomsChange reads what another goroutine is about to replace.
func TestStatusWhileRoomsChange(t *testing.T) {
	data, err := OpenDataDir(t.TempDir(), crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{testSettings(10)}, OwnerKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	some := maps.Clone(n.core.rooms)
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		for i := range 1000 {
			if i%2 == 0 {
				n.core.setRooms(map[crdt.RoomID]*Room{})
			} else {
				n.core.setRooms(some)
			}
		}
	}()
	for {
		if got := len(n.Status().Rooms); got > 1 {
			t.Fatalf("%d rooms are shown, of which there is one at most", got)
		}
		select {
		case <-changed:
			return
		default:
		}
	}
}
