package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// TestLimitsFollowTheConfigurationThatChanged: a node that is started with other
// limits than the last time changes those of the room. One that is started with
// what it had does not undo what was changed since, nor does a new one.
func TestLimitsFollowTheConfigurationThatChanged(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := func(dir string, total int, during func(n *Node)) (held int64) {
			data, err := OpenDataDir(dir, crdt.NodeID{})
			if err != nil {
				t.Fatal(err)
			}
			s := testSettings(total)
			s.Policy = room.Escrow
			n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{s}, OwnerKey: []byte("key"), Found: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- n.Run(ctx, nil) }()
			time.Sleep(2 * time.Minute) // what an earlier start had in use is free again
			if during != nil {
				during(n)
				time.Sleep(time.Second)
			}
			held = n.Route("", "/").Rights().Held.Places
			cancel()
			if err := errors.Join(<-done, data.Close()); err != nil {
				t.Error(err)
			}
			return held
		}
		configure := func(total int) func(n *Node) {
			return func(n *Node) {
				s := testSettings(total)
				s.Policy = room.Escrow
				if err := n.tell(t.Context(), func(c *Core, now time.Time) error { return c.Configure(s, now) }); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, c := range []struct {
			total  int
			during func(n *Node)
			want   int64
		}{{10, nil, 10}, {20, nil, 20}, {20, nil, 20}, {20, configure(50), 50}, {20, nil, 50}, {15, nil, 15}} {
			if held := run(dir, c.total, c.during); held != c.want {
				t.Errorf("start %d with %d: %d places, want %d", i+1, c.total, held, c.want)
			}
		}
		if held := run(other, 7, nil); held != 7 {
			t.Errorf("another mesh: %d places, want 7", held)
		}
	})
}
