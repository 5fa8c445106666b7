package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
	"github.com/ropeline/ropeline/transport"
)

// fakeMesh has the members that a test says, and reaches none of them.
type fakeMesh struct {
	alone
	members func() []transport.Peer
	ready   atomic.Bool
}

func (m *fakeMesh) Members() []transport.Peer { return m.members() }
func (m *fakeMesh) SetReady(ready bool)       { m.ready.Store(ready) }

func noMembers() []transport.Peer { return nil }

// startNode opens a data directory and runs a node until stop is called, which
// returns what Run does.
func startNode(t *testing.T, dir string, await time.Duration, mesh Mesh) (n *Node, stop func() error) {
	t.Helper()
	data, err := OpenDataDir(dir, crdt.NodeID{})
	if err != nil {
		t.Fatal(err)
	}
	n, err = New(Config{Data: data, Site: "a", Rooms: []room.Settings{testSettings(10)}, OwnerKey: []byte("key"), AwaitPeers: await})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx, mesh) }()
	return n, func() error {
		cancel()
		return errors.Join(<-done, data.Close())
	}
}

func TestNodeKeepsItsSessionsOverARestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		if !errors.Is(n.Ready(), ErrNotReady) {
			t.Errorf("before it runs: %v, want %v", n.Ready(), ErrNotReady)
		}
		time.Sleep(3 * tickInterval)
		if err := n.Ready(); err != nil {
			t.Fatal(err)
		}
		v := n.Route("shop", "/").Decide(Pass{}, false, time.Now())
		if !v.Admit {
			t.Fatal("not admitted to an empty room")
		}
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		n, stop = startNode(t, dir, 0, nil)
		time.Sleep(time.Second)
		st := n.Status()
		if st.Boot != 2 || !st.Ready || st.Rooms[0].Active != 1 {
			t.Errorf("after the restart: boot %d, ready %v, active %d, want 2, true, 1", st.Boot, st.Ready, st.Rooms[0].Active)
		}
		if again := n.Route("shop", "/").Decide(v.Pass, true, time.Now()); !again.Admit {
			t.Error("the session is lost")
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNodeAwaitsPeers(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mesh := &fakeMesh{members: noMembers}
		n, stop := startNode(t, dir, 5*time.Second, mesh)
		time.Sleep(4900 * time.Millisecond)
		if n.Ready() == nil || mesh.ready.Load() {
			t.Error("ready although no peer was heard and the wait is not over")
		}
		time.Sleep(1500 * time.Millisecond)
		if err := n.Ready(); err != nil || !mesh.ready.Load() {
			t.Errorf("after the wait: %v, mesh told %v", err, mesh.ready.Load())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNodeAsksTheFirstPeerForItsState: a node that joins others is not ready because it
// had nobody to ask before the first of them was heard, nor because that one does not answer.
func TestNodeAsksTheFirstPeerForItsState(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		const heard = 2500 * time.Millisecond
		mesh := &fakeMesh{members: func() []transport.Peer {
			if time.Since(start) < heard {
				return nil
			}
			return []transport.Peer{{ID: transport.PeerID{7}, Name: "eleven", Site: "a", Boot: 1, State: transport.Alive, Ready: true}}
		}}
		n, stop := startNode(t, dir, time.Minute, mesh)
		time.Sleep(heard + memberInterval + tickInterval)
		if len(n.Status().Peers) != 1 {
			t.Fatalf("the peer is not heard of yet: %+v", n.Status().Peers)
		}
		if n.Ready() == nil || mesh.ready.Load() {
			t.Error("ready without the state of the site")
		}
		time.Sleep(30 * time.Second)
		if err := n.Ready(); !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "from eleven") || mesh.ready.Load() {
			t.Errorf("long after the peer did not answer: %v, mesh told %v; want it to wait for eleven", err, mesh.ready.Load())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSitesThatLeftAreGone(t *testing.T) {
	peer := func(id byte, site string, state transport.State) transport.Peer {
		return transport.Peer{ID: transport.PeerID{id}, Site: site, State: state}
	}
	steps := []struct {
		name    string
		members []transport.Peer
		want    string
	}{
		{"nobody is known", nil, "[]"},
		{"one of two left", []transport.Peer{peer(1, "b", transport.Left), peer(2, "b", transport.Alive)}, "[]"},
		{"one left, one failed", []transport.Peer{peer(1, "b", transport.Left), peer(2, "b", transport.Failed)}, "[]"},
		{"in the other order", []transport.Peer{peer(2, "b", transport.Failed), peer(1, "b", transport.Left)}, "[]"},
		{"all left", []transport.Peer{peer(1, "b", transport.Left), peer(2, "b", transport.Left)}, "[b]"},
		{"and are forgotten", nil, "[b]"},
		{"our own site's others too", []transport.Peer{peer(3, "a", transport.Left), peer(4, "c", transport.Left)}, "[b c]"},
		{"one is back", []transport.Peer{peer(1, "b", transport.Left), peer(2, "b", transport.Alive)}, "[c]"},
	}
	var now []string
	for _, step := range steps {
		if now = gone(now, step.members, "a"); fmt.Sprint(now) != step.want {
			t.Errorf("%s: gone = %v, want %s", step.name, now, step.want)
		}
	}
}

func TestNodeStopsWhenItIsACopy(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var double atomic.Pointer[transport.Peer]
		mesh := &fakeMesh{members: func() []transport.Peer {
			if p := double.Load(); p != nil {
				return []transport.Peer{*p}
			}
			return nil
		}}
		n, stop := startNode(t, dir, 0, mesh)
		time.Sleep(time.Second)
		self := n.core.self
		later := crdt.Incarnation{Node: self.Node, Boot: self.Boot + 1}
		double.Store(&transport.Peer{ID: transport.PeerID(self.Node), Boot: later.Boot, Site: "a", State: transport.Alive})
		n.OnEvent(transport.Event{})
		time.Sleep(time.Second)
		if err := n.Ready(); err != nil {
			t.Errorf("a word on a later start has the node be: %v", err)
		}
		says := newStarting(n.cfg.Data.Key(), later, VisitorID{9}).says
		done := make(chan error, 1)
		n.orders <- order{do: func(c *Core, now time.Time) error { return c.replica.Set(nodeKey(factStart, self.Node), says, now) }, done: done}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // it stops by itself, not because of stop
		if err := stop(); err == nil {
			t.Error("the node went on beside a later start of itself")
		}
	})
}

// TestNodeOutlivesItsDisk takes the data directory away.
func TestNodeOutlivesItsDisk(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		time.Sleep(time.Second)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if v := n.Route("shop", "/").Decide(Pass{}, false, time.Now()); !v.Admit {
			t.Error("nobody is let in any more")
		}
		if err := stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
	})
}

func TestStatusTellsWhatWentWrong(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		time.Sleep(time.Second)
		stranger := transport.Peer{ID: transport.PeerID{9}, Boot: 1, Site: "b"}
		n.OnMessage(stranger, kindVisits, []byte("rubbish"))
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for range inboxSize + 3 { // nobody takes them in any more
			n.OnMessage(stranger, kindVisits, nil)
		}
		n.core.visits.dropped = 2
		endings := new(ticket.Endings)
		for i := range uint64(ticket.MaxEndings + 3) {
			endings.Add(ticket.Ticket{Seq: i}, time.Now().Add(time.Hour), time.Now())
		}
		n.core.order[0].ownAbroad().endings = endings
		n.core.Tick(time.Now().Add(sweepInterval))
		if st := n.Status(); st.MessagesRefused != 1 || st.MessagesDropped != 3 || st.Overflow != 5 {
			t.Errorf("refused %d, dropped %d, overflow %d, want 1, 3, 5", st.MessagesRefused, st.MessagesDropped, st.Overflow)
		}
	})
}

// TestANodeThatHearsOfItsOwnDeathEnds: others have its capacity. What starts in its directory is a new node, unless
// somebody chose its id.
func TestANodeThatHearsOfItsOwnDeathEnds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		time.Sleep(time.Second)
		err := n.tell(t.Context(), func(c *Core, now time.Time) error {
			key := nodeKey(factDead, c.self.Node) + "/" + crdt.NodeID{7}.String()
			return c.facts.set(key, []byte{factVersion}, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * toldFor)
		if err := stop(); !errors.Is(err, ErrDeclaredDead) {
			t.Errorf("it ends with %v, want %v", err, ErrDeclaredDead)
		}
	})
	before, err := os.ReadFile(filepath.Join(dir, identityFile))
	if err != nil {
		t.Fatal(err)
	}
	var was identity
	if err := json.Unmarshal(before, &was); err != nil {
		t.Fatal(err)
	}
	id, err := crdt.ParseNodeID(was.Node)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDataDir(dir, id); !errors.Is(err, ErrDeclaredDead) {
		t.Errorf("started again with its id: %v, want %v", err, ErrDeclaredDead)
	}
	for boot := range uint64(2) {
		d, err := OpenDataDir(dir, crdt.NodeID{})
		if err != nil {
			t.Fatal(err)
		}
		s, all, _, err := d.openStore(durable.Files{})
		if err != nil {
			t.Fatal(err)
		}
		if is := d.Self(); is.Node == id || is.Boot != boot+1 || len(all) > 0 || !d.Mesh().Record.Mesh.IsZero() {
			t.Errorf("%v starts after node %s, with %d entries", is, id, len(all))
		}
		if err := errors.Join(s.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
