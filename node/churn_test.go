package node

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

var churnRooms = flag.Int("rooms", 0, "how many rooms TestRoomsThatCameAndWent makes and deletes; 0: it is left out")

// TestRoomsThatCameAndWent makes and deletes as many rooms as are wanted, at three nodes in two sites, with capacity
// in each, while a hundred stay, and weighs the nodes before and after. Operators change a room that stays all the time.
// TestDeletedRoomsAreForgotten is the same in small.
func TestRoomsThatCameAndWent(t *testing.T) {
	if *churnRooms == 0 {
		t.Skip("no rooms are wanted: see -rooms")
	}
	const (
		batch = 500
		spare = 20 * time.Millisecond
		acts  = 5 // that operate has
	)
	w := newStoppedWorld(t)
	w.catalog = true
	for i := range 99 {
		s := elsewhere(50)
		s.ID, s.Name, s.Path, s.CookieSuffix = crdt.RoomID{0xee, byte(i)}, fmt.Sprint("stays", i), fmt.Sprint("/stays", i), fmt.Sprint("s", i)
		w.more = append(w.more, s)
	}
	w.begin(elsewhere(90), "a", "a", "b")
	for i := range acts * len(w.more) { // what operators have once set of a room that stays, stays too
		w.operate(i, w.more[i/acts].ID)
	}
	w.run(40 * time.Minute)
	before, heap := make([]weight, 3), w.heapOfNodes()
	for i, m := range w.nodes {
		before[i] = w.weigh(m)
		t.Logf("before: node %d has %+v", i, before[i])
	}
	most := 0
	for i := 0; i < *churnRooms; i += batch {
		for j := range batch {
			w.add(w.nodes[j%3], passerby(i+j))
			w.run(spare)
		}
		w.run(ticket.NewFor + 2*time.Second)
		for j := range batch {
			w.edit(w.nodes[(j+1)%3], passerby(i+j).ID, nil)
			w.run(spare)
		}
		w.operate(i/batch, w.more[i/batch%len(w.more)].ID)
		if most = max(most, w.nodes[0].core.replica.MapLen()); i%(20*batch) == 0 {
			t.Logf("%d rooms: %+v, heap %d KiB", i+batch, w.weigh(w.nodes[0]), liveHeap()>>10)
		}
	}
	w.run(40 * time.Minute)
	for i, m := range w.nodes {
		is := w.weigh(m)
		t.Logf("after: node %d has %+v", i, is)
		is.within(t, before[i], 1.1)
	}
	after := w.heapOfNodes()
	if t.Logf("the three nodes had %d KiB of heap, and have %d; %d keys at most", heap>>10, after>>10, most); float64(after) > 1.1*float64(heap) {
		t.Errorf("the three nodes have %d bytes of heap, %d before", after, heap)
	}
	runtime.KeepAlive(w)
}

// passerby returns one of the rooms that come and go.
func passerby(i int) room.Settings {
	s := shopSettings(50)
	s.ID = crdt.RoomID{0xdd}
	binary.BigEndian.PutUint32(s.ID[4:], uint32(i))
	s.Name, s.CookieSuffix, s.Path = fmt.Sprint("room", i), fmt.Sprint("r", i), fmt.Sprint("/", i)
	return s
}

func (is weight) within(t *testing.T, was weight, times float64) {
	t.Helper()
	for what, n := range map[string][2]int{
		"keys": {is.Keys, was.Keys}, "rooms with facts": {is.Facts, was.Facts}, "rooms that are counted": {is.Counted, was.Counted}, "rooms": {is.Rooms, was.Rooms},
		"facts on disk": {is.OnDisk, was.OnDisk}, "keys of ledgers": {is.Ledgers, was.Ledgers}, "values in counts": {is.Counts, was.Counts},
		"rooms known to be deleted": {is.Known, was.Known}, "ledgers of no room": {is.Left, was.Left},
	} {
		if float64(n[0]) > times*float64(n[1]) {
			t.Errorf("%s: %d, %d before", what, n[0], n[1])
		}
	}
}

// heapOfNodes returns what the nodes take, and their disks, which are maps here, with no more room than they need.
func (w *world) heapOfNodes() uint64 {
	for _, m := range w.nodes {
		keys := make(map[[2]string][]byte, len(m.disk.keys))
		for key, value := range m.disk.keys {
			keys[key] = bytes.Clone(value) // which lay among those that were written with it
		}
		m.disk.keys = keys
	}
	return liveHeap()
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

var churnNodes = flag.Int("nodes", 0, "how many nodes come and leave in TestChurnLeavesNothing, with 100 rooms; 0: a few, with two")

// TestChurnLeavesNothing has nodes come and leave, and weighs those that stay before and after. One is replaced every half
// minute, that is 120 in the hour: it comes, is there for eight seconds, leaves, and nobody comes for 20. Operators change
// rooms all the time. Before they are weighed first, so many have come that all who stay have dealt with each other.
func TestChurnLeavesNothing(t *testing.T) {
	dealt, comings, rooms := 20, 20, 2
	switch {
	case *churnNodes > 0:
		dealt, comings, rooms = 30, *churnNodes, 100
	case testing.Short():
		comings = 10
	}
	c := newNodeChurn(t, rooms)
	w := c.world
	c.replace(dealt)
	before, heap := make([]weight, 3), w.heapOfNodes()
	for i, m := range w.nodes {
		before[i] = w.weigh(m)
	}
	c.replace(comings)
	for i, m := range w.nodes {
		is := w.weigh(m)
		t.Logf("node %d has %+v, and had %+v", i, is, before[i])
		is.within(t, before[i], 1.1)
		for _, id := range c.gone[max(0, len(c.gone)-50):] {
			if names := m.names(id); len(names) > 0 {
				t.Errorf("node %d names one that is gone: %q", i, names)
			}
		}
	}
	after := w.heapOfNodes()
	if t.Logf("the three nodes had %d KiB of heap, and have %d after %d nodes came and left; %d keys at most", heap>>10, after>>10, comings, c.most); *churnNodes > 0 && float64(after) > 1.1*float64(heap) { // of a few rooms and nodes all is little
		t.Errorf("the three nodes have %d bytes of heap, %d before", after, heap)
	}
	for _, room := range c.rooms {
		if sum := w.heldAll(room.ID); sum.Places != int64(room.TotalActiveUsers) {
			t.Errorf("room %s: %d places are held, want %d", room.ID, sum.Places, room.TotalActiveUsers)
		}
	}
	runtime.KeepAlive(w)
}

// nodeChurn is a world of three nodes that stay, while others come and leave.
type nodeChurn struct {
	*world
	rooms []room.Settings
	gone  []crdt.NodeID
	most  int // keys
}

func newNodeChurn(t *testing.T, rooms int) *nodeChurn {
	c := &nodeChurn{world: newStoppedWorld(t), rooms: []room.Settings{elsewhere(90)}}
	for i := range rooms - 1 {
		s := elsewhere(50)
		s.ID, s.Name, s.Path, s.CookieSuffix = crdt.RoomID{8, byte(i)}, fmt.Sprint("other", i), fmt.Sprint("/other", i), fmt.Sprint("o", i)
		c.rooms = append(c.rooms, s)
	}
	c.catalog, c.more = true, c.rooms[1:]
	c.begin(c.rooms[0], "a", "a", "b")
	c.run(10 * time.Second)
	return c
}

// replace has so many nodes come and leave, and the others forget them.
func (c *nodeChurn) replace(n int) {
	for range n {
		came := len(c.gone)
		m := &machine{id: crdt.NodeID{byte(10 + came%200), byte(came / 200), 0xcc}, site: []string{"a", "b"}[came%2]}
		c.nodes = append(c.nodes[:3], m) // the one before has left
		c.start(m, c.rooms[0])
		c.run(8 * time.Second)
		c.operate(came, c.rooms[came%len(c.rooms)].ID)
		c.leaves(m)
		c.gone, c.most = append(c.gone, m.id), max(c.most, c.nodes[0].core.replica.MapLen())
		if c.idle(20 * time.Second); (came+1)%100 == 0 {
			c.t.Logf("%d nodes: %+v, heap %d KiB", came+1, c.weigh(c.nodes[0]), liveHeap()>>10)
		}
	}
	c.nodes = slices.Clone(c.nodes[:3]) // without the last that left
	c.idle(70 * time.Minute)
	c.members()
}

// operate has an operator do one of the things that there are to a room, and take it back at another node: what is answered
// is on the disks of all nodes, and holds at each.
func (w *world) operate(turn int, id crdt.RoomID) {
	w.t.Helper()
	acts := []struct{ do, undo func(s *room.Settings) }{
		{func(s *room.Settings) { s.TotalActiveUsers -= 7 }, func(s *room.Settings) { s.TotalActiveUsers += 7 }},
		{func(s *room.Settings) { s.Suspended = true }, func(s *room.Settings) { s.Suspended = false }},
		{func(s *room.Settings) { s.QueueAll = true }, func(s *room.Settings) { s.QueueAll = false }},
		{func(s *room.Settings) { s.Front.CustomPage = fmt.Sprint("<p>", turn) }, func(s *room.Settings) { s.Front.CustomPage = "" }},
	}
	if turn%(len(acts)+1) == len(acts) { // a room is made, and deleted
		s := passerby(1<<31 + turn)
		w.add(w.nodes[turn%3], s)
		w.run(2 * time.Second)
		w.edit(w.nodes[(turn+1)%3], s.ID, nil)
		w.run(2 * time.Second)
		for _, m := range w.nodes {
			if m.core.Catalog().Room(s.ID) != nil {
				w.t.Errorf("%s has a room that is deleted", m.id)
			}
		}
		return
	}
	act := acts[turn%(len(acts)+1)]
	for i, change := range []func(s *room.Settings){act.do, act.undo} {
		if late := w.change(w.nodes[(turn+i)%3], id, func(r *catalog.Room) { change(&r.Settings) }); len(late) > 0 {
			w.t.Errorf("act %d is not at %v when it is answered", turn, late)
		}
		is := w.nodes[(turn+i)%3].core.Catalog().Room(id).Settings
		for _, m := range w.nodes {
			if got := m.core.Catalog().Room(id).Settings; !reflect.DeepEqual(got, is) {
				w.t.Errorf("act %d does not hold at %s: %+v, want %+v", turn, m.id, got, is)
			}
		}
	}
}
