package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// pendingRights opens rights for a test with 100 places of its own and nothing
// in use.
func pendingRights(t *testing.T, now time.Time, stored ...Put) *Rights {
	t.Helper()
	r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 1}, Room: crdt.RoomID{9}, Session: time.Minute}, stored, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tickWrites has time pass tick by tick, each write confirmed a moment after it began.
func tickWrites(r *Rights, now time.Time, ticks int) time.Time {
	for range ticks {
		now = now.Add(500 * time.Millisecond)
		wrote := r.Writes() != nil
		r.Expire(now)
		if wrote {
			r.Confirmed(now)
		}
	}
	return now
}

// TestBoundStaysWhileRightsComeOver: the bound counts the leases that a leaver
// passes on, or a dead node may have had, from before they are counted here. It
// must not come down while that is being written: after a crash it is all that
// tells of them.
func TestBoundStaysWhileRightsComeOver(t *testing.T) {
	start := time.Unix(1_767_268_800, 0)
	for name, begin := range map[string]func(r *Rights, now time.Time){
		"a leaver's": func(r *Rights, now time.Time) {
			f := Final{Node: crdt.NodeID{2}, Heir: crdt.NodeID{1}, InUse: 40, Accounts: []Account{{Node: crdt.NodeID{1}, Gave: Amount{50, 50}}}}
			r.TakeOver(Handover{Room: crdt.RoomID{9}, Final: f}, now)
		},
		"a dead node's": func(r *Rights, now time.Time) {
			r.Fence(crdt.NodeID{2}, crdt.NodeID{1}, 1, now)
			in := Estate{Dead: []crdt.NodeID{{2}}, Minted: []Amount{{40, 40}}}
			if err := r.Recover(in, now); err != nil {
				t.Fatal(err)
			}
		},
	} {
		r := pendingRights(t, start)
		now := tickWrites(r, start, 4)
		begin(r, now)
		now = tickWrites(r, now, 8)
		if r.InUse() < 40 {
			t.Fatalf("%s: %d in use, want 40", name, r.InUse())
		}
		again := pendingRights(t, now, r.Stored()...)
		if again.InUse() < 40 {
			t.Errorf("%s: after a crash %d count as in use, want 40", name, again.InUse())
		}
		if free := again.Free().Rate; free != 0 {
			t.Errorf("%s: after a crash %d rate rights are ready, which may have been used a moment ago", name, free)
		}
	}
}
