package transport

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
)

// echo answers with the question, but for one peer that does not answer.
type echo struct {
	under, most atomic.Int64
}

func (e *echo) Call(_ context.Context, to PeerID, method uint8, req []byte) ([]byte, error) {
	n := e.under.Add(1)
	defer e.under.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	if to[0] == 7 {
		return nil, errors.New("no answer")
	}
	return append([]byte{to[0], method}, req...), nil
}

func TestAllAreAsked(t *testing.T) {
	var peers []Peer
	for i := range 50 {
		peers = append(peers, Peer{ID: PeerID{byte(i)}, State: []State{Alive, Failed}[i/40]})
	}
	alive := AliveOf(peers)
	if len(alive) != 40 {
		t.Fatalf("%d of 50 are alive, want 40", len(alive))
	}
	e, seen := &echo{}, map[byte]bool{}
	AskAll(t.Context(), e, alive, 3, []byte("why"), func(from Peer, answer []byte, err error) {
		seen[from.ID[0]] = true
		if (err != nil) != (from.ID[0] == 7) || err == nil && !slices.Equal(answer, append([]byte{from.ID[0], 3}, "why"...)) {
			t.Errorf("peer %d: %q, %v", from.ID[0], answer, err)
		}
	})
	if len(seen) != 40 || e.most.Load() > askWidth {
		t.Errorf("%d have answered, %d at a time at most; want 40, and %d", len(seen), e.most.Load(), askWidth)
	}
}
