package ticket

import (
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// TestSettlingIsNotForWhoLeaves gives a node that has passed on its rights the last
// ledger of another one: what that gave it belongs to its heir.
func TestSettlingIsNotForWhoLeaves(t *testing.T) {
	gone := Final{Node: crdt.NodeID{77}, Heir: other, Accounts: []Account{{Node: self.Node, Gave: Amount{5, 5}}}}
	stays, leaves := founder(t, 0, 10), founder(t, 0, 10)
	if err := leaves.Leave(other, at(91)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*desk1{stays, leaves} {
		d.write(at(91))
		d.Settle(gone)
		d.write(at(91))
	}
	if got := stays.Held(); got != (Amount{15, 15}) {
		t.Errorf("a node that stays holds %v, want 15 of either kind", got)
	}
	if got := leaves.Held(); !got.IsZero() {
		t.Errorf("a node that has passed on everything holds %v", got)
	}
}

// TestWhoStepsBack looks at whose fence gives way to another heir.
func TestWhoStepsBack(t *testing.T) {
	dead, leaver, less := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{0, 1}
	heirNow := func(d *desk1) crdt.NodeID {
		d.write(at(92))
		w, _ := d.Frozen(dead)
		return w.Heir
	}
	for _, c := range []struct {
		name  string
		first crdt.NodeID
		takes bool // over from leaver, before
		want  crdt.NodeID
	}{
		{"the heir itself", self.Node, false, less},
		{"who answers for the heir", leaver, true, less},
		{"anybody else", leaver, false, leaver},
	} {
		d := founder(t, 0, 10)
		if c.takes {
			d.TakeOver(Handover{Final: Final{Node: leaver, Heir: self.Node}}, at(91))
			d.write(at(91))
		}
		d.Fence(dead, c.first, at(91))
		d.Fence(dead, less, at(92))
		if got := heirNow(d); got != c.want {
			t.Errorf("%s: the heir is %v, want %v", c.name, got[0], c.want[0])
		}
	}
}

// TestWordsFollowWhoStepsBack has three nodes speak of a dead one in favour of two
// heirs, one of whom has left to a node that has stepped back.
func TestWordsFollowWhoStepsBack(t *testing.T) {
	dead, leaver, next := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}
	estate := func(of crdt.NodeID, finals ...Final) Estate {
		e := Estate{Dead: []crdt.NodeID{dead}, Minted: []Amount{{5, 5}}, Needed: []crdt.NodeID{self.Node, other, next}, Finals: finals}
		for _, w := range []Word{{Node: self.Node, Heir: self.Node}, {Node: other, Heir: leaver}, {Node: next, Heir: of}} {
			w.Dead = dead
			e.Words = append(e.Words, w)
		}
		return e
	}
	left := Final{Node: leaver, Heir: next}
	for _, c := range []struct {
		name string
		in   Estate
		want int64
	}{
		{"the heir of the heir has stepped back", estate(self.Node, left), 15},
		{"it has not", estate(leaver, left), 10},
		{"nobody knows that the heir has left", estate(self.Node), 10},
	} {
		d := founder(t, 0, 10)
		d.Fence(dead, self.Node, at(91))
		d.write(at(91))
		if err := d.Recover(c.in, at(92)); (err == nil) != (c.want == 15) {
			t.Errorf("%s: recovering says %v", c.name, err)
		}
		d.write(at(92))
		if got := d.Held().Places; got != c.want {
			t.Errorf("%s: %d places are held, want %d", c.name, got, c.want)
		}
	}
}

// TestWhoHandedOverIsNotFenced declares a node dead that has left its rights here.
func TestWhoHandedOverIsNotFenced(t *testing.T) {
	leaver := crdt.NodeID{71}
	d := founder(t, 0, 10)
	d.TakeOver(Handover{Final: Final{Node: leaver, Heir: self.Node}}, at(91))
	d.write(at(91))
	d.Fence(leaver, other, at(92))
	d.write(at(92))
	if w, ok := d.Frozen(leaver); ok {
		t.Errorf("a word was given on it: %+v", w)
	}
	d.Receive(Transfer{From: other, To: leaver, Gave: Amount{3, 3}}, at(92))
	d.write(at(92))
	if got := d.Held().Places; got != 13 {
		t.Errorf("%d places are held, want 13: what was given to it comes here", got)
	}
}
