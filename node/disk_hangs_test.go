package node

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/durable/faultstore"
	"github.com/ropeline/ropeline/node/room"
)

// hangingDisk answers no write once hangs is set, until back is closed.
type hangingDisk struct {
	durable.Disk
	hangs atomic.Bool
	back  chan struct{}
}

func (d *hangingDisk) Open(path string) (durable.Store, error) {
	s, err := d.Disk.Open(path)
	return hangingStore{s, d}, err
}

type hangingStore struct {
	durable.Store
	disk *hangingDisk
}

func (s hangingStore) Commit(batch []durable.Write) error {
	if s.disk.hangs.Load() {
		<-s.disk.back
	}
	return s.Store.Commit(batch)
}

// TestADiskThatHangsHoldsNoEndUp has a node end whose disk answers nothing: with an error, once it has waited, and with what
// was under way ending whenever the disk does.
func TestADiskThatHangsHoldsNoEndUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		data, err := OpenDataDir(dir, crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		disk := &hangingDisk{Disk: faultstore.NewMemory(1), back: make(chan struct{})}
		n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{escrowSettings(100)}, OwnerKey: []byte("key"), Found: true, Disk: disk})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx, nil) }()
		time.Sleep(3 * time.Second)
		disk.hangs.Store(true)
		n.Route("shop", "/").Decide(Pass{}, false, n.Now())
		time.Sleep(3 * time.Second)
		begun := time.Now()
		cancel()
		if err := <-done; !errors.Is(err, errDiskHangs) || time.Since(begun) > diskEndsWithin+time.Second {
			t.Errorf("after %v it ended with %v", time.Since(begun), err)
		}
		close(disk.back)
		synctest.Wait()
		if err := data.Close(); err != nil {
			t.Error(err)
		}
	})
}
