package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/transport"
)

// Bootstrap says how a node comes to be of a mesh.
type Bootstrap struct {
	// Names are the nodes that make a mesh together where there is none, the same at all
	// of them; without this node's own name it only joins.
	Names []string
	// Alone says that there are no other nodes: this one makes a mesh at once.
	Alone bool
	// Joined is told of which mesh the node is, once that is on disk and before anything
	// else is said. It may be nil.
	Joined func(bootstrap.MeshID)
}

// ErrNoMesh says that a node is of no mesh yet, or that nothing was minted in it.
var ErrNoMesh = errors.New("not bootstrapped")

// noMesh says why.
type noMesh string

func (e noMesh) Error() string     { return string(e) }
func (e noMesh) Is(err error) bool { return err == ErrNoMesh }

// errNotJoined is what an operator is told who wants something of a node that is of no mesh.
var errNotJoined = fmt.Errorf("this node has no mesh yet (see its /readyz): %w", ErrNoMesh)

// bootstrapper runs a bootstrap.Machine beside a node.
type bootstrapper struct {
	cfg    Bootstrap
	data   *DataDir
	log    *slog.Logger
	now    func() time.Time
	in     chan told
	joined chan struct{}          // closed once the disk says of which mesh the node is
	minted chan struct{}          // closed once it says that this node, the minter, may mint
	stands atomic.Bool            // the mesh has capacity, as the node has heard
	waits  atomic.Pointer[string] // for what the machine waits
	gone   atomic.Pointer[crdt.NodeID]
	named  atomic.Pointer[namedNodes] // nil: nobody has looked yet
	next   chan error                 // why the process must end
}

// told is a message from another node.
type told struct {
	from crdt.NodeID
	m    bootstrap.Message
}

const (
	bootstrapTick = 100 * time.Millisecond

	// standingTick is the same once the mesh stands: from then on the node only answers, and looks at who there is
	// whenever it is asked. Only who asked before being a member is noticed with the next tick.
	standingTick = 10 * time.Second
)

// newBootstrapper takes a directory as it was found, with what its store holds.
func newBootstrapper(cfg Config, stored []durable.Write, log *slog.Logger, now func() time.Time) (*bootstrapper, error) {
	b := &bootstrapper{
		cfg: *cfg.Bootstrap, data: cfg.Data, log: log, now: now, in: make(chan told, 256),
		joined: make(chan struct{}), minted: make(chan struct{}), next: make(chan error, 1),
	}
	is := cfg.Data.Mesh()
	switch {
	case !is.Record.Mesh.IsZero():
	case len(stored) > 0:
		return nil, errors.New("the store of the data directory holds the state of a mesh, and no record says of which: it is of an earlier version; start with an empty directory")
	case b.cfg.Alone:
		rec := bootstrap.Record{Names: []string{cfg.Name}, Minter: cfg.Data.Self().Node, MinterName: cfg.Name, MinterSite: cfg.Site}
		rand.Read(rec.Mesh[:]) // never fails: crypto/rand ends the process instead
		is = bootstrap.Disk{Record: rec, Minted: true}
		if err := cfg.Data.SetMesh(is); err != nil {
			return nil, err
		}
	default:
		return b, nil
	}
	close(b.joined)
	if is.Minted {
		close(b.minted)
	}
	return b, nil
}

// take has a message be looked at, unless there are too many: they are sent again.
func (b *bootstrapper) take(from crdt.NodeID, payload []byte) error {
	m, err := bootstrap.Decode(payload)
	if err != nil {
		return err
	}
	select {
	case b.in <- told{from, m}:
	default:
	}
	return nil
}

// is reports whether a channel that is only closed has been.
func is(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run answers other nodes until ctx ends, and has the node come to be of a mesh.
func (b *bootstrapper) run(ctx context.Context, mesh Mesh, name, site string) {
	m := bootstrap.New(bootstrap.Config{
		Self: b.data.Self().Node, Name: name, Site: site, Names: b.cfg.Names,
		Disk: b.data.Mesh(), Random: func(p []byte) { rand.Read(p) },
	}, b.now())
	ticker := time.NewTicker(bootstrapTick)
	defer ticker.Stop()
	var logged time.Time
	stands := false
	for {
		var out []bootstrap.Out
		now := b.now()
		if !stands && b.stands.Load() {
			m.Complete()
			if stands = m.Done(); stands {
				ticker.Reset(standingTick)
			}
		}
		select {
		case <-ctx.Done():
			return
		case in := <-b.in:
			out = m.Receive(in.from, in.m, now)
			if stands {
				out = append(out, m.Tick(now, bootstrapPeers(mesh.Members()))...)
			}
		case <-ticker.C:
			out = m.Tick(now, bootstrapPeers(mesh.Members()))
		}
		if err := b.write(m); err != nil {
			b.fail(err)
			return
		}
		for _, o := range out {
			mesh.Send(transport.PeerID(o.To), kindBootstrap, o.Slot(), o.Append(nil))
		}
		if err := m.Lost(); err != nil {
			b.fail(err)
			return
		}
		logged = b.tell(m, now, logged)
	}
}

func (b *bootstrapper) fail(err error) { b.next <- fmt.Errorf("node: bootstrap: %w", err) }

// write puts on disk what the machine wants there, and tells who goes by it.
func (b *bootstrapper) write(m *bootstrap.Machine) error {
	d, ok := m.Write()
	if !ok {
		return nil
	}
	if err := b.data.SetMesh(d); err != nil {
		return err
	}
	m.Written()
	if !is(b.joined) {
		b.log.Info("this node is of a mesh now", "mesh", d.Record.Mesh.String(), "minter", nameOf(d.Record.Minter), "minter_name", d.Record.MinterName)
		if b.cfg.Joined != nil {
			b.cfg.Joined(d.Record.Mesh)
		}
		close(b.joined)
	}
	if d.Minted && !is(b.minted) {
		b.log.Info("bootstrap is complete: all named nodes hold the record of the mesh, and this node mints its capacity", "mesh", d.Record.Mesh.String(), "names", d.Record.Names)
		close(b.minted)
	}
	return nil
}

// waitsTold is how often the log says for what a node waits.
const waitsTold = 30 * time.Second

// tell has it be known for what the machine waits.
func (b *bootstrapper) tell(m *bootstrap.Machine, now, logged time.Time) time.Time {
	gone := m.Returned()
	b.gone.Store(&gone)
	why := m.Waits(now)
	b.waits.Store(&why)
	if why != "" && now.Sub(logged) >= waitsTold {
		if !logged.IsZero() || now.Sub(m.Began()) > 2*bootstrap.Quiet {
			b.log.Warn("this node is not bootstrapped", "reason", why)
			return now
		}
	}
	return logged
}

// returned returns who came back with an empty disk under the minter's name.
func (b *bootstrapper) returned() crdt.NodeID {
	if id := b.gone.Load(); id != nil {
		return *id
	}
	return crdt.NodeID{}
}

func bootstrapPeers(members []transport.Peer) (peers []bootstrap.Peer) {
	for _, p := range members {
		if p.State == transport.Alive {
			peers = append(peers, bootstrap.Peer{ID: crdt.NodeID(p.ID), Name: p.Name})
		}
	}
	return peers
}

// join waits until the disk says of which mesh the node is. Nothing of another node counts
// before that, and no operator is obeyed.
func (n *Node) join(ctx context.Context) error {
	b := n.boot
	if b == nil {
		return nil
	}
	ticker := time.Tick(tickInterval)
	defer n.moved.Store(0)
	for !is(b.joined) {
		n.moved.Store(n.Now().UnixNano())
		select {
		case <-ctx.Done():
			return nil
		case err := <-b.next:
			return err
		case <-n.inbox:
		case o := <-n.orders:
			o.done <- errNotJoined
		case <-b.joined:
		case <-ticker:
		}
	}
	n.core.SetMesh(n.cfg.Data.Mesh())
	return nil
}

// bootstrapped reports whether the mesh of this node has capacity, as far as it knows, and
// follows what the bootstrapper has found out. It is the loop's.
func (n *Node) bootstrapped() bool {
	b := n.boot
	if b == nil {
		return true
	}
	if is(b.minted) && !n.core.mesh.is.Minted {
		n.core.SetMesh(n.cfg.Data.Mesh())
	}
	if n.core.meshMinted() {
		b.stands.Store(true)
	}
	why := n.core.meshWaits(b.returned())
	n.noMesh.Store(&why)
	return why == ""
}

// minterPatience is how long a node that has just started may not have heard that the minter has
// left, or was declared dead.
const minterPatience = 5 * time.Second

// warnOfMinter says, now and then, that capacity is gone with the minter's disk.
func (n *Node) warnOfMinter(now time.Time) {
	if n.boot == nil || now.Sub(n.warned) < waitsTold {
		return
	}
	rec, as := n.core.mesh.is.Record, n.boot.returned()
	if as != (crdt.NodeID{}) && !n.core.firstMinterGone() {
		n.warned = now
		n.log.Warn("capacity of the mesh is lost until somebody says so", "reason", minterGone(rec, as))
	}
}

// notBootstrapped returns why nobody is let in; nil if that has other reasons, or none.
func (n *Node) notBootstrapped() error {
	for _, why := range []*string{n.noMesh.Load(), n.waits()} {
		if why != nil && *why != "" {
			return noMesh(*why)
		}
	}
	return nil
}

func (n *Node) waits() *string {
	if n.boot == nil {
		return nil
	}
	return n.boot.waits.Load()
}

// Mesh returns of which mesh this node is; zero: of none yet. Any goroutine may call it.
func (n *Node) Mesh() bootstrap.MeshID { return n.cfg.Data.Mesh().Record.Mesh }

// bootEnds receives why the node has to end; nil never does.
func (n *Node) bootEnds() <-chan error {
	if n.boot == nil {
		return nil
	}
	return n.boot.next
}
