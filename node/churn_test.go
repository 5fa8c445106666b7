package node

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"runtime"
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
	)
	w := newStoppedWorld(t)
	w.catalog = true
	for i := range 99 {
		s := elsewhere(50)
		s.ID, s.Name, s.Path, s.CookieSuffix = crdt.RoomID{0xee, byte(i)}, fmt.Sprint("stays", i), fmt.Sprint("/stays", i), fmt.Sprint("s", i)
		w.more = append(w.more, s)
	}
	w.begin(elsewhere(90), "a", "a", "b")
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
		w.edit(w.nodes[i/batch%3], w.more[0].ID, func(r *catalog.Room) { r.Settings.TotalActiveUsers = 50 + i/batch%2 })
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
		"facts on disk": {is.OnDisk, was.OnDisk}, "keys of ledgers": {is.Ledgers, was.Ledgers}, "bytes of counts": {is.Counts, was.Counts},
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
