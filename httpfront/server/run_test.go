package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// TestNobodyWaitsForAFileThatHangs has parts end at once, in a second, and never.
func TestNobodyWaitsForAFileThatHangs(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name       string
		took, want time.Duration // until the part ends after it was told to, negative: it ended before; and until it is left
		err        error
	}{
		{"ended before", -1, 0, broken},
		{"at once", 0, time.Minute, broken},
		{"in a second", time.Second, time.Minute + time.Second, broken},
		{"never", time.Hour, time.Minute + filesEndWithin, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if tt.took >= 0 {
				time.AfterFunc(time.Minute, cancel)
			}
			defer cancel()
			began := time.Now()
			err := looksAt("a file", func(ctx context.Context) error {
				if tt.took >= 0 {
					<-ctx.Done()
					time.Sleep(tt.took)
				}
				return broken
			}, slog.New(slog.DiscardHandler))(ctx)
			if took := time.Since(began); took != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s: it ended after %v with %v, want %v and %v", tt.name, took, err, tt.want, tt.err)
			}
			time.Sleep(2 * time.Hour) // for all goroutines to end
		})
	}
}

// obedient is a node that does what a test says, from a moment on.
type obedient struct {
	from     time.Time // ready
	knows    time.Time // of the dead
	heirAt   time.Time // has all rights
	declared []crdt.NodeID
	retired  []crdt.RoomID
}

func (o *obedient) Ready() error {
	if time.Now().Before(o.from) {
		return errors.New("not ready")
	}
	return nil
}

func (o *obedient) Leave(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(o.heirAt)):
		return nil
	}
}

func (o *obedient) DeclareDead(_ context.Context, id crdt.NodeID) error {
	if time.Now().Before(o.knows) {
		return errors.New("no such node")
	}
	o.declared = append(o.declared, id)
	return nil
}

func (o *obedient) Retire(_ context.Context, id crdt.RoomID) error {
	if time.Now().Before(o.knows) {
		return node.ErrUnknownRoom
	}
	o.retired = append(o.retired, id)
	return nil
}

func TestLeaveWaitsForTheHeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{time.Second: true, time.Minute: false} {
			start := time.Now()
			got := leave(t.Context(), &obedient{heirAt: start.Add(after)}, slog.New(slog.DiscardHandler))
			if took := time.Since(start); got != want || took > leavePatience {
				t.Errorf("heir after %v: left %v after %v", after, got, took)
			}
		}
	})
}

func TestOrdersAreGivenOnceTheNodeKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := Rights{DeclareDead: []crdt.NodeID{{1}, {2}}, RetireRooms: []crdt.RoomID{{3}}}
		now := time.Now()
		n := &obedient{from: now.Add(5 * time.Second), knows: now.Add(9 * time.Second)}
		err := obey(t.Context(), n, orders, slog.New(slog.DiscardHandler))
		if err != nil || !slices.Equal(n.declared, orders.DeclareDead) || !slices.Equal(n.retired, orders.RetireRooms) {
			t.Errorf("declared %v, retired %v, %v", n.declared, n.retired, err)
		}
		for _, orders := range []Rights{{DeclareDead: orders.DeclareDead[:1]}, {RetireRooms: orders.RetireRooms}} {
			n = &obedient{knows: now.Add(time.Hour)}
			start := time.Now()
			err := obey(t.Context(), n, orders, slog.New(slog.DiscardHandler))
			if err != nil || len(n.declared)+len(n.retired) > 0 || time.Since(start) > 2*newsPatience {
				t.Errorf("what nobody knows: %v, %v, %v after %v", n.declared, n.retired, err, time.Since(start))
			}
		}
	})
}
