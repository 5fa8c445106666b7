package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestSameQuestionsBecomeOneCall sends one pass that has run out many times at
// once, while the anchor takes its time.
func TestSameQuestionsBecomeOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testSettings(10)
		c, now := loneCore(t, openRooms(1))
		r := c.order[0]
		end := now.Add(s.SessionDuration)
		var calls atomic.Int32
		c.call = func(context.Context, crdt.NodeID, uint8, []byte) ([]byte, error) {
			calls.Add(1)
			time.Sleep(askTimeout / 2)
			return encodeReply(reply{end}), nil
		}
		old := Pass{Visitor: VisitorID{1}, Room: r.id, Arrival: now.Add(-time.Hour), AcceptedAt: now.Add(-time.Hour), LeaseEnd: now.Add(-time.Second)}
		old.Ticket.Anchor, old.Ticket.Boot, old.Ticket.Seq = crdt.NodeID{9}, 1, 1
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if v := r.Decide(old, true, now); !v.Admit || !v.Pass.LeaseEnd.Equal(end) {
					t.Errorf("verdict = %+v, want the anchor's word for all", v)
				}
			})
		}
		wg.Wait()
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls for one question at a time, want 1", got)
		}
		r.Decide(old, true, now)
		if got := calls.Load(); got != 2 {
			t.Errorf("%d calls after another question, want 2: an answer is not kept", got)
		}
	})
}
