package node

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
	"github.com/ropeline/ropeline/node/room"
)

// roomyDisk has as much room as the test says; what is written takes none.
type roomyDisk struct {
	durable.Disk
	free atomic.Int64
}

func (d *roomyDisk) Free(string) (free, size int64, err error) {
	return d.free.Load(), math.MaxInt64, nil
}

// reserve is what of a large disk has to be free.
const reserve = 16 << 20

// TestJournalStopsBeforeADiskIsFull takes the room away while commits still succeed.
func TestJournalStopsBeforeADiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &roomyDisk{Disk: faultstore.NewMemory(1)}
		under.free.Store(reserve)
		d := newDesk(t, under)
		d.run(3 * time.Second)
		if d.failures != 0 || d.tickets < 30 {
			t.Fatalf("%d failures and %d tickets with just enough room", d.failures, d.tickets)
		}
		under.free.Store(reserve - 1)
		d.run(time.Second)
		before := d.tickets
		d.run(5 * time.Second)
		if d.failures != 1 || d.tickets != before || d.j.failures.Load() != 1 {
			t.Errorf("%d failures and %d tickets more than a second after the disk was full, status counts %d; want 1, 0, 1", d.failures, d.tickets-before, d.j.failures.Load())
		}
		if n := d.logs.count("level=ERROR"); n != 1 || d.logs.count(durable.ErrFull.Error()) != 2 {
			t.Errorf("%d errors logged, want one, and a warning of how much it takes to go on", n)
		}
		under.free.Store(2*reserve - 1)
		d.run(3 * time.Second)
		if d.backs != 0 {
			t.Error("it goes on with hardly any room")
		}
		under.free.Store(2 * reserve)
		d.run(1100 * time.Millisecond)
		if d.backs != 1 || d.tickets == before || d.disk.Created() != 0 {
			t.Errorf("a second after there was room: well %d times, %d tickets more, %d new stores; want 1, some, 0: the old one is sound", d.backs, d.tickets-before, d.disk.Created())
		}
		d.stop()
	})
}

// TestJournalProbesTheDisk: tickets are given that need no write, and the disk fails.
func TestJournalProbesTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, faultstore.NewMemory(1))
		d.run(time.Second)
		quiet := func(span time.Duration, each func()) {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(tickInterval) {
				each()
				select {
				case o := <-d.j.outcomes:
					d.j.settle(d, o, time.Now())
				default:
				}
				d.j.step(d, time.Now())
			}
		}
		quiet(time.Second, func() {})
		before := d.disk.Commits()
		quiet(10*time.Second, func() {})
		if n := d.disk.Commits() - before; n != 0 {
			t.Errorf("%d writes of a node that does nothing", n)
		}
		give := func() { d.tickets++ }
		quiet(10*time.Second, give)
		if n := d.disk.Commits() - before; n < 18 || n > 21 {
			t.Errorf("%d writes in 10 s in which tickets were given, want two in each", n)
		}
		d.disk.Set(faultstore.Faults{FailAt: d.disk.Commits() + 1, Outcome: faultstore.Maybe})
		quiet(time.Second, give)
		if d.failures != 1 {
			t.Errorf("%d failures a second after the disk began to fail, want 1", d.failures)
		}
		quiet(2*time.Second, give)
		if d.backs != 1 || d.disk.Created() != 1 {
			t.Errorf("%d times well and %d new stores, want 1 each", d.backs, d.disk.Created())
		}
		d.stop()
	})
}

// TestNodeWhoseDiskIsFull has visitors come while there is room, while there is none,
// and afterwards. Who is in goes on all the time.
func TestNodeWhoseDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		data, err := OpenDataDir(dir, crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		disk := &roomyDisk{Disk: faultstore.NewMemory(1)}
		disk.free.Store(math.MaxInt64)
		n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{escrowSettings(100)}, OwnerKey: []byte("key"), Found: true, Disk: disk})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, nil) }()
		time.Sleep(3 * time.Second)
		in := n.Route("shop", "/").Decide(Pass{}, false, n.Now())
		for i, step := range []struct {
			free  int64
			admit bool
			store string
		}{{0, false, durable.ErrFull.Error()}, {3 * reserve, true, "ok"}, {reserve / 2, false, durable.ErrFull.Error()}, {2 * reserve, true, "ok"}} {
			disk.free.Store(step.free)
			time.Sleep(1100 * time.Millisecond)
			if v := n.Route("shop", "/").Decide(Pass{}, false, n.Now()); v.Admit != step.admit {
				t.Errorf("with %d bytes free a visitor is let in: %v", step.free, v.Admit)
			}
			if v := n.Route("shop", "/").Decide(in.Pass, true, n.Now()); !v.Admit {
				t.Errorf("with %d bytes free a visitor who is in was turned away", step.free)
			}
			begun := time.Now()
			_, err := n.note(t.Context(), func(c *Core, now time.Time) error {
				return c.facts.set(nodeKey(factDead, crdt.NodeID{77, byte(i)})+"/"+n.core.self.Node.String(), []byte{factVersion}, now)
			})
			if wrote := err == nil; wrote != step.admit || !wrote && !errors.Is(err, durable.ErrFull) || time.Since(begun) > 3*time.Second {
				t.Errorf("with %d bytes free an operator heard %v after %v", step.free, err, time.Since(begun))
			}
			if is := n.Status(); !strings.Contains(is.Store, step.store) {
				t.Errorf("with %d bytes free status says %q of the store, want %q", step.free, is.Store, step.store)
			}
		}
		if is := n.Status(); is.StoreFailures != 2 {
			t.Errorf("%d failures of the store in status, want 2", is.StoreFailures)
		}
		cancel()
		if err := errors.Join(<-done, data.Close()); err != nil {
			t.Error(err)
		}
	})
}
