package ticket

import (
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Of nodes that are gone: lost, and recovered by third; and leaver, which has left to the node under test.
var lost, leaver, third = crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}

// closes is a node under test that holds so much at each step.
type closes struct {
	*desk1
	now   time.Time
	holds Amount
	steps int64
}

// does takes one step, and looks whether nothing else changes, on the disk neither.
func (c *closes) does(what string, steps int64, step func()) {
	c.t.Helper()
	step()
	c.write(c.now)
	c.steps += steps
	if got := c.Held(); got != c.holds {
		c.t.Errorf("%s: it holds %v, want %v", what, got, c.holds)
	}
	if got := c.Closings().Steps; got != c.steps {
		c.t.Errorf("%s: %d steps, want %d", what, got, c.steps)
	}
	if got, any := ClosedSteps(c.Stored()); !any || got != c.steps {
		c.t.Errorf("%s: %d steps on the disk, want %d", what, got, c.steps)
	}
	again, _, err := OpenRights(RightsConfig{Self: self, Session: session}, c.Stored(), c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	if !reflect.DeepEqual(again.book.disk.keys(), c.book.disk.keys()) || !reflect.DeepEqual(again.Closings(), c.Closings()) {
		c.t.Errorf("%s: %+v came back as %+v", what, c.book.disk, again.book.disk)
	}
}

// told returns what the node has told of another one.
func (c *closes) told(id crdt.NodeID) (x ClosedAccount) {
	for _, x = range c.Closings().Closed {
		if x.Node == id {
			return x
		}
	}
	return ClosedAccount{}
}

// keepsLeaver returns a node that has got 5 from lost, and keeps the rights of leaver, for which it has got 7 more of lost.
func keepsLeaver(t *testing.T) *closes {
	c := &closes{desk1: founder(t, 0, 10), now: at(91), holds: Amount{22, 22}}
	c.does("it takes over", 0, func() {
		c.TakeOver(Handover{Final: Final{Node: leaver, Heir: self.Node, Minting: Minting{Known: true}}}, c.now)
		c.write(c.now)
		c.Receive(Transfer{From: lost, To: self.Node, Gave: Amount{5, 5}}, c.now)
		c.Receive(Transfer{From: lost, To: leaver, Gave: Amount{7, 7}}, c.now)
	})
	c.now = c.now.Add(10 * session) // nobody comes back by a ticket of leaver
	c.Expire(c.now)
	return c
}

// TestWhoIsRecoveredAfterItLeftIsRefused: an account with a node that has left is closed, and then that is recovered, as the one to
// which it had left is lost. It may live; what it had given, and nobody had taken, is with the rest.
func TestWhoIsRecoveredAfterItLeftIsRefused(t *testing.T) {
	for name, folded := range map[string]bool{"closed": false, "folded": true} {
		t.Run(name, func(t *testing.T) {
			c := keepsLeaver(t)
			final := Final{Node: lost, Heir: third, Accounts: []Account{{Node: self.Node, Gave: Amount{5, 5}}}}
			c.does("it closes the account", 1, func() { c.CloseAccount(final) })
			if !c.CloseAccount(final) {
				t.Fatal("the account is not closed")
			}
			if folded {
				c.does("it folds the account", 1, func() { c.Fold(lost) })
			} else {
				c.does("it refuses the node", 0, func() { c.Fence(lost, third, 1, c.now) })
			}
			c.does("it hears that the node is recovered", 0, func() { c.CloseDead(lost) })
			if got := c.told(lost); !c.CloseDead(lost) || !got.Recovered || got.Rcv != (Amount{12, 12}) {
				t.Errorf("it tells %+v", got)
			}
			if !folded {
				c.does("it folds the account", 1, func() { c.Fold(lost) })
			}
			c.does("a gift for who left comes late", 0, func() { c.Receive(Transfer{From: lost, To: leaver, Gave: Amount{9, 9}}, c.now) })
			c.does("one for itself comes late", 0, func() { c.Receive(Transfer{From: lost, To: self.Node, Gave: Amount{9, 9}}, c.now) })
			c.does("its last ledger comes late", 0, func() {
				c.Settle(Final{Node: lost, Heir: third, Accounts: []Account{{Node: leaver, Gave: Amount{9, 9}}}}, crdt.NodeID{})
			})
		})
	}
}

// TestWhatWasReceivedForALeaverIsToldOnce: with the account of a node that was recovered it is told what was received of it for one that
// has left, until that one's account is folded; then with that one's. Neither is named no more before.
func TestWhatWasReceivedForALeaverIsToldOnce(t *testing.T) {
	c := keepsLeaver(t)
	c.does("it refuses the lost node", 0, func() { c.Fence(lost, third, 1, c.now) })
	c.does("it closes the account with it", 1, func() { c.CloseDead(lost) })
	c.does("it folds the account with it", 1, func() { c.Fold(lost) })
	if got := c.Closings().Closed; len(got) != 1 || got[0].Node != lost || got[0].Rcv != (Amount{12, 12}) {
		t.Errorf("it tells %+v, want 12 of %x", got, lost[:1])
	}
	c.does("it would name the lost node no more", 0, func() { c.Unname(lost) })
	if !c.Closings().Names(lost) {
		t.Fatal("it does not name the lost node")
	}
	none := func(crdt.NodeID) bool { return false }
	c.does("it closes the account with the leaver", 1, func() { c.CloseAccount(Final{Node: leaver, Heir: self.Node}) })
	if may := c.MayKeep([]crdt.NodeID{leaver}, none, none, nil); len(may) != 1 {
		t.Fatalf("it may keep %v", may)
	}
	c.does("it keeps the rights of the leaver", 1, func() { c.Fold(leaver) })
	if got, other := c.told(lost), c.told(leaver); got.Rcv != (Amount{5, 5}) || other.Rcv != (Amount{7, 7}) || !other.Kept {
		t.Errorf("it tells %+v and %+v", got, other)
	}
	c.does("it names the lost node no more", 0, func() { c.Unname(lost) })
	c.does("it names the leaver no more", 0, func() { c.Unname(leaver) })
	if got := c.Closings(); len(got.Closed) > 0 || got.Rcv != (Amount{12, 12}) {
		t.Errorf("it tells %+v", got)
	}
	if keys := c.book.disk.keys(); len(keys) > 4 {
		t.Errorf("its disk has %v", keys)
	}
}

// TestAnAccountStaysOpenWhileSomethingIsOnItsWay, in either direction, or not on the disk yet.
func TestAnAccountStaysOpenWhileSomethingIsOnItsWay(t *testing.T) {
	c := keepsLeaver(t)
	final := Final{Node: third, Heir: crdt.NodeID{73}, Accounts: []Account{{Node: self.Node, Gave: Amount{5, 5}}}}
	c.does("a gift has not come", 0, func() { c.CloseAccount(final) })
	c.holds = Amount{27, 27}
	c.does("the gift comes", 0, func() { c.Settle(final, crdt.NodeID{73}) })
	c.holds = Amount{24, 24}
	c.does("it gives something", 0, func() { c.Give(third, Amount{3, 3}, c.now) })
	c.does("that is on its way", 0, func() { c.CloseAccount(final) })
	c.Acked(Received{From: self.Node, To: third, Gave: Amount{3, 3}})
	c.Give(third, Amount{1, 1}, c.now)
	c.holds = Amount{23, 23}
	c.does("more is not written", 0, func() { c.CloseAccount(final) })
	c.Acked(Received{From: self.Node, To: third, Gave: Amount{4, 4}})
	c.does("nothing is on its way", 1, func() { c.CloseAccount(final) })
	c.does("it gives no more", 0, func() { c.Give(third, Amount{1, 1}, c.now) })
}

// TestWhoStands: who is recovered by what it has told alone, as far as its dealings with leaver go.
func TestWhoStands(t *testing.T) {
	told := func(recovered bool, more ...crdt.NodeID) (p Closings) {
		p.Closed = append(p.Closed, ClosedAccount{Node: leaver, Recovered: recovered})
		for _, id := range more {
			p.Closed = append(p.Closed, ClosedAccount{Node: id})
		}
		return p
	}
	final := Final{Node: leaver, Inherited: []Inherited{{Leaver: third, Accounts: []Receipt{{From: lost, Base: Amount{1, 1}, Rcv: Amount{3, 3}}}}}}
	for name, c := range map[string]struct {
		told      Closings
		final     Final
		recovered bool
		want      bool
	}{
		"it has told nothing":                                  {},
		"it has told it":                                       {told: told(false), want: true},
		"that was recovered since":                             {told: told(false), recovered: true},
		"it has told that as well":                             {told: told(true), recovered: true, want: true},
		"that has received something for another one":          {told: told(false), final: final},
		"and it has told what it has dealt with the other one": {told: told(false, third), final: final, want: true},
	} {
		if got := c.told.Stands(lost, leaver, c.final, c.recovered); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestALeaverThatWasCalledDeadIsForgotten where its keeper is known: what it gave has come all the same.
func TestALeaverThatWasCalledDeadIsForgotten(t *testing.T) {
	c := keepsLeaver(t)
	final := Final{Node: third, Heir: crdt.NodeID{73}, Accounts: []Account{{Node: self.Node, Gave: Amount{5, 5}}}}
	c.does("it refuses the node", 0, func() { c.Fence(third, self.Node, 1, c.now) })
	c.does("it knows of no keeper", 0, func() { c.Settle(final, crdt.NodeID{}); c.CloseAccount(final) })
	c.holds = Amount{27, 27}
	c.does("it takes what was given", 0, func() { c.Settle(final, crdt.NodeID{73}) })
	c.does("it closes the account", 1, func() { c.CloseAccount(final) })
	c.does("it folds the account", 1, func() { c.Fold(third) })
	c.does("it names the node no more", 0, func() { c.Unname(third) })
	if !c.NeverDealt(third) {
		t.Error("something is left of the node")
	}
}
