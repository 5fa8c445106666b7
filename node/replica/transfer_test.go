package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// overwritten is a map in which one node has overwritten what another one wrote.
func overwritten(t *testing.T, now time.Time) (m *crdt.LWW, writer crdt.NodeID) {
	t.Helper()
	m = new(crdt.LWW)
	var clock crdt.Clock
	for i, by := range []crdt.NodeID{nodeID(7), nodeID(7), nodeID(8)} {
		if err := m.Set([]string{"limit", "page", "limit"}[i], []byte("v"), clock.Now(now, by)); err != nil {
			t.Fatal(err)
		}
	}
	return m, nodeID(7)
}

// TestWholeIsSaidToOneStart has a node hear of a write that may hide another one: it is taken if the message is whole for
// this start of the node. Else the sender is asked for all there is, and an answer counts if it is to what was asked last.
func TestWholeIsSaidToOneStart(t *testing.T) {
	for name, c := range map[string]struct {
		kind       frameType
		flags      byte
		boot, asks uint64 // beside those of the node
		takes      bool
	}{
		"a whole push":                     {push, flagWhole, 0, 0, true},
		"a push":                           {push, 0, 0, 0, false},
		"a whole push to an earlier start": {push, flagWhole, 1, 0, false},
		"a whole answer":                   {answer, flagWhole, 0, 0, true},
		"an answer":                        {answer, flagMore, 0, 0, false},
		"an answer to an earlier start":    {answer, flagWhole, 1, 0, false},
		"an answer to an earlier question": {answer, flagWhole, 0, 1, false},
	} {
		m := newMesh(t, 30)
		nodes := m.sites(2, "east")
		x, mate := nodes[0], nodes[1].peer
		m.run(2 * time.Second)
		all, writer := overwritten(t, m.now)
		l := x.links[mate.ID]
		f := &frame{kind: c.kind, flags: c.flags, to: x.peer.Boot - c.boot, round: l.round - c.asks, lww: all.Delta(nil, 0)}
		if _, err := x.Receive(mate, f.encode(), m.now); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _, has := x.Get("page")
		if knows := x.lww.KnownOf(writer) == all.KnownOf(writer); knows != c.takes || has != c.takes {
			t.Errorf("%s: the write is here: %v, and known: %v, want %v", name, has, knows, c.takes)
		}
		asked := l.round
		for range 20 {
			m.now = m.now.Add(100 * time.Millisecond)
			x.askForRest(nil, m.now)
		}
		if asks := l.round > asked; asks == c.takes {
			t.Errorf("%s: the rest is asked for: %v", name, asks)
		}
	}
}

// TestATransferGoesOn has a map come in two answers, of which the second is lost at first: both are taken at once.
func TestATransferGoesOn(t *testing.T) {
	m := newMesh(t, 31)
	nodes := m.sites(2, "east")
	x, mate := nodes[0], nodes[1].peer
	m.run(2 * time.Second)
	all, writer := overwritten(t, m.now)
	l, got := x.links[mate.ID], crdt.LWWDigest{}
	send := func(flags byte, p crdt.LWWPiece) {
		t.Helper()
		f := &frame{kind: answer, flags: flags, to: x.peer.Boot, round: l.round, lww: crdt.LWWDelta{Pieces: []crdt.LWWPiece{p}}}
		out, err := x.Receive(mate, f.encode(), m.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, msg := range out {
			q, err := decodeFrame(msg.Payload, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			got = q.gotLWW
		}
	}
	pieces := all.Delta(nil, 0).Pieces
	if len(pieces) != 2 || pieces[0].Writer != writer {
		t.Fatalf("pieces: %v", pieces)
	}
	send(flagMore, pieces[0])
	if got[writer] != pieces[0].To || x.lww.KnownOf(writer) != 0 {
		t.Errorf("it asks from %v on, and knows %d", got, x.lww.KnownOf(writer))
	}
	m.now = m.now.Add(resendAfter)
	if out := x.askForRest(nil, m.now); len(out) != 1 {
		t.Errorf("it asks %d nodes again, want the one whose answer was lost", len(out))
	}
	send(flagWhole, pieces[1])
	if x.lww.KnownOf(writer) != all.KnownOf(writer) || x.lww.KnownOf(nodeID(8)) != all.KnownOf(nodeID(8)) || x.transfer.from != nil {
		t.Errorf("with the last answer it knows %v, want %v", x.lww.Digest(), all.Digest())
	}
}

// TestAJoinerAsksOnceAtATime has a node come to a mate whose map takes several answers, over slow links, while its rooms
// change: it is not ready before it has all of the map, is so after about as many round trips as there are answers, and
// asks not much more often than that.
func TestAJoinerAsksOnceAtATime(t *testing.T) {
	for _, delay := range []time.Duration{5 * time.Millisecond, 150 * time.Millisecond, 700 * time.Millisecond} {
		m := newMesh(t, 32)
		nodes := m.sites(2, "east")
		const pages, answers = 500, 5
		for i := range 2 * pages {
			if err := nodes[i%2].Set(fmt.Sprint("page ", i/2), make([]byte, 2000), m.now); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				m.run(200 * time.Millisecond)
			}
		}
		m.run(2 * time.Second)
		m.minDelay, m.maxDelay = delay, delay
		x := m.start(2, "east")
		most := 3*answers*2*delay + 2*refill
		took := m.until(most, fmt.Sprintf("with delays of %v it is filled", delay), func() bool {
			for _, mate := range nodes[:2] {
				m.visit(mate, roomID(int(m.now.UnixMilli()/100)%10))
			}
			return x.Ready()
		})
		if x.lww.Len() != pages {
			t.Errorf("delays of %v: it is ready with %d of %d keys", delay, x.lww.Len(), pages)
		}
		if asked := x.Stats().MessagesOut["pull"]; asked > 5*answers {
			t.Errorf("delays of %v: it asks %d times in %v", delay, asked, took)
		}
	}
}
