package node

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// TestNodesThatLeaveTogether has several nodes leave at once, in every order, while one
// stays or none does. Whoever can leave does, and the rights are with those who are left.
func TestNodesThatLeaveTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		sites []string
		leave []int
		gone  int
	}{
		{"two of three, both of a site", []string{"a", "b", "b"}, []int{1, 2}, 2},
		{"the same, the other one first", []string{"a", "b", "b"}, []int{2, 1}, 2},
		{"two of two", []string{"a", "a"}, []int{0, 1}, 1},
		{"three of three", []string{"a", "a", "a"}, []int{0, 1, 2}, 2},
		{"three of three, the other way round", []string{"a", "a", "a"}, []int{2, 1, 0}, 2},
		{"four of five", []string{"a", "b", "a", "b", "a"}, []int{3, 1, 0, 2}, 4},
	} {
		w := newWorld(t, escrowSettings(90), c.sites...)
		w.run(20 * time.Second)
		for _, i := range c.leave {
			if err := w.nodes[i].core.Leave(w.now); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		gone := 0
		for range 300 {
			w.run(100 * time.Millisecond)
			for _, m := range w.nodes {
				if m.core != nil && m.core.Left() {
					w.kill(m)
					gone++
				}
			}
		}
		if gone != c.gone {
			t.Errorf("%s: %d have left after 30 s, want %d", c.name, gone, c.gone)
		}
		w.run(2 * time.Minute)
		if held, _ := w.rights(); held.Places != 90 || held.Rate != 10_000 {
			t.Errorf("%s: those who stay hold %+v, want all", c.name, held)
		}
		for _, m := range w.nodes {
			if m.core != nil && !m.core.mayLead() {
				t.Errorf("%s: %s stays, and gives no ticket", c.name, m.id)
			}
		}
	}
}

// TestWhoHasAgreedStaysForAWhile has a node that is asked to leave after it has agreed to
// be another's heir, and after a start, before which it may have agreed.
func TestWhoHasAgreedStaysForAWhile(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "b")
	w.run(20 * time.Second)
	leaver, heir := w.nodes[0], w.nodes[1]
	w.lose = func(l letter) bool { return l.m.Kind == kindAgreed } // so that it begins nothing
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if w.run(100 * time.Millisecond); w.now.Before(heir.core.leave.seeking.stays) {
			break
		}
	}
	stays := heir.core.leave.seeking.stays
	if stays.Sub(w.now) < heirAgreed {
		t.Fatalf("it stays for %v after it has agreed, want %v", stays.Sub(w.now), heirStays)
	}
	w.lose = nil
	w.kill(leaver)
	if err := heir.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for w.now.Before(stays) {
		if heir.core.leave.on {
			t.Fatalf("it leaves %v before it may", stays.Sub(w.now))
		}
		w.run(50 * time.Millisecond)
	}
	w.run(time.Second)
	if !heir.core.leave.on {
		t.Error("it does not leave, and has agreed to nothing any more")
	}
	w.start(leaver, escrowSettings(90))
	w.run(time.Second)
	if leaver.core.Ready() && !w.now.Before(leaver.core.leave.seeking.stays) {
		t.Error("a node that has just started does not know whether it has agreed to something, and may leave")
	}
}

// TestLateWordsOfHeirs looks at answers that must not begin anything.
func TestLateWordsOfHeirs(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a", "b")
	w.run(20 * time.Second)
	leaver := w.nodes[0]
	var heir *machine
	var yes letter
	w.lose = func(l letter) bool {
		if l.m.Kind == kindAgreed {
			yes, heir = l, w.machine(l.from)
		}
		return l.m.Kind == kindAgreed
	}
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if w.run(50 * time.Millisecond); heir != nil {
			break
		}
	}
	asked, first := w.now, heir
	for _, c := range []struct {
		after time.Duration
		on    bool
	}{{heirAgreed + 100*time.Millisecond, false}, {100 * time.Millisecond, true}} {
		o, err := decodeOffer(yes.m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		o.at = asked.UnixMilli()
		from := replica.Peer{ID: first.id, Boot: first.boot, Site: first.site, Ready: true}
		if _, err := leaver.core.Receive(from, kindAgreed, encodeOffer(o), asked.Add(c.after)); err != nil {
			t.Fatal(err)
		}
		if leaver.core.leave.on != c.on {
			t.Errorf("an answer after %v: it leaves is %t", c.after, leaver.core.leave.on)
		}
	}
}

func TestOffersThatAreNone(t *testing.T) {
	is := offer{at: 1_767_268_800_123, agreed: true, told: 7}
	whole := encodeOffer(is)
	if o, err := decodeOffer(whole); err != nil || o != is {
		t.Errorf("got %+v, %v", o, err)
	}
	other := slices.Clone(whole)
	other[1]++ // the version
	for _, bad := range [][]byte{nil, whole[:len(whole)-1], append(slices.Clone(whole), 0), other} {
		if _, err := decodeOffer(bad); !errors.Is(err, errMalformed) {
			t.Errorf("%x: error %v", bad, err)
		}
	}
}

// TestWhoLeavesTellsWhatItKnows has a node leave that alone has heard that the room is
// deleted: it stays until another one has that on its disk.
func TestWhoLeavesTellsWhatItKnows(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a")
	w.run(20 * time.Second)
	leaver, other := w.nodes[1], w.nodes[0]
	w.lose = func(l letter) bool { return l.m.Kind == kindReplica && l.from == leaver.id } // nothing that it knows gets through
	if err := leaver.core.Retire(roomID, w.now); err != nil {
		t.Fatal(err)
	}
	w.run(2 * time.Second)
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	w.run(10 * time.Second)
	if leaver.core.Left() || other.core.facts.room(roomID).retired {
		t.Fatalf("left %t, the other one knows that the room is deleted: %t", leaver.core.Left(), other.core.facts.room(roomID).retired)
	}
	w.lose = nil
	for range 100 {
		if w.run(100 * time.Millisecond); leaver.core.Left() {
			break
		}
	}
	if !leaver.core.Left() {
		t.Fatal("it has not left within 10 s of being heard")
	}
	w.kill(leaver)
	w.kill(other)
	w.start(other, escrowSettings(90))
	w.run(5 * time.Second)
	if !other.core.facts.room(roomID).retired {
		t.Error("nobody knows any more that the room is deleted")
	}
}

// TestWhoLeavesStaysUntilOthersHaveHeard has a node leave whose disk takes its time: what it
// has to say last it tells others when it is on disk, and only then is it gone.
func TestWhoLeavesStaysUntilOthersHaveHeard(t *testing.T) {
	w := newWorld(t, escrowSettings(90), "a", "a")
	w.run(20 * time.Second)
	leaver, other := w.nodes[1], w.nodes[0]
	leaver.disk.delay = 5 * time.Second
	if err := leaver.core.Leave(w.now); err != nil {
		t.Fatal(err)
	}
	for end := w.now.Add(2 * time.Minute); !leaver.core.Left(); w.run(50 * time.Millisecond) {
		if w.now.After(end) {
			t.Fatal("it has not left after two minutes")
		}
	}
	all := leaver.core.replica.Written()
	w.kill(leaver)
	if known := other.core.replica.MapDigest()[leaver.id]; known < all {
		t.Errorf("it has gone, and what it wrote after %d, up to %d, is known to nobody", known, all)
	}
}

func TestWhatANodeKnows(t *testing.T) {
	known := crdt.LWWDigest{{1}: 7, {2, 3}: 1 << 60}
	got, err := decodeKnown(encodeKnown(known, crdt.NodeID{}))
	if err != nil || !maps.Equal(got, known) {
		t.Errorf("%v became %v, %v", known, got, err)
	}
	many := crdt.LWWDigest{}
	for i := range maxKnown + 10 {
		many[crdt.NodeID{1, byte(i >> 8), byte(i)}] = uint64(i)
	}
	self := crdt.NodeID{255}
	many[self] = 5
	if got, err := decodeKnown(encodeKnown(many, self)); err != nil || len(got) != maxKnown || got[self] != 5 {
		t.Errorf("of %d writers %d are told, its own with %d: %v", len(many), len(got), got[self], err)
	}
	for _, bad := range [][]byte{nil, {0}, {knownVersion, 1}, make([]byte, 1+(maxKnown+1)*knownSize)} {
		if _, err := decodeKnown(bad); !errors.Is(err, errMalformed) {
			t.Errorf("%d bytes: %v, want %v", len(bad), err, errMalformed)
		}
	}
}

func FuzzDecodeKnown(f *testing.F) {
	f.Add(encodeKnown(crdt.LWWDigest{{1}: 7, {2}: 9}, crdt.NodeID{2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := decodeKnown(data)
		if err != nil {
			return
		}
		if again, err := decodeKnown(encodeKnown(known, crdt.NodeID{})); err != nil || !maps.Equal(again, known) {
			t.Errorf("%v became %v, %v", known, again, err)
		}
	})
}
