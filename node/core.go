package node

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/bootstrap"
	"github.com/ropeline/ropeline/node/durable"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// CoreConfig says who a node is and which rooms it keeps.
type CoreConfig struct {
	Self  crdt.Incarnation // required
	Site  string           // required
	Name  string           // what operators call it; "": nothing
	Key   []byte           // of the data directory, see DataDir.Key; nil, for simulations: peers are believed what they say of other starts of this node
	Named bool             // somebody chose Self.Node: an earlier life may have had it, and lost its disk
	Rooms []room.Settings  // complete and checked; ids differ

	// OwnerKey keys the choice of each visitor's owner, so that nobody outside
	// can pick visitors who all fall on one node. The same on all nodes.
	OwnerKey []byte
	Rand     *rand.Rand // required; picks peers, never keys or ids

	// Entropy is where visitor ids come from. Nil is the system's own, which is
	// right for all but simulations: an id that can be guessed is a place that can
	// be taken. Another one has to bear as many callers at once as requests do.
	Entropy io.Reader

	// Limits are rate limit rules. With a catalog they are brought into it, as rooms are, and
	// need no ids.
	Limits []limit.Rule

	// LimitMemory is how much counting for rate limits may take, in bytes. 0: no rule
	// counts, and nobody is limited.
	LimitMemory int

	// Stored is what the store holds that this node's writes went to, in any order
	// but with the keys of an object together.
	Stored []durable.Write

	// Catalog has rooms follow what operators set while nodes run; nil: Rooms are all
	// there are, but for those that rest.
	Catalog *Cataloging

	// History says how much is remembered of what happens in rooms; nil: nothing.
	History *history.Config

	// Mesh says of which mesh the node is, as its disk has it; see SetMesh. A record of mesh
	// zero is for simulations and measurements, which have no bootstrap: there Found says
	// that this node mints in all rooms in which nobody does, all that the limits allow.
	Mesh  bootstrap.Disk
	Found bool

	// LeaveOut names rules of rights that are left out, for simulations that show
	// what a rule is for. Nothing but zero is fit for use.
	LeaveOut ticket.Rules
}

// Core is a whole node without network, clock and disk: it is given requests,
// messages, members and the time, and returns messages. Rooms take requests
// from any goroutine; everything else is called by one at a time.
type Core struct {
	self    crdt.Incarnation
	site    string
	name    string
	key     []byte // of owners
	places  []byte // the key of places
	entropy io.Reader
	issued  atomic.Uint64 // number of the newest ticket: each is one ticket of a start, whatever the room
	chances chances       // of visitor ids, unless there is entropy
	replica *replica.Replica
	rooms   map[crdt.RoomID]*Room
	order   []*Room                 // by id, so that the same input gives the same output
	shown   atomic.Pointer[[]*Room] // the same, for Status
	routes  atomic.Pointer[routes]
	stripes stripes
	naps    naps
	builder room.Builder
	in      room.Input     // scratch, of the room that is looked at
	changes []room.Change  // scratch
	over    []ticket.Ended // memory for a room's overHere

	pendings    pendings
	asks        asks[sessionKey]
	redeems     asks[visitKey]
	redemptions []redemption // what owners shall be told at once of passes that waited
	hot         hotCounters
	sites       siteIDs
	lastAsk     *leaders // of the room that was the last to have others than before
	claims      claiming
	ticked      time.Time

	inquiries inquiries
	start     starting
	unheard   time.Time // since when something minted is known from others than who minted it, or was told last
	facts     facts
	deleted   deletedRooms
	strays    strays
	catalog   *cataloged // nil: none is followed
	health    health
	limiter   *limiter
	past      past
	storing   storing
	leave     leaveState

	forgetting forgetting
	downs      downs
	shownDown  atomic.Pointer[[]Down] // as noteDown last had it
	recovered  time.Time              // when it was last looked whether the dead can be recovered from
	factsFull  atomic.Uint64          // facts that were not taken, because there are too many

	factsKnown atomic.Int64 // how many there are, as of the last tick
	found      bool         // as CoreConfig has it
	mesh       meshing
	leaveOut   ticket.Rules

	visits visits
	lately lately
	lost   lost
	slot   uint64 // of the newest message that must not be replaced
	peers  replica.Members
	others atomic.Bool   // there are some; for any goroutine
	gone   []string      // sites whose nodes have all left
	nodes  []crdt.NodeID // of the own site that are ready, self included, sorted

	shownNodes atomic.Pointer[[]crdt.NodeID] // the same, for any goroutine
	sizes      map[string]int                // ready nodes by site, self included
	met        brief                         // when these, or who they are, changed last; zero: no node has been in sight

	open     atomic.Bool // leases are open and requests may come
	openedAt time.Time   // when that was
	swept    time.Time

	refusals refusals
	overflow atomic.Uint64 // as Status has it
}

const (
	viewInterval  = 250 * time.Millisecond // without news; slots also follow from the time
	idleInterval  = 500 * time.Millisecond // the same, of a room with nobody in it; well below viewKept
	stillInterval = 10 * time.Second       // the same, of a room in which nothing has happened for stillAfter
	stillAfter    = 10 * time.Second       // more than rights are moved after by themselves
	viewKept      = time.Second            // what an older view allows, others may have used since
	sweepInterval = 5 * time.Second
)

// NewCore returns a node that knows nobody yet.
func NewCore(cfg CoreConfig) (*Core, error) {
	if cfg.Rand == nil || len(cfg.OwnerKey) == 0 {
		return nil, errors.New("node: Rand and OwnerKey are required")
	}
	c := &Core{
		self: cfg.Self, site: cfg.Site, key: cfg.OwnerKey, entropy: cfg.Entropy, rooms: map[crdt.RoomID]*Room{},
		name: cfg.Name, found: cfg.Found, leaveOut: cfg.LeaveOut,
	}
	c.SetMesh(cfg.Mesh)
	c.places = placeKey(cfg.OwnerKey)
	c.limiter = newLimiter(cfg.LimitMemory, cfg.Self, cfg.Site, cfg.OwnerKey)
	c.stripes.init(c.pendings.hurry)
	c.lastAsk = noLeaders
	if cfg.Key != nil {
		c.start = newStarting(cfg.Key, cfg.Self, c.newVisitor())
	}
	c.health.clockOK.Store(true)
	var err error
	c.replica, err = replica.New(replica.Config{
		Self:       cfg.Self,
		Site:       cfg.Site,
		BucketSpan: c.bucketSpan,
		Retention:  crdt.Retention{Room: c.fading},
		Rand:       cfg.Rand,
		Knows:      c.hasMet,
	})
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if cfg.Catalog != nil {
		c.catalog = &cataloged{Cataloging: *cfg.Catalog, file: cfg.Rooms, limits: cfg.Limits}
	} else {
		c.limiter.follow(cfg.Limits, time.Time{})
	}
	if err := c.takeStored(cfg.Stored, cfg.Rooms); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	if err := c.past.open(cfg.History); err != nil {
		return nil, err
	}
	c.inquiries = inquiries{by: map[crdt.NodeID]inquiry{}, over: cfg.Self.Boot == 1 && !cfg.Named}
	c.pendings.wake = make(chan struct{}, 1)
	c.know(nil)
	return c, nil
}

func (c *Core) bucketSpan(id crdt.RoomID) time.Duration {
	if r := c.rooms[id]; r != nil {
		return r.Settings().BucketSpan
	}
	return 0
}

func (c *Core) fading(id crdt.RoomID) crdt.Fading {
	if r := c.rooms[id]; r != nil {
		return crdt.Fading{Session: max(r.session, r.long), Refresh: r.Settings().RefreshInterval}
	}
	return crdt.Fading{}
}

// Route returns the room of a request, or nil. host is in lower case without a
// port, path is decoded. A suspended room is no room: its requests pass, and
// nothing is counted. Any goroutine may call it.
func (c *Core) Route(host, path string) *Room { return c.routes.Load().find(host, path) }

// placeKey derives the key of places in a queue from that of owners: who learns
// where visitors stand shall know nothing of who counts them.
func placeKey(owner []byte) []byte {
	h, err := blake2b.New256(nil)
	if err != nil {
		panic("node: a hash without a key: " + err.Error())
	}
	h.Write([]byte("ropeline places\x00"))
	h.Write(owner)
	return h.Sum(nil)
}

// newVisitor returns an id that nobody has.
func (c *Core) newVisitor() VisitorID {
	if c.entropy == nil {
		return c.chances.id()
	}
	var id VisitorID
	if _, err := io.ReadFull(c.entropy, id[:]); err != nil {
		panic("node: no visitor id: " + err.Error())
	}
	return id
}

// SetPeers tells which other nodes live. It is called whenever that changes. The
// list may name this node as well. It is kept, and must not be changed; if it is
// in order of id, nodes that are given the same share its memory.
func (c *Core) SetPeers(peers []replica.Peer, now time.Time) {
	members := replica.NewMembers(peers)
	if c.met == 0 && len(members) > 0 || !slices.Equal(c.peers, members) {
		c.met = briefOf(now)
	}
	c.know(members)
	if c.inquiries.since.IsZero() {
		c.inquiries.since = now
	}
	c.replica.SetPeers(members, now)
	c.findLost()
	c.limiter.know(members)
}

// SetGone names the sites whose nodes have all left and said so. They are not
// waited for, as those are that have fallen silent.
func (c *Core) SetGone(sites []string) { c.gone = slices.Clone(sites) }

func (c *Core) know(peers replica.Members) {
	if c.sizes != nil && slices.Equal(c.peers, peers) {
		c.peers = peers
		return // nearly always: the list is looked at every second
	}
	c.peers = peers
	c.others.Store(len(peers) > 0)
	before := c.nodes
	c.nodes = []crdt.NodeID{c.self.Node}
	c.sizes = map[string]int{c.site: 1}
	for _, p := range peers {
		if !p.Ready || p.ID == c.self.Node {
			continue
		}
		c.sizes[p.Site]++
		if p.Site == c.site {
			c.nodes = append(c.nodes, p.ID)
		}
	}
	slices.SortFunc(c.nodes, compareNodes)
	nodes := c.nodes
	c.shownNodes.Store(&nodes)
	if !slices.Equal(c.nodes, before) {
		c.claims.at = time.Time{} // who is new in the site shall hear at once who the counters are
	}
	c.sites.set(c.sizes)
	for _, r := range c.order {
		switch k := r.counters.Load(); {
		case k == nil:
		case k.lost():
			r.hasNews()
		default:
			r.isDue() // another may be the better choice
		}
	}
}

// Ready reports whether the node holds its site's state, so that requests may
// come.
func (c *Core) Ready() bool { return c.open.Load() }

// Tick does what is due and returns what shall be sent. It is called some twenty
// times a second.
func (c *Core) Tick(now time.Time) []Message {
	out := append(c.replicate(c.replica.Tick(now)), c.sendSpreads(now)...)
	if !c.open.Load() {
		out = append(out, c.askForReceipts(now)...)
		if c.lookIfForgotten() || !c.replica.Ready() || !c.answered(now) || c.Conflict() != nil || !c.health.clockOK.Load() {
			return out
		}
		c.openRooms(now)
	}
	c.lookForLost(now)
	c.collect(now)
	c.rouse(now)
	for _, r := range c.up() {
		r.expire(now)
	}
	c.heedFacts(now)
	c.recoverTheDead(now)
	c.noteDown(now)
	out = append(out, c.sendVisits(now)...)
	out = append(out, c.sendRenewals(now)...)
	out = append(out, c.sendEndings(now)...)
	out = append(out, c.sendQuestions(now, true)...)
	c.notePause(now)
	c.lookAtRooms(now)
	c.tickPast(now)
	out = append(out, c.sendRedeems(now, true)...)
	out = append(out, c.tickCounters(now)...)
	out = append(out, c.tickLimits(now)...)
	out = append(out, c.tellOwners()...)
	out = append(out, c.handOver(now)...)
	out = append(out, c.takePastOver(now)...)
	c.forgetDeleted(now)
	out = append(out, c.askForReceipts(now)...)
	if now.Sub(c.swept) >= sweepInterval || now.Before(c.swept) {
		c.swept = now
		c.dropUnused(now)
		c.refusals.forget(now)
		c.dropStrays(now)
		for i := range c.stripes.all {
			c.stripes.all[i].forget(now)
		}
		overflow := c.visits.dropped
		for _, r := range c.order {
			r.forget(now)
			overflow += r.line.Dropped() + r.renewals.Dropped() + r.endings.Dropped()
		}
		c.overflow.Store(overflow)
	}
	c.settleDown(now)
	return out
}

// lastWords returns what shall be sent of what the mesh is told, when nothing else is done any more.
func (c *Core) lastWords(now time.Time) []Message {
	return append(c.replicate(c.replica.Tick(now)), c.sendSpreads(now)...)
}

// openRooms opens the leases once the site's state is there: how many sessions
// an earlier start of this node may have left is part of that state.
func (c *Core) openRooms(now time.Time) {
	if !c.acquainted() {
		c.replica.Rewind(now) // nobody else is there to say what time it is
	}
	c.health.unsure = c.replica.Ahead(now)
	for i, r := range c.order {
		r.open(now)
		r.look(now)
		// With thousands of rooms, not all shall be looked at in the same tick.
		r.viewed = briefOf(now.Add(-time.Duration(i) * tickInterval % r.every()))
	}
	c.keepRooms(now) // who goes on leaving opens none later, and rooms that rest are left, too
	c.goOnLeaving(now)
	c.openedAt = now
	c.tellStart(now)
	c.open.Store(true)
	if c.catalog != nil && !c.leave.on {
		c.bring(now)
	}
}

// collect books what requests have noted since the last time.
func (c *Core) collect(now time.Time) {
	for n := range c.stripes.collect() {
		for i := range n.entered {
			e := &n.entered[i]
			e.room.wake()
			e.room.entered(e, now)
		}
		for _, k := range n.kept {
			k.room.wake()
			end := k.end
			if end.IsZero() {
				end = k.room.openLease(k.new, time.Time{}, k.at, now)
			}
			k.room.replace(k.old, renewal{ticket: k.new, end: end})
		}
		for _, v := range n.polls {
			if v.at.Equal(v.arrival) {
				c.cameHere(v.room, now)
			}
			c.visits.add(v)
		}
		for _, in := range n.checkins {
			if r := c.roused(in.key.room); r != nil {
				r.checkedIn(in, now)
			}
		}
		for _, e := range n.ended {
			e.room.wake()
			e.room.end(e, now)
		}
		for _, x := range n.unused {
			c.redemptions = append(c.redemptions, redemption{number: x.number, key: x.key, word: notUsed})
		}
	}
}
