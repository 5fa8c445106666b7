package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// storedCore returns a node without rooms that starts with what is on a disk.
func storedCore(t *testing.T, d *disk) *Core {
	t.Helper()
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a",
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)), Stored: d.content(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func setFact(t *testing.T, c *Core, n int, value string) {
	t.Helper()
	if err := c.replica.Set(fmt.Sprint("fact/", n), []byte(value), noon); err != nil {
		t.Fatal(err)
	}
}

func wantFact(t *testing.T, c *Core, n int, value string) {
	t.Helper()
	if got, _, _ := c.replica.Get(fmt.Sprint("fact/", n)); string(got) != value {
		t.Errorf("fact %d is %q, want %q", n, got, value)
	}
}

// TestFactsAreWrittenOneByOne: a change of one fact of many writes that one, and what
// is known of its writer; after a failed write a new store has all that is known by then.
func TestFactsAreWrittenOneByOne(t *testing.T) {
	var d disk
	c := storedCore(t, &d)
	for n := range 1000 {
		setFact(t, c, n, "old")
	}
	d.put(c.Writes())
	c.Written(nil, noon)
	setFact(t, c, 7, "new")
	batch := c.Writes()
	if len(batch) != 2 {
		t.Errorf("%d writes for the change of one fact, want 2", len(batch))
	}
	c.Written(errDisk, noon)
	d = disk{}
	d.put(c.Stored())
	wantFact(t, storedCore(t, &d), 7, "new")
	wantFact(t, storedCore(t, &d), 999, "old")
	setFact(t, c, 8, "new") // while the new store is being made
	c.StoreBack(noon)
	if batch = c.Writes(); len(batch) != 2 {
		t.Errorf("%d writes after a failure and another change, want 2", len(batch))
	}
	d.put(batch)
	c.Written(nil, noon)
	if batch = c.Writes(); batch != nil {
		t.Errorf("%d writes with nothing new", len(batch))
	}
	again := storedCore(t, &d)
	wantFact(t, again, 7, "new")
	wantFact(t, again, 8, "new")
	wantFact(t, again, 999, "old")
	if batch = again.Writes(); batch != nil {
		t.Errorf("%d writes after a start", len(batch))
	}
}

// TestFactsComeAgainInTheOldStore: where the store goes on that a write to failed, as it does
// when its disk was full, all that was in the write comes again.
func TestFactsComeAgainInTheOldStore(t *testing.T) {
	var d disk
	c := storedCore(t, &d)
	setFact(t, c, 7, "old")
	d.put(c.Writes())
	c.Written(nil, noon)
	c.Stored() // is of no consequence
	setFact(t, c, 7, "new")
	c.Writes()
	c.Written(errDisk, noon)
	c.StoreBack(noon)
	d.put(c.Writes())
	c.Written(nil, noon)
	wantFact(t, storedCore(t, &d), 7, "new")
}

// TestANodeThatStartsWritesNoRights: those who wait are known of before the rights of their room are.
func TestANodeThatStartsWritesNoRights(t *testing.T) {
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Site: "a", Rooms: openRooms(1),
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := c.order[0]
	if r.rights != nil {
		t.Fatal("a room has rights before the node has peers")
	}
	s := *r.settings.Load()
	s.Policy = room.Escrow
	r.expect(&room.View{Settings: &s, Slots: 10}, noon)
	if len(c.storing.touched) > 0 {
		t.Error("rights that are not known are to be written")
	}
	c.Writes() // must not panic
}
