package node

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
)

// movedDisk is one whose stores are gone from their path, as soon as the test says so, until a new one is there.
type movedDisk struct {
	durable.Disk
	gone, stays atomic.Bool
}

type movedStore struct {
	durable.Store
	disk *movedDisk
}

func (s movedStore) Check() error {
	if s.disk.gone.Load() {
		return durable.ErrGone
	}
	return s.Store.Check()
}

func (d *movedDisk) Open(path string) (durable.Store, error) {
	s, err := d.Disk.Open(path)
	return movedStore{s, d}, err
}

func (d *movedDisk) Create(path string, all []durable.Write) (durable.Store, error) {
	if d.stays.Load() {
		return nil, durable.ErrGone
	}
	d.gone.Store(false)
	s, err := d.Disk.Create(path, all)
	return movedStore{s, d}, err
}

// TestJournalNoticesThatItsStoreIsGone, though every write into it succeeds, and goes on in a new one.
func TestJournalNoticesThatItsStoreIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &movedDisk{Disk: faultstore.NewMemory(1)}
		d := newDesk(t, under)
		d.run(3 * time.Second)
		if d.failures != 0 || d.tickets < 30 {
			t.Fatalf("%d failures and %d tickets while all was well", d.failures, d.tickets)
		}
		under.gone.Store(true)
		under.stays.Store(true)
		d.run(time.Second)
		before := d.tickets
		d.run(3 * time.Second)
		if d.failures != 1 || d.tickets != before || d.logs.count(durable.ErrGone.Error()) == 0 {
			t.Errorf("%d failures and %d tickets while there is no store at its path", d.failures, d.tickets-before)
		}
		under.stays.Store(false)
		d.run(1100 * time.Millisecond)
		if d.backs != 1 || d.disk.Created() != 1 || d.tickets == before {
			t.Errorf("a second after one could be made again: well %d times, %d new stores, %d tickets; want 1, 1, some", d.backs, d.disk.Created(), d.tickets-before)
		}
		d.stop()
	})
}
