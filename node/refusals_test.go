package node

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// toldRefused returns how many of some messages say that something was refused.
func toldRefused(out []Message) (n int) {
	for _, m := range out {
		if m.Kind == kindRefused {
			n++
		}
	}
	return n
}

// TestWhoIsRefusedIsTold sends nonsense for a minute: the sender is told of the first at once, and
// of all the others with few messages. Both ends then know the same, for ten minutes.
func TestWhoIsRefusedIsTold(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "b")
	from, to := w.nodes[0], w.nodes[1]
	peer := replica.Peer{ID: from.id, Boot: from.boot, Site: from.site, Ready: true}
	told := 0
	for sent := range 60 {
		out, err := to.core.Receive(peer, kindVisits, []byte("nonsense"), w.now)
		if err == nil {
			t.Fatal("nonsense was taken")
		}
		if told += toldRefused(out); sent == 0 && told != 1 {
			t.Errorf("of the first message that was refused its sender was told %d times", told)
		}
		w.post(to, out)
		w.run(time.Second)
	}
	if told < 2 || told > 6 {
		t.Errorf("in a minute the sender was told %d times, want every ten seconds", told)
	}
	here, _ := to.core.refusals.status(from.id)
	_, there := from.core.refusals.status(to.id)
	if here == nil || here.Count != 60 || here.Reason != "malformed" {
		t.Errorf("the node that refused says %+v, want 60 that were malformed", here)
	}
	if there == nil || there.Count < 50 || there.Reason != "malformed" {
		t.Errorf("the node that was refused says %+v, want 50 and more", there)
	}
	w.run(refusalShown + sweepInterval)
	here, _ = to.core.refusals.status(from.id)
	if _, there = from.core.refusals.status(to.id); here != nil || there != nil {
		t.Errorf("ten minutes later they say %+v and %+v", here, there)
	}
}

// TestRefusalsAreNotAnswered: else two nodes that do not understand each other would go on for ever.
func TestRefusalsAreNotAnswered(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "b")
	peer := replica.Peer{ID: w.nodes[0].id, Boot: 1, Site: "a", Ready: true}
	c := w.nodes[1].core
	for _, b := range [][]byte{nil, []byte("nonsense"), encodeRefusal(reasons, 1), encodeRefusal(reasonClock, 0), append(encodeRefusal(reasonClock, 1), 0)} {
		if out, err := c.Receive(peer, kindRefused, b, w.now); err == nil || toldRefused(out) > 0 {
			t.Errorf("%x: error %v, answered with %d messages", b, err, len(out))
		}
	}
	for i := range 2 * refusalsKept { // somebody who has the secret, and makes up ids
		made := replica.Peer{ID: crdt.NodeID{1, byte(i), byte(i >> 8), 9}, Boot: 1, Site: "a"}
		c.Receive(made, kindVisits, nil, w.now)
	}
	if n := len(c.refusals.by); n > refusalsKept {
		t.Errorf("%d peers are remembered, at most %d should be", n, refusalsKept)
	}
}

// TestTheLogIsToldOfRefusals once a minute, for each direction.
func TestTheLogIsToldOfRefusals(t *testing.T) {
	w := newWorld(t, testSettings(10), "a", "b")
	peer := replica.Peer{ID: w.nodes[0].id, Boot: 1, Site: "a", Ready: true}
	c, here, there := w.nodes[1].core, 0, 0
	for range 5 * 60 {
		c.Receive(peer, kindVisits, nil, w.now)
		c.Receive(peer, kindRefused, encodeRefusal(reasonClock, 7), w.now) // which is no news the second time
		for _, x := range c.refusals.news(w.now) {
			switch {
			case x.here && x.reason == reasonMalformed:
				here++
			case !x.here && x.reason == reasonClock && x.count == 7:
				there++
			default:
				t.Errorf("the log is told %+v", x)
			}
		}
		w.now = w.now.Add(time.Second)
	}
	if here != 5 || there != 1 {
		t.Errorf("in five minutes the log is told %d times of what is refused here, and %d of what is there; want 5 and 1", here, there)
	}
	for r := range reasons {
		if r.remedy() == "" || strings.Contains(r.remedy(), "%") {
			t.Errorf("nothing to do about %v", r)
		}
	}
}

func FuzzDecodeRefusal(f *testing.F) {
	f.Add(encodeRefusal(reasonClock, 12))
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if reason, count, err := decodeRefusal(b); err == nil {
			if r, n, err := decodeRefusal(encodeRefusal(reason, count)); err != nil || r != reason || n != count {
				t.Errorf("%x is %v, %d times, and what is written of that is %v, %d times, %v", b, reason, count, r, n, err)
			}
		}
	})
}
