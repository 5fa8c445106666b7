package node

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
)

// What a mesh has to bear that is years old.

// TestNodesThatAreReplacedForYears has each node leave to a new one, as operators do who never start a
// machine again, and then the limit be changed: whoever mints by then follows it.
func TestNodesThatAreReplacedForYears(t *testing.T) {
	const times = 70
	w := newWorld(t, escrowSettings(40), "a")
	for i := range times {
		old := w.nodes[i]
		next := &machine{id: crdt.NodeID{byte(i + 2), 0xaa}, site: "a"}
		w.nodes = append(w.nodes, next)
		w.start(next, escrowSettings(40))
		w.until("ready", 20*time.Second, func() bool { return next.core.Ready() })
		if err := old.core.Leave(w.now); err != nil {
			t.Fatal(err)
		}
		w.until("left", 30*time.Second, old.core.Left)
		w.kill(old)
	}
	last := w.nodes[times]
	for _, places := range []int{80, 10} {
		if err := last.core.Configure(escrowSettings(places), w.now); err != nil {
			t.Fatal(err)
		}
		w.run(90 * time.Second)
		if got := w.heldAll(roomID); got.Places != int64(places) {
			t.Errorf("90 s after the limit became %d, %v are held", places, got)
		}
	}
}

// TestANodeToWhichManyHaveLeft: what it would pass on is more than others can be told, so it stays.
func TestANodeToWhichManyHaveLeft(t *testing.T) {
	for leavers, stays := range map[int]bool{100: false, 300: true} {
		w := newStoppedWorld(t)
		for i := range 2 {
			m := &machine{id: crdt.NodeID{byte(i + 1), 0xaa}, site: "a", found: i == 0}
			if i == 0 {
				m.boot = 1 // it has lived before
				m.disk.put(inheritances(leavers))
			}
			w.nodes = append(w.nodes, m)
			w.start(m, escrowSettings(40))
		}
		w.run(25 * time.Second)
		err := w.nodes[0].core.Leave(w.now)
		if is := err != nil && strings.Contains(err.Error(), "declare it dead"); is != stays {
			t.Errorf("after %d have left to it, it leaves with %v", leavers, err)
		}
	}
}

// inheritances is what a node has on its disk to which so many have left, each of which had rights of eight others.
func inheritances(leavers int) (puts []durable.Write) {
	amount := func(a, b int64) []byte { return binary.AppendVarint(binary.AppendVarint(nil, a), b) }
	object := rightsOf(roomID)
	for i := range leavers {
		id := crdt.NodeID{0xd0}
		binary.BigEndian.PutUint32(id[1:], uint32(i))
		puts = append(puts, durable.Write{Object: object, Key: "taken/" + id.String(), Value: append([]byte{1}, amount(0, 0)...)})
		for j := range 8 {
			from := crdt.NodeID{0xd1}
			binary.BigEndian.PutUint32(from[1:], uint32(i+j))
			got := amount(int64(1000+i), int64(100_000+i))
			puts = append(puts, durable.Write{Object: object, Key: "inherited/" + id.String() + "/" + from.String(), Value: slices.Concat(got, got, []byte("the code"))})
		}
	}
	return puts
}
