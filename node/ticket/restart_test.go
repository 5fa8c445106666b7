package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestMoreWasInUseThanTheBoundSays restarts a node whose store is from a backup, or from when rights
// limited nothing, while others remember how many sessions it had: so many go on, and count, and
// none of its rate rights lets anybody in within a minute.
func TestMoreWasInUseThanTheBoundSays(t *testing.T) {
	now := at(0)
	ledger := []Put{{keyMinted, appendAmount(nil, Amount{10, 10})}, {keyBound, appendAmount(nil, Amount{2, 2})}}
	for _, c := range []struct {
		before      int64
		inUse, free int64 // places
		ready       int64 // rate rights at once
		name        string
	}{
		{0, 2, 8, 8, "nobody remembers any"},
		{2, 2, 8, 8, "as many as the bound says"},
		{7, 7, 3, 0, "more than the bound says"},
	} {
		r, _, err := OpenRights(RightsConfig{
			Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 2}, Session: time.Minute, Before: c.before,
		}, ledger, now)
		if err != nil {
			t.Fatal(err)
		}
		free := r.physical(now)
		if r.InUse() != c.inUse || free != (Amount{c.free, c.ready}) {
			t.Errorf("%s: %d places are in use, and %+v are free, want %d, and %d places and %d of the rate",
				c.name, r.InUse(), free, c.inUse, c.free, c.ready)
		}
		for n := range c.inUse + 1 {
			old := Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: uint64(n + 1)}
			if _, _, err := r.CheckIn(old, now.Add(time.Minute), now, now); (err == nil) != (n < c.inUse) {
				t.Errorf("%s: session %d of before: %v", c.name, n+1, err)
			}
		}
		if then := now.Add(NewFor + time.Second); r.physical(then).Rate != 10 {
			t.Errorf("%s: %d rate rights are ready after a minute, want 10", c.name, r.physical(then).Rate)
		}
	}
}

// TestAMintersLockByAClockThatIsBehind: the clock of a node that leaves within its lock is two minutes behind. What
// a lost minter had minted may have let in visitors just before, so its heir mints nothing within a minute. Once
// the lock is over, whoever takes over mints at once.
func TestAMintersLockByAClockThatIsBehind(t *testing.T) {
	raised := func(d *desk1, now time.Time) bool {
		d.SetLimits(Amount{200, 200}, Amount{100, 100}, self.Node, now)
		d.write(now)
		return d.Held() == Amount{200, 200}
	}
	for _, c := range []struct {
		name  string
		after time.Time
		waits bool
	}{
		{"within the lock", at(61 - 120), true},
		{"when it is over", time.Time{}, false},
	} {
		d := newDesk1(t, 0)
		d.TakeOver(handover(Final{Minting: Minting{true, Amount{100, 100}}, MintAfter: c.after}, Amount{100, 100}), at(1))
		d.write(at(1))
		if got := raised(d, at(60)); got == c.waits {
			t.Errorf("%s: within a minute it has minted: %v", c.name, got)
		}
		if !raised(d, at(2).Add(NewFor)) {
			t.Errorf("%s: it has minted nothing after a minute", c.name)
		}
	}
	d := newDesk1(t, 0, Put{keyMinted, appendAmount(nil, Amount{100, 100})})
	d.WaitToMint(at(50))
	for _, now := range []time.Time{at(49), at(51)} {
		d.SetLimits(Amount{100, 100}, Amount{}, self.Node, now)
		if is, over := d.mintAfter(), now.Equal(at(51)); is.IsZero() != over {
			t.Errorf("at %v its last ledger would say that nothing may be minted until %v", now, is)
		}
	}
}
