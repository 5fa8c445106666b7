package node

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// backup is what a data directory holds at one moment.
type backup struct {
	keys     map[[2]string][]byte
	boot     uint64
	snapshot []byte
}

func (m *machine) backup(t *testing.T) backup {
	t.Helper()
	state, err := m.core.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	return backup{maps.Clone(m.disk.keys), m.boot, state}
}

// giveAway has a crowd at another node until that one has rights of m that m had when
// the copy was made.
func (w *world) giveAway(people []*person) {
	w.t.Helper()
	for range 100 {
		w.askAll(outside(people))
		w.run(time.Second)
	}
}

// conflict runs for d, or until the node says that it must not go on. It opens no room
// until then.
func (w *world) conflict(m *machine, d time.Duration) error {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.run(50 * time.Millisecond)
		if m.core.Ready() {
			w.t.Fatal("its rooms are open")
		}
		if err := m.core.Conflict(); err != nil {
			return err
		}
	}
	return nil
}

// TestAnOlderDirectoryIsRefused brings back a copy of a node's data directory after it
// has given rights away: a copy of the start in which it did, or of an earlier one, at
// once or long after the site has forgotten its rows.
func TestAnOlderDirectoryIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		starts int
		down   time.Duration
		alone  bool // none of its site is left
	}{
		"of the same start":       {0, time.Second, false},
		"of long ago":             {2, 12 * time.Minute, false},
		"with nobody of its site": {0, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := escrowSettings(90)
			w := newWorld(t, s, "a", "a", "b")
			w.run(20 * time.Second)
			m, mate, far := w.nodes[0], w.nodes[1], w.nodes[2]
			old := m.backup(t)
			for range c.starts {
				w.kill(m)
				w.run(time.Second)
				w.start(m, s)
				w.run(3 * time.Second)
			}
			people := w.crowd(80, at(far))
			w.giveAway(people)
			w.kill(m)
			for end := w.now.Add(c.down); w.now.Before(end); w.run(10 * time.Second) {
				w.askAll(people)
			}
			if c.alone {
				w.kill(mate)
			}
			m.disk.keys, m.boot, m.snapshot = old.keys, old.boot, old.snapshot
			w.start(m, s)
			if err := w.conflict(m, 5*time.Second); !errors.Is(err, ErrCopied) || !strings.Contains(err.Error(), "has got") {
				t.Errorf("conflict: %v", err)
			}
		})
	}
}

// TestADirectoryThatIsUpToDateIsUsed restarts a node in the middle of things: what it
// has written is the last that anybody can know.
func TestADirectoryThatIsUpToDateIsUsed(t *testing.T) {
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "b")
	w.run(20 * time.Second)
	m, people := w.nodes[0], w.crowd(80, at(w.nodes[2]))
	for range 20 {
		w.askAll(outside(people))
		w.run(time.Duration(w.rng.IntN(1000)) * time.Millisecond)
		w.kill(m)
		w.run(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
		w.start(m, s)
		w.run(2 * time.Second)
		if err := m.core.Conflict(); err != nil || !m.core.Ready() {
			t.Fatalf("ready %v, conflict: %v", m.core.Ready(), err)
		}
	}
	for _, other := range w.nodes[1:] {
		if len(other.core.receiptsFrom(m.id)) == 0 {
			t.Errorf("node %s has got nothing from it, so that nothing was tried", other.id)
		}
	}
}

// TestAnIDIsNotUsedAgainWithoutItsDisk starts a node whose id was chosen on an empty
// directory: at first, and after it has had rights.
func TestAnIDIsNotUsedAgainWithoutItsDisk(t *testing.T) {
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "b")
	m := &machine{id: crdt.NodeID{9, 0xaa}, site: "a", named: true}
	w.nodes = append(w.nodes, m)
	w.start(m, s)
	w.run(20 * time.Second)
	if err := m.core.Conflict(); err != nil || !m.core.Ready() {
		t.Fatalf("ready %v, conflict: %v", m.core.Ready(), err)
	}
	w.kill(m)
	w.run(15 * time.Minute) // its rows are forgotten
	m.disk, m.boot, m.snapshot = disk{}, 0, nil
	w.start(m, s)
	if err := w.conflict(m, 5*time.Second); !errors.Is(err, ErrCopied) || !strings.Contains(err.Error(), "knows this node from before") {
		t.Errorf("conflict: %v", err)
	}
}

// TestWhoDoesNotAnswerIsNotWaitedForLong restarts a node while another one, which is
// listed, hears nothing of it.
func TestWhoDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	s := escrowSettings(90)
	w := newWorld(t, s, "a", "a", "b")
	m, far := w.nodes[0], w.nodes[2]
	w.kill(m)
	w.run(time.Second)
	w.lose = func(l letter) bool { return l.m.Kind == kindInquiry && l.to == far.id }
	w.start(m, s)
	w.run(receiptsPatience - time.Second)
	if m.core.Ready() {
		t.Fatal("it has not waited")
	}
	w.run(1200 * time.Millisecond)
	if !m.core.Ready() {
		t.Fatal("it waits for ever")
	}
	// Once it can be asked, it is.
	w.lose = nil
	w.run(receiptsSeldom + time.Second)
	if x := m.core.inquiries.by[far.id]; !x.done {
		t.Error("the other one was not asked again")
	}
}

// TestNobodyStopsANodeByAReceipt: a peer says that it, and others, have got more from a node than that has given:
// with a code that it made up, with that of a real gift of less, of one to another node, and of one in another
// room. The node goes on, also when it starts again.
func TestNobodyStopsANodeByAReceipt(t *testing.T) {
	w := newStoppedWorld(t)
	w.keys = true
	w.begin(escrowSettings(90), "a", "a", "b")
	w.run(20 * time.Second)
	victim, mate, liar := w.nodes[0], w.nodes[1], w.nodes[2]
	got := victim.core.receiptsOf(liar)
	if len(got) != 1 || len(victim.core.receiptsOf(mate)) != 1 || got[0].Code == 0 {
		t.Fatalf("receipts %v: nothing is tried", got)
	}
	forged := []ticket.Received{}
	for _, more := range []ticket.Amount{{Places: 1}, {Rate: 1}, {Places: 1 << 30, Rate: 1 << 30}} {
		r := got[0]
		r.Gave = r.Gave.Add(more)
		forged = append(forged, r, ticket.Received{Room: r.Room, To: r.To, Gave: r.Gave})
		r.Room[0]++
		forged = append(forged, r)
	}
	for _, to := range []crdt.NodeID{mate.id, {99}} {
		forged = append(forged, ticket.Received{Room: got[0].Room, To: to, Gave: victim.core.receiptsOf(mate)[0].Gave.Add(got[0].Gave), Code: got[0].Code})
	}
	fresh := &machine{id: crdt.NodeID{7}, site: "a"} // nobody chose its id
	w.start(fresh, escrowSettings(90))
	known := ticket.AppendReceipts(nil, ticket.Receipts{Known: true})
	if _, err := fresh.core.Receive(liar.peer(), kindReceipts, known, w.now); err != nil || fresh.core.Conflict() != nil {
		t.Errorf("a word that it is known stops a new node: %v, %v", err, fresh.core.Conflict())
	}
	for range 2 { // while it runs, and before its rooms are open
		for _, r := range forged {
			payload := ticket.AppendReceipts(nil, ticket.Receipts{Items: []ticket.Received{r}})
			if _, err := victim.core.Receive(liar.peer(), kindReceipts, payload, w.now); err != nil {
				t.Fatal(err)
			}
			if err := victim.core.Conflict(); err != nil {
				t.Fatalf("a receipt of %v stops the node: %v", r, err)
			}
		}
		w.run(time.Second)
		if err := victim.core.Conflict(); err != nil || !victim.core.Ready() {
			t.Errorf("ready %v, conflict: %v", victim.core.Ready(), err)
		}
		w.kill(victim)
		w.start(victim, escrowSettings(90))
	}
}

func (m *machine) peer() replica.Peer {
	return replica.Peer{ID: m.id, Boot: m.boot, Site: m.site, Ready: true}
}

// receiptsOf returns what another node says that it has from this one.
func (c *Core) receiptsOf(other *machine) []ticket.Received {
	return other.core.receiptsFrom(c.self.Node)
}

// TestAReceiptIsPassedOn: who has got something leaves, and its heir knows how much of whom; also the
// heir of that one.
func TestAReceiptIsPassedOn(t *testing.T) {
	s := escrowSettings(90)
	w := newStoppedWorld(t)
	w.keys = true
	w.begin(s, "a", "b", "b", "b")
	w.run(20 * time.Second)
	m := w.nodes[0]
	old := m.backup(t)
	w.giveAway(w.crowd(80, at(w.nodes[1])))
	got := m.core.receiptsOf(w.nodes[1])
	w.kill(m)
	for range 2 { // to an heir that has got nothing since the backup
		var next *machine
		for _, n := range w.nodes[1:] {
			if n.core != nil && len(n.core.receiptsFrom(m.id)) > 0 && slices.Contains(n.core.receiptsFrom(m.id), got[0]) {
				next = n
			}
		}
		if next == nil {
			t.Fatalf("nobody says %v", got[0])
		}
		if err := next.core.Leave(w.now); err != nil {
			t.Fatal(err)
		}
		for end := w.now.Add(time.Minute); !next.core.Left() && w.now.Before(end); {
			w.run(100 * time.Millisecond)
		}
		if !next.core.Left() {
			t.Fatal("it has not left")
		}
		w.kill(next)
	}
	m.disk.keys, m.boot, m.snapshot = old.keys, old.boot, old.snapshot
	w.start(m, s)
	if err := w.conflict(m, 5*time.Second); !errors.Is(err, ErrCopied) || !strings.Contains(err.Error(), "has got") {
		t.Errorf("conflict: %v", err)
	}
}

// TestReceiptsOfManyRooms has more receipts than go into a message, at a node whose
// rooms are not open.
func TestReceiptsOfManyRooms(t *testing.T) {
	giver, taker := crdt.NodeID{1}, crdt.NodeID{2}
	rights, _, err := ticket.OpenRights(ticket.RightsConfig{Self: crdt.Incarnation{Node: taker, Boot: 1}, Session: time.Minute, Seqs: func(uint64) uint64 { return 1 }}, nil, time.Unix(1000, 0))
	if err != nil {
		t.Fatal(err)
	}
	newCore := func(id crdt.NodeID) *Core {
		c, err := NewCore(CoreConfig{Self: crdt.Incarnation{Node: id, Boot: 2}, Site: "a", OwnerKey: []byte("k"), Rand: rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	here, there := newCore(giver), newCore(taker)
	gave := ticket.Amount{Places: 3, Rate: 4}
	rights.Receive(ticket.Transfer{From: giver, To: taker, Gave: gave, Code: here.giftCode(crdt.RoomID{1}, taker, gave)}, time.Unix(1000, 0))
	puts := rights.Writes()
	const rooms = 2*ticket.MaxReceipts + 1
	for i := range rooms {
		there.storing.found[crdt.RoomID{byte(i), byte(i >> 8)}] = puts
	}
	now := time.Unix(2000, 0)
	here.SetPeers([]replica.Peer{{ID: taker, Boot: 2, Site: "a"}}, now)
	asked, got := 0, 0
	for out := here.askForReceipts(now); len(out) > 0; {
		asked++
		answer, err := there.Receive(replica.Peer{ID: giver, Boot: 2, Site: "a"}, out[0].Kind, out[0].Payload, now)
		if err != nil || len(answer) != 1 {
			t.Fatalf("%d answers, %v", len(answer), err)
		}
		a, err := ticket.DecodeReceipts(answer[0].Payload)
		if err != nil {
			t.Fatal(err)
		}
		got += len(a.Items)
		if out, err = here.Receive(replica.Peer{ID: taker, Boot: 2, Site: "a"}, answer[0].Kind, answer[0].Payload, now); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 3 || got != rooms || !here.inquiries.by[taker].done {
		t.Errorf("%d questions, %d receipts of %d, done %v", asked, got, rooms, here.inquiries.by[taker].done)
	}
	if err := here.Conflict(); !errors.Is(err, ErrCopied) {
		t.Errorf("conflict: %v", err)
	}
}

// TestABackupThatGaveNothingAway brings back a copy of a node's data directory from before it let
// anybody in. It has given nothing away since, so nobody refuses it; others of its site remember
// whom it let in, so those stay, and count.
func TestABackupThatGaveNothingAway(t *testing.T) {
	s := escrowSettings(60)
	w := newWorld(t, s, "a", "a", "b")
	w.run(20 * time.Second)
	m := w.nodes[0]
	old := m.backup(t)
	inside := w.crowd(15, at(m))
	if in := w.askAll(inside); in != 15 {
		t.Fatalf("%d of 15 were let in", in)
	}
	w.run(3 * time.Second)
	own := m.core.order[0].Rights().InUse
	w.kill(m)
	w.run(time.Second)
	m.disk.keys, m.boot, m.snapshot = old.keys, old.boot, old.snapshot
	w.start(m, s)
	for end := w.now.Add(20 * time.Second); !m.core.Ready() && w.now.Before(end); {
		w.run(50 * time.Millisecond)
	}
	if err := m.core.Conflict(); err != nil || !m.core.Ready() || own < 10 {
		t.Fatalf("ready %v, conflict: %v; it had %d in use: nothing is tried", m.core.Ready(), err, own)
	}
	all := append(w.crowd(100, w.spread), inside...)
	for range 100 {
		w.askAll(outside(all))
		for _, p := range inside {
			if v := w.ask(p); !v.Admit {
				t.Fatalf("%s, who is inside, was refused", p.name)
			}
		}
		if w.run(time.Second); w.active(all) > 60 {
			t.Fatalf("%d are inside, of 60", w.active(all))
		}
	}
	if n := w.active(all); n != 60 {
		t.Errorf("%d are inside in the end, want 60", n)
	}
}
