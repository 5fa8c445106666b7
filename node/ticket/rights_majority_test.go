package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// mayGoOn is the rule under which a mesh could declare its own dead: a node that
// reaches, itself included, no more than half of the nodes it knows stops issuing
// and renewing; what it had may be recovered by the others when a session has
// passed since.
func mayGoOn(known, reached int) bool { return 2*reached > known }

// TestMajorityDoesNotMakeADeathCertain is why the operator decides who is dead.
// With a fixed set of nodes at most one side of a cut goes on. Nodes that join
// during the cut are known to their side only: both sides then reach more than
// half of those they know, and what one side recovers the other goes on using.
func TestMajorityDoesNotMakeADeathCertain(t *testing.T) {
	for joiners, want := range map[int]bool{0: false, 1: false, 2: true, 3: true} {
		if got := bothSidesGoOver(t, joiners); got != want {
			t.Errorf("with %d nodes that join during the cut: over the limit %v, want %v", joiners, got, want)
		}
	}
}

// bothSidesGoOver cuts five nodes into three and two, has nodes join the two, and
// reports whether more places get used than are minted.
func bothSidesGoOver(t *testing.T, joiners int) bool {
	t.Helper()
	const minted = 10
	node := func(i byte) crdt.NodeID { return crdt.NodeID{i} }
	open := func(i byte, stored ...Put) *Rights {
		r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: node(i), Boot: 1}, Session: session}, stored, at(0))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	write := func(r *Rights, now time.Time) {
		for r.Writes() != nil {
			r.Confirmed(now)
		}
	}
	large := []*Rights{open(1, Put{keyMinted, appendAmount(nil, Amount{minted, minted})}), open(2), open(3)}
	small := []*Rights{open(4), open(5)}
	now := at(90)
	founder, d := large[0], small[0]
	founder.Give(node(4), Amount{5, 5}, now)
	write(founder, now)
	for _, x := range founder.TransfersDue(now) {
		d.Receive(x, now)
	}
	write(d, now)

	// The cut, for two minutes; then another session and more passes.
	now = now.Add(2*time.Minute + session + 3*Guard)
	all := len(large) + len(small)
	if mayGoOn(all, len(large)) {
		in := Estate{Dead: []crdt.NodeID{node(4), node(5)}, Minted: make([]Amount, 2)}
		for i, r := range large {
			in.Needed = append(in.Needed, node(byte(i+1)))
			for _, dead := range in.Dead {
				r.Fence(dead, node(1), 1, now)
				write(r, now)
				w, _ := r.Frozen(dead)
				in.Words = append(in.Words, w)
			}
		}
		if err := founder.Recover(in, now); err != nil {
			t.Fatal(err)
		}
		write(founder, now)
	}
	now = now.Add(3 * time.Minute)
	used := usesUp(founder, write, now)
	if mayGoOn(all+joiners, len(small)+joiners) {
		used += usesUp(d, write, now)
	}
	return used > minted
}

// usesUp opens all the tokens that a node may.
func usesUp(r *Rights, write func(*Rights, time.Time), now time.Time) int64 {
	r.Expire(now)
	r.Open(100, now)
	write(r, now)
	r.Open(100, now)
	return r.Tokens()
}
