package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// wire is a mesh of two nodes in one process, as one of them sees it. What is sent
// arrives at once.
type wire struct {
	alone
	self int
	pair *pair
}

type pair struct {
	nodes []*Node
	mu    sync.Mutex // guards the following
	peers []transport.Peer
}

func (w *wire) Members() []transport.Peer {
	w.pair.mu.Lock()
	defer w.pair.mu.Unlock()
	return slices.Clone(w.pair.peers)
}

func (w *wire) SetReady(ready bool) {
	w.pair.mu.Lock()
	defer w.pair.mu.Unlock()
	w.pair.peers[w.self].Ready = ready
}

func (w *wire) Send(to transport.PeerID, kind uint8, _ uint64, payload []byte) {
	all := w.Members()
	if i := slices.IndexFunc(all, func(p transport.Peer) bool { return p.ID == to }); i >= 0 && i != w.self { // a mesh carries nothing to its own node
		w.pair.nodes[i].OnMessage(all[w.self], kind, payload)
	}
}

// startPair runs two nodes of one site, the first of which founds a room of ten.
// stop takes one of them away for good.
func startPair(t *testing.T) (p *pair, stop func(i int)) {
	t.Helper()
	s := testSettings(10)
	s.Policy = room.Escrow
	p = &pair{}
	var stops []func()
	var all []*DataDir
	for i := range 2 {
		data, err := OpenDataDir(t.TempDir(), crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(Config{Data: data, Site: "a", Rooms: []room.Settings{s}, OwnerKey: []byte("key"), Found: i == 0})
		if err != nil {
			t.Fatal(err)
		}
		id := data.Self()
		p.nodes = append(p.nodes, n)
		p.peers = append(p.peers, transport.Peer{ID: transport.PeerID(id.Node), Boot: id.Boot, Site: "a", State: transport.Alive})
		all = append(all, data)
	}
	for i, data := range all { // each knows both from the start
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		stops = append(stops, sync.OnceFunc(func() {
			cancel()
			if err := errors.Join(<-done, data.Close()); err != nil {
				t.Error(err)
			}
			p.mu.Lock()
			p.peers[i].State, p.peers[i].Ready = transport.Failed, false
			p.mu.Unlock()
		}))
		go func() { done <- p.nodes[i].Run(ctx, &wire{self: i, pair: p}) }()
	}
	t.Cleanup(func() { stops[0](); stops[1]() })
	return p, func(i int) { stops[i]() }
}

// places returns how many each node holds.
func places(nodes []*Node) (held []int64) {
	for _, n := range nodes {
		held = append(held, n.Route("", "/").Rights().Held.Places)
	}
	return held
}

// TestNodeLeavesItsRights: whoever leaves has nothing in the end, the other one
// has all, and nobody can be the heir of the last.
func TestNodeLeavesItsRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := startPair(t)
		nodes := p.nodes
		time.Sleep(5 * time.Second)
		if held := places(nodes); held[0]+held[1] != 10 {
			t.Fatalf("held %v, want 10 in all; %v, %+v", held, nodes[0].Ready(), nodes[0].Route("", "/").Rights())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := nodes[0].Leave(ctx); err != nil {
			t.Fatalf("leave: %v", err)
		}
		if held := places(nodes); held[0] != 0 || held[1] != 10 {
			t.Errorf("held %v, want 0 and 10", held)
		}
		v := nodes[0].Route("", "/").Decide(Pass{}, false, nodes[0].Now())
		if v.Admit && v.Pass.Ticket.Anchor != crdt.NodeID(p.peers[1].ID) {
			t.Errorf("a node that has left lets somebody in with %+v of its own", v.Pass.Ticket)
		}
		if err := nodes[1].DeclareDead(ctx, crdt.NodeID(p.peers[0].ID)); err == nil {
			t.Error("a node that has left is declared dead")
		}
	})
}

// TestHeirAnswersItself: a session whose anchor has left goes on at the heir, under the
// ticket that it has. The heir asks itself, which no mesh carries.
func TestHeirAnswersItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPair(t)
		time.Sleep(5 * time.Second)
		decide := func(i int, pass Pass, has bool) Verdict {
			return p.nodes[i].Route("", "/").Decide(pass, has, p.nodes[i].Now())
		}
		v := decide(0, Pass{}, false)
		first := v.Pass
		if !v.Admit {
			t.Fatal("not let in to an empty room")
		}
		anchor := slices.IndexFunc(p.peers, func(o transport.Peer) bool { return crdt.NodeID(o.ID) == first.Ticket.Anchor })
		heir := 1 - anchor
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := p.nodes[anchor].Leave(ctx); err != nil {
			t.Fatalf("leave: %v", err)
		}
		stop(anchor)
		pass := first
		for range 90 { // a session has 60 s
			time.Sleep(time.Second)
			v := decide(heir, pass, true)
			if !v.Admit {
				t.Fatal("the session is lost")
			}
			if v.SetPass {
				pass = v.Pass
			}
		}
		if pass.Ticket != first.Ticket {
			t.Errorf("the ticket is %+v, was %+v: the anchor's heir did not answer", pass.Ticket, first.Ticket)
		}
		if !pass.LeaseEnd.After(first.LeaseEnd) {
			t.Error("the session has not become longer")
		}
	})
}

func TestOrdersThatCannotBeCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, t.TempDir(), 0, nil)
		time.Sleep(time.Second)
		if err := n.Leave(t.Context()); !errors.Is(err, ErrNoHeir) {
			t.Errorf("leave alone: %v, want %v", err, ErrNoHeir)
		}
		if err := n.DeclareDead(t.Context(), crdt.NodeID{7}); !errors.Is(err, ErrUnknownNode) {
			t.Errorf("a node nobody knows: %v, want %v", err, ErrUnknownNode)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := n.Leave(t.Context()); !errors.Is(err, errStopped) {
			t.Errorf("after the end: %v, want %v", err, errStopped)
		}
	})
}

// TestDeadNodesRightsComeBack: a node that is alive cannot be declared dead. The
// rights of one that is gone belong to the other one, which may use them when no
// session of the dead can last any more.
func TestDeadNodesRightsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stop := startPair(t)
		time.Sleep(10 * time.Second)
		dead, heir := crdt.NodeID(p.peers[0].ID), p.nodes[1]
		if err := heir.DeclareDead(t.Context(), dead); !errors.Is(err, ErrAlive) {
			t.Fatalf("a living node: %v, want %v", err, ErrAlive)
		}
		stop(0)
		time.Sleep(5 * time.Second)
		if err := heir.DeclareDead(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		is := heir.Route("", "/").Rights()
		if is.Held.Places != 10 || is.Free.Places >= 10 {
			t.Errorf("5 s later: %+v, want 10 places, most of them locked", is)
		}
		time.Sleep(70 * time.Second)
		if is = heir.Route("", "/").Rights(); is.Held.Places != 10 || is.Free.Places != 10 {
			t.Errorf("after a session: %+v, want 10 free places", is)
		}
	})
}
