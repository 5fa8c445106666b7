package node

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
	"github.com/ropeline/ropeline/node/room"
)

// manyRooms is so many rooms that their facts are more than an object of the store
// usually has, and more than go in one batch.
const manyRooms = 6000

// escrowCore returns a node that makes the rights of many rooms.
func escrowCore(t *testing.T, boot uint64, stored []durable.Write) *Core {
	t.Helper()
	rooms := openRooms(manyRooms)
	for i := range rooms {
		rooms[i].Policy = room.Escrow
	}
	c, err := NewCore(CoreConfig{
		Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: boot}, Site: "a", Rooms: rooms,
		OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(1, 1)), Found: true, Stored: stored,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.SetPeers(nil, noon)
	return c
}

// runOn lets a node and its journal run until nothing is left to be written.
func runOn(t *testing.T, c *Core, j *journal, now time.Time) {
	t.Helper()
	for quiet := 0; quiet < 5; now = now.Add(tickInterval) {
		c.Tick(now)
		quiet++
		for j.step(c, now); j.busy; quiet = 0 {
			o := <-j.outcomes
			if o.err != nil {
				t.Fatalf("a batch was not taken: %.200v", o.err)
			}
			j.settle(c, o, now)
		}
		if now.Sub(noon) > time.Minute {
			t.Fatal("there is no end of what is to be written")
		}
	}
}

// TestManyRoomsAreKept: a node writes down what it has to of thousands of rooms, and
// finds all of it when it starts again.
func TestManyRoomsAreKept(t *testing.T) {
	single.Mostly(t)
	disk := faultstore.NewMemory(1)
	store, err := disk.Open("s")
	if err != nil {
		t.Fatal(err)
	}
	mark := durable.Write{Object: startObject, Key: startKey, Value: []byte{1}}
	j, err := newJournal(disk, "s", store, mark, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- j.run() }()
	c := escrowCore(t, 1, nil)
	runOn(t, c, j, noon)
	if !c.Noted(c.Told()) {
		t.Error("not all facts are on disk")
	}
	j.finish(c, noon)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var stored []durable.Write
	if store, err = disk.Open("s"); err != nil {
		t.Fatal(err)
	}
	if err := store.Load(func(w durable.Write) bool {
		if w.Object != startObject {
			stored = append(stored, w)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	again := escrowCore(t, 2, stored)
	again.Tick(noon)
	for i, r := range again.order {
		if got, want := r.Rights().Held, c.order[i].Rights().Held; got != want || want.IsZero() {
			t.Fatalf("room %s has %v after a start, had %v", r.id, got, want)
		}
	}
}

// oversized wants something written that no store takes.
type oversized struct {
	*ledger
	tries int
}

func (o *oversized) Writes() []durable.Write {
	if o.failed != nil || o.flying > 0 {
		return nil
	}
	o.flying = 1
	o.tries++
	return []durable.Write{{Object: ledgerObject, Key: "n", Value: make([]byte, durable.MaxValue+1)}}
}

// TestJournalWhenTheStoreRefuses: what is beyond the store's limits stops tickets like a
// failed write, but says what it is, and does not wear the disk out with new stores.
func TestJournalWhenTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		big := &oversized{ledger: d.ledger}
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(tickInterval) {
			for d.j.step(big, time.Now()); d.j.busy; {
				d.j.settle(big, <-d.j.outcomes, time.Now())
			}
		}
		if big.tries != 1 || d.disk.Created() > 0 {
			t.Errorf("tried %d times and made %d new stores within ten seconds, want once and none", big.tries, d.disk.Created())
		}
		if d.failures != 1 || d.logs.count("the disk is not the reason") != 1 {
			t.Errorf("%d failures and this log:\n%s", d.failures, &d.logs.b)
		}
		d.j.finish(big, time.Now())
		d.wg.Wait()
	})
}
