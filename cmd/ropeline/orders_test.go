package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// obedient is a node that does what a test says, from a moment on.
type obedient struct {
	from     time.Time // ready
	knows    time.Time // of the dead
	heirAt   time.Time // has all rights
	declared []crdt.NodeID
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

func TestDeadAreDeclaredOnceTheyAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := []crdt.NodeID{{1}, {2}}
		now := time.Now()
		n := &obedient{from: now.Add(5 * time.Second), knows: now.Add(9 * time.Second)}
		if err := declareDead(t.Context(), n, dead, slog.New(slog.DiscardHandler)); err != nil || !slices.Equal(n.declared, dead) {
			t.Errorf("declared %v, %v", n.declared, err)
		}
		n = &obedient{knows: now.Add(time.Hour)}
		start := time.Now()
		if err := declareDead(t.Context(), n, dead[:1], slog.New(slog.DiscardHandler)); err != nil || len(n.declared) > 0 || time.Since(start) > 2*deadPatience {
			t.Errorf("one that nobody knows: %v, %v after %v", n.declared, err, time.Since(start))
		}
	})
}
