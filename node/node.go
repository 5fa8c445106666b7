package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// Config says who a node is, which rooms it keeps and where its state lies.
type Config struct {
	Data     *DataDir // required; the caller closes it after Run
	Name     string
	Site     string          // required
	Version  string          // shown in Status
	Rooms    []room.Settings // complete and checked
	OwnerKey []byte          // required; the same on all nodes

	// AwaitPeers is how long a starting node waits for others whose state it
	// should have, before it goes on alone. Zero does not wait: right for a node
	// that starts a mesh, wrong for one that joins it.
	AwaitPeers time.Duration

	// AwaitKnown is the same for a node that knows of others from before.
	AwaitKnown time.Duration

	// Limits are rate limit rules; see CoreConfig.Limits.
	Limits []limit.Rule

	// LimitMemory is how much counting for rate limits may take, in bytes; see
	// CoreConfig.LimitMemory.
	LimitMemory int

	// Catalog has rooms follow what operators set while nodes run; see CoreConfig.Catalog.
	Catalog *Cataloging

	// Bootstrap says how the node comes to be of a mesh. Nil is for tests and measurements,
	// in which Found says who mints; see CoreConfig.Found.
	Bootstrap *Bootstrap
	Found     bool

	// Disk is where the store lies. Nil means real files, in Data; tests have
	// others, that fail.
	Disk durable.Disk

	// Clock is the wall clock, which is looked at once, when the node is made. Nil
	// means time.Now.
	Clock func() time.Time

	Logger *slog.Logger // nil discards
}

// Node runs a Core: it gives it time, messages and members, sends what it says
// and keeps its state on disk.
type Node struct {
	cfg     Config
	core    *Core
	log     *slog.Logger
	clock   clock
	journal *journal

	inbox   chan inbound
	changed chan struct{} // membership may have changed
	orders  chan order    // of the operator
	ended   chan struct{} // closed when the loop has
	dropped atomic.Uint64 // messages that came while the inbox was full
	gone    []string      // sites that have left; the loop's
	watch   clockWatch    // the loop's

	clockOff atomic.Pointer[clockOff] // nil: it is right

	factsMany, factsLost, saidUnfit bool // said in the log; the loop's

	boot   *bootstrapper          // nil: as Config has it
	noMesh atomic.Pointer[string] // why its mesh has no capacity, as far as the loop knows
	unfit  atomic.Pointer[string] // whose state it waits for, in words; nil: nobody's, as far as is known
	warned time.Time              // when the log was last told that the minter's disk is gone; the loop's

	mesh   atomic.Pointer[Mesh] // nil until Run
	serves atomic.Bool          // requests may be decided
	moved  atomic.Int64         // when the loop went on last, Unix nanoseconds; 0 while there is none
}

type inbound struct {
	from    replica.Peer
	kind    uint8
	payload []byte
}

// inboxSize holds a second's worth of messages from a large site. What does
// not fit is dropped: everything is sent again or repaired.
const inboxSize = 4096

// New returns a node that Run starts. It opens the store in cfg.Data, which Run
// closes.
func New(cfg Config) (_ *Node, err error) {
	if cfg.Data == nil || cfg.Site == "" {
		return nil, errors.New("node: Data and Site are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Disk == nil {
		cfg.Disk = durable.Files{}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	n := &Node{
		cfg:     cfg,
		log:     cfg.Logger.With("node", cfg.Data.Self().String(), "site", cfg.Site),
		clock:   newClock(cfg.Clock()),
		inbox:   make(chan inbound, inboxSize),
		changed: make(chan struct{}, 1),
		orders:  make(chan order),
		ended:   make(chan struct{}),
	}
	store, stored, mark, err := cfg.Data.openStore(cfg.Disk)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	if cfg.Bootstrap != nil {
		if n.boot, err = newBootstrapper(cfg, stored, n.log, n.clock.now); err != nil {
			return nil, err
		}
	}
	n.core, err = NewCore(CoreConfig{
		Mesh:        cfg.Data.Mesh(),
		Self:        cfg.Data.Self(),
		Key:         cfg.Data.Key(),
		Name:        cfg.Name,
		Named:       cfg.Data.named,
		Site:        cfg.Site,
		Rooms:       cfg.Rooms,
		OwnerKey:    cfg.OwnerKey,
		Rand:        rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		Stored:      stored,
		Limits:      cfg.Limits,
		LimitMemory: cfg.LimitMemory,
		Found:       cfg.Found,
		Catalog:     cfg.Catalog,
		History:     &history.Config{},
	})
	if err != nil {
		return nil, err
	}
	n.cfg.Rooms, n.cfg.Limits = nil, nil // the core has taken them over, and there may be thousands
	n.journal, err = newJournal(cfg.Disk, cfg.Data.StorePath(), store, mark, n.log)
	return n, err
}

// Close gives the store of a node back that is never run.
func (n *Node) Close() error { return n.journal.store.Close() }

// ID returns which node this is. Any goroutine may call it.
func (n *Node) ID() crdt.NodeID { return n.core.self.Node }

// Now returns the time that this node lives by: the wall clock when it was made, and
// since then the monotonic clock. Who asks the node about a pass, and who compares
// its clock with others', reads this one. Any goroutine may call it.
func (n *Node) Now() time.Time { return n.clock.now() }

// Route returns the room of a request, or nil. host is in lower case without a
// port, path is decoded. Any goroutine may call it.
func (n *Node) Route(host, path string) *Room { return n.core.Route(host, path) }

// View returns how this node sees a room now, as Core.View does.
func (n *Node) View(id crdt.RoomID) *room.View { return n.core.View(id) }

// What a node that has just started waits for before it answers visitors.
var (
	ErrNotReady = errors.New("waiting for the state of the mesh")
	ErrNoRights = errors.New("waiting for the first rights of a room")
	// ErrGoesOnLeaving is one that never ends: GoesOnLeaving.
	ErrGoesOnLeaving = errors.New("this node was leaving when it stopped, and goes on: other nodes have its visitors")
)

// GoesOnLeaving reports whether the node was leaving when it stopped before, and goes on with that:
// then it takes no visitors, and is to be stopped once Leave returns. Any goroutine may call it.
func (n *Node) GoesOnLeaving() bool { return n.core.health.resumed.Load() }

// Ready returns nil once requests may be decided, and the reason until then.
func (n *Node) Ready() error {
	switch {
	case n.serves.Load():
		return nil
	case n.notBootstrapped() != nil:
		return n.notBootstrapped()
	case n.GoesOnLeaving():
		return ErrGoesOnLeaving
	case n.core.Forgotten():
		return ErrForgotten
	case n.core.Ready():
		return ErrNoRights
	}
	if off := n.clockOff.Load(); off != nil {
		return *off
	}
	if who := n.unfit.Load(); who != nil {
		return fmt.Errorf("%w: %s", ErrNotReady, *who)
	}
	return ErrNotReady
}

// OnMessage takes a one-way message of a peer; transport calls it.
func (n *Node) OnMessage(from transport.Peer, kind uint8, payload []byte) {
	if kind == kindBootstrap && n.boot != nil {
		if err := n.boot.take(crdt.NodeID(from.ID), payload); err != nil {
			n.core.refusals.total.Add(1)
		}
		return
	}
	select {
	case n.inbox <- inbound{peerOf(from), kind, payload}:
	default:
		n.dropped.Add(1)
	}
}

// OnEvent takes a change of the membership; transport calls it.
func (n *Node) OnEvent(transport.Event) {
	select {
	case n.changed <- struct{}{}:
	default: // the loop will look anyway
	}
}

func peerOf(p transport.Peer) replica.Peer {
	return replica.Peer{ID: crdt.NodeID(p.ID), Boot: p.Boot, Site: p.Site, Ready: p.Ready}
}

// Run does the node's work until ctx ends. mesh may be nil for a single node.
func (n *Node) Run(ctx context.Context, mesh Mesh) error {
	if mesh == nil {
		mesh = alone{}
	}
	n.mesh.Store(&mesh)
	n.restore()

	saver := newSaver(n.cfg.Data, n.log)
	past := n.openPast()
	var wg sync.WaitGroup
	wg.Go(saver.run)
	wg.Go(past.run)
	var closed error
	wg.Go(func() { closed = n.journal.run() })
	bootCtx, stopBoot := context.WithCancel(ctx)
	defer stopBoot()
	if n.boot != nil {
		wg.Go(func() { n.boot.run(bootCtx, mesh, n.cfg.Name, n.cfg.Site) })
	}
	err := n.join(ctx)
	if err == nil && ctx.Err() == nil {
		err = newLoop(n, mesh, saver, past).run(ctx)
	}
	stopBoot()
	close(n.ended)
	n.send(mesh, n.core.lastLimits(n.Now()))
	n.core.Close(n.Now())
	kept := make(chan struct{})
	go func() {
		n.journal.finish(n.core, n.Now())
		n.sayUnkept(saver.close(n.core.replica, n.Now()))
		n.core.CloseHistory(n.Now())
		past.keep(n.core.TakeHistory())
		past.close(n.core.PastPassed())
		wg.Wait()
		close(kept)
	}()
	select {
	case <-kept:
		return errors.Join(err, closed)
	case <-time.After(diskEndsWithin):
		return errors.Join(err, fmt.Errorf("%w; the next start begins as after a crash", errDiskHangs))
	}
}

// diskEndsWithin is how long the end waits for the disk. What was confirmed is on it, and what was not may be lost: a node
// whose disk hangs is to end nonetheless, so that another can start.
const diskEndsWithin = 10 * time.Second

var errDiskHangs = fmt.Errorf("the disk of the data directory has not answered for %v", diskEndsWithin)

// restore takes up what the last start has kept. Counts are repaired by other
// nodes, so that damaged ones are worth a warning, not a stop.
func (n *Node) restore() {
	records, err := n.cfg.Data.LoadCounts()
	if len(records) > 0 {
		err = n.core.Restore(records, n.Now())
	}
	if err != nil {
		n.log.Warn("counts of the last start are lost; sessions and places in passes stay valid", "error", err)
	}
}

// meet tells the core who lives and which sites have left.
func (n *Node) meet(members []transport.Peer, now time.Time) {
	n.core.SetPeers(alive(members), now)
	n.gone = gone(n.gone, members, n.cfg.Site)
	n.core.SetGone(n.gone)
}

// gone returns the sites all of whose members have left, in order. A site that
// left stays gone when its members are forgotten, until one is back; one that
// failed, or was never heard of, has not left.
func gone(before []string, members []transport.Peer, own string) []string {
	left := map[string]bool{}
	for _, site := range before {
		left[site] = true
	}
	heard := map[string]bool{}
	for _, p := range members {
		has := p.State == transport.Left
		if heard[p.Site] {
			has = has && left[p.Site]
		}
		heard[p.Site], left[p.Site] = true, has
	}
	var sites []string
	for _, site := range slices.Sorted(maps.Keys(left)) {
		if left[site] && site != own {
			sites = append(sites, site)
		}
	}
	return sites
}

func alive(members []transport.Peer) []replica.Peer {
	var peers []replica.Peer
	for _, p := range members {
		if p.State == transport.Alive {
			peers = append(peers, peerOf(p))
		}
	}
	return peers
}

func (n *Node) receive(mesh Mesh, in inbound) {
	now := n.Now()
	out, err := n.core.Receive(in.from, in.kind, in.payload, now)
	if err != nil {
		n.log.Debug("message refused", "peer", in.from.ID.String(), "error", err)
	}
	n.send(mesh, out)
	n.journal.step(n.core, now)
}

// send sends messages. A node that answers for one which has left writes to itself,
// as it would to any other: the mesh does not carry that, and it arrives at once.
func (n *Node) send(mesh Mesh, out []Message) {
	self := replica.Peer{ID: n.core.self.Node, Boot: n.core.self.Boot, Site: n.core.site, Ready: true}
	for _, m := range out {
		if m.To == self.ID {
			n.receive(mesh, inbound{self, m.Kind, m.Payload})
			continue
		}
		mesh.Send(transport.PeerID(m.To), m.Kind, m.Slot, m.Payload)
	}
}

// sayUnkept says why counts cannot be written down; nil: they can.
func (n *Node) sayUnkept(err error) {
	if err != nil {
		n.log.Error("counts cannot be written down", "error", err)
	}
}
