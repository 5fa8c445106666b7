package ticket

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ropeline/ropeline/crdt"
)

// TestStoredComesBack: every kind of value, through the store and back.
func TestStoredComesBack(t *testing.T) {
	r, _, err := OpenRights(RightsConfig{Self: self, Session: session}, []Put{{keyMinted, appendAmount(nil, Amount{20, 30})}}, at(0))
	if err != nil {
		t.Fatal(err)
	}
	now := at(90)
	r.Expire(now)
	write := func() {
		for r.Writes() != nil {
			r.Confirmed(now)
		}
	}
	r.Give(other, Amount{2, 3}, now)
	r.Receive(Transfer{From: crdt.NodeID{7}, To: self.Node, Gave: Amount{4, 5}}, now)
	r.Open(3, now)
	r.TakeOver(Handover{Final: Final{
		Node: crdt.NodeID{8}, Heir: self.Node, InUse: 2,
		Accounts: []Account{{self.Node, Amount{6, 6}, Amount{}, 0}, {crdt.NodeID{7}, Amount{}, Amount{1, 1}, 0}},
	}}, now)
	write()
	r.Fence(crdt.NodeID{9}, self.Node, 3, now)
	write()
	word, _ := r.Frozen(crdt.NodeID{9})
	in := Estate{Dead: []crdt.NodeID{{9}}, Minted: []Amount{{1, 2}}, Needed: []crdt.NodeID{self.Node}, Words: []Word{word}}
	if err := r.Recover(in, now); err != nil {
		t.Fatal(err)
	}
	write()
	r.Close(r.Tokens())
	if err := r.Leave(other, now); err != nil {
		t.Fatal(err)
	}
	r.Retire()
	write()

	again, _, err := OpenRights(RightsConfig{Self: self, Session: session}, r.Stored(), now)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.book.disk, r.book.disk) {
		t.Errorf("stored %+v\ncame back as %+v", r.book.disk, again.book.disk)
	}
	if again.Held() != (Amount{}) || !again.Retired() {
		t.Errorf("a node that has left holds %v", again.Held())
	}
}

func TestBadStoredIsRefused(t *testing.T) {
	for _, p := range []Put{
		{"gold", []byte{1}},
		{keyGave + "12", []byte{2, 2}},
		{keyOf(keyGave, other), []byte{2}},
		{keyOf(keyGave, other), []byte{2, 2, 2}},
		{keyOf(keyDead, other), []byte{1}},
		{keyOf(keyInherited, other), []byte{2, 2, 2, 2}},
		{keyBound, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}},
		{keyRetired, nil},
		{keyLeaving, nil},
	} {
		if _, _, err := OpenRights(RightsConfig{Self: self, Session: session}, []Put{p}, at(0)); !errors.Is(err, errStored) {
			t.Errorf("%q = %x: %v", p.Key, p.Value, err)
		}
	}
}

// TestCoolingIsExact: nothing is ready before its time, nor in the ms that this is in,
// for times are cut to ms; all is soon after, and memory does not grow with numbers.
func TestCoolingIsExact(t *testing.T) {
	var c cooling
	for i := range int64(100_000) {
		c.add(3, i+60_000)
		c.advance(i)
	}
	if c.total < 180_000 || len(c.steps) > 602 {
		t.Errorf("%d cool in %d steps", c.total, len(c.steps))
	}
	c.add(5, 130_050) // late, into the middle
	for now := int64(100_000); now < 160_200; now += 33 {
		c.advance(now)
		least := 3 * max(0, 160_000-now)
		if now <= 130_050 {
			least += 5
		}
		if c.total < least || c.total > least+3*(coolStep+1)+5 {
			t.Fatalf("at %d: %d cool, want %d and no more than a step besides", now, c.total, least)
		}
	}
}
