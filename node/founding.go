package node

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Where rights come from: one node makes those of a room, as many as its limits
// say, and all others hear of it.

// heedFacts has rooms follow what the mesh has been told since the last time.
func (c *Core) heedFacts(now time.Time) {
	c.tellMesh(now)
	c.facts.update()
	if c.facts.news {
		c.takeKnew(now)
		c.noteDeleted(now)
		c.followCatalog(now)
		c.keepRooms(now)
		for _, r := range c.order {
			r.heed(c.facts.room(r.id), now)
		}
		c.facts.news = false
		clear(c.facts.fresh)
		c.recovered = time.Time{} // at once
		c.factsKnown.Store(int64(c.replica.MapLen()))
	}
	c.heedConfigs(now)
	// Facts are read anew once for all rooms: there may be ten thousand.
	if c.foundsNow(now) {
		for _, r := range c.up() {
			r.found(now)
		}
	}
	c.tellUnheard(now)
	c.facts.update()
	for _, r := range c.up() {
		if r.escrow() {
			r.mint(now)
		}
	}
}

// heedConfigs tells the mesh what this node's configuration says of limits, once, and
// how long sessions last, whenever that changes.
func (c *Core) heedConfigs(now time.Time) {
	var told []*Room
	for _, r := range c.up() {
		switch {
		case r.lasts == r.saidLasts && (r.told || !r.escrow()) || c.facts.room(r.id).retired:
		case !r.escrow():
			if r.owns() {
				r.tellLedger(now)
			}
		case r.told:
			r.tell(now)
		default:
			r.told = true
			r.heedConfig(now)
			told = append(told, r)
		}
	}
	if len(told) > 0 {
		c.facts.update()
	}
	for _, r := range told {
		r.heed(c.facts.room(r.id), now)
	}
}

// escrow reports whether rights are the limit of a room.
func (r *Room) escrow() bool { return r.settings.Load().Policy == room.Escrow }

// hasRights reports whether anybody has rights of a room, as far as is known, whatever limits it at this node
// at the moment: a policy may be switched back, and nothing may be lost meanwhile.
func (r *Room) hasRights() bool { return r.escrow() || r.core.facts.room(r.id).kept.any() }

// keepsRights reports whether this node may have something of them to send, or to say.
func (r *Room) keepsRights() bool {
	return r.escrow() || r.held != (ticket.Amount{}) || r.core.facts.room(r.id).kept.has(r.core.self.Node)
}

// heed takes over the limits of a room from the facts, and that it is gone.
func (r *Room) heed(f *roomFacts, now time.Time) {
	if f.retired {
		r.retired.Store(true)
		r.mu.Lock()
		r.rights.Retire()
		r.mu.Unlock()
		r.core.storing.touch(r)
	}
	if r.cataloged {
		return // which says it to this node itself
	}
	s := r.settings.Load()
	longer := r.resting.Load() && f.session > 0 && f.session != s.SessionDuration
	if !r.escrow() || f.limits.IsZero() || f.limits == limitsOf(s) && !longer {
		return
	}
	next := *s
	if longer {
		next.SessionDuration = f.session
	}
	next.TotalActiveUsers, next.NewUsersPerMinute = int(f.limits.Places), int(f.limits.Rate)
	r.settings.Store(&next)
	r.line.SetSettings(&next)
	r.look(now)
}

// heedConfig has it be a change of the limits, for all nodes, when this node's
// configuration says others than it did at the last start. What it says otherwise
// counts only for a room of which nobody knows the limits: a file that is older
// than the last change must not undo it.
func (r *Room) heedConfig(now time.Time) {
	c := r.core
	r.mu.Lock()
	r.lasts = r.lasting()
	r.mu.Unlock()
	if !r.resting.Load() {
		c.setFact(roomKey(factSession, r.id), encodeSession(r.settings.Load().SessionDuration), now)
		last, _, ok := c.facts.replica.Get(roomNodeKey(factTold, r.id, c.self.Node))
		if before, err := decodeSaid(last); ok && err == nil && before.limits != r.configured && !r.cataloged {
			c.setFact(roomKey(factLimits, r.id), encodeAmount(r.configured), now)
		}
	}
	r.tell(now)
}

// Furnished reports whether this node may begin to serve visitors: of every room that
// needs some, its site had rights of both kinds when its view was built, and who the
// counter is has been settled. It is for the goroutine that calls Tick.
func (c *Core) Furnished(now time.Time) bool {
	has := func(s replica.SiteCounts) bool { return s.Own && s.Counts.Held > 0 && s.Counts.HeldRate > 0 }
	return !slices.ContainsFunc(c.order, func(r *Room) bool {
		if !r.escrow() || r.resting.Load() {
			return false
		}
		k := r.counters.Load()
		return k == nil || !k.settled(now) || !slices.ContainsFunc(r.sites, has)
	})
}

func limitsOf(s *room.Settings) ticket.Amount {
	return ticket.Amount{Places: int64(s.TotalActiveUsers), Rate: int64(s.NewUsersPerMinute)}
}

// found makes this node, which mints in the mesh, the minter of a room that has none. A
// room that is made again gets one under all policies: that is how others hear of it.
// So does one whose policy can be changed while nodes run: two that took such a change at
// once would both make its rights.
func (r *Room) found(now time.Time) {
	c := r.core
	if !r.escrow() && !r.again && !r.cataloged || r.resting.Load() {
		return
	}
	if m := &r.minting; m.minter != (crdt.NodeID{}) && m.reading == c.facts.readingOf(r.id) {
		return // nearly always: there is one
	}
	f := c.facts.room(r.id)
	if f.minter != (crdt.NodeID{}) || f.retired {
		return
	}
	c.setFact(roomKey(factMinter, r.id), c.self.Node[:], now)
	if f.limits.IsZero() {
		c.setFact(roomKey(factLimits, r.id), encodeAmount(limitsOf(r.settings.Load())), now)
	}
}

// mint has the rights of a room follow its limits. The limits are those that hold
// now: an event may have others than the operator has written for all days.
func (r *Room) mint(now time.Time) {
	c := r.core
	m := &r.minting
	limit := limitsOf(r.Settings())
	r.mu.Lock()
	if m.reading != c.facts.readingOf(r.id) {
		r.takeOverByFinals(c.facts.room(r.id), now) // who has the minter's rights goes by its last ledger
		*m = c.facts.minting(r, c.self.Node)
	}
	if m.minter == c.self.Node && m.others.IsZero() && r.rights.Minted().IsZero() {
		r.holdBack()
	}
	r.rights.SetLimits(limit, m.others, m.minter, now)
	mine := r.rights.Minted()
	r.minter, r.limit, r.mintedByAll = m.minter, limit, m.others.Add(mine)
	r.mintsFrom = r.rights.MintsFrom(now)
	r.mu.Unlock()
	if mine != m.told {
		c.setFact(roomNodeKey(factMinted, r.id, c.self.Node), encodeAmount(mine), now)
	}
	if c.facts.sites[c.self.Node] != c.site {
		c.setFact(nodeKey(factNode, c.self.Node), []byte(c.site), now)
	}
}

// minting is what the facts say that the minting of a room goes by. It holds as long as
// nothing else is read of the room.
type minting struct {
	reading uint64
	minter  crdt.NodeID
	others  ticket.Amount // minted by all others
	told    ticket.Amount // minted by the node itself, as it has told
}

// minting is called with r.mu held.
func (f *facts) minting(r *Room, self crdt.NodeID) minting {
	of := f.room(r.id)
	return minting{
		reading: f.readingOf(r.id), minter: f.mints(of), others: r.rights.OthersMinted(of.mintedByEach()),
		told: of.by.of(self),
	}
}

// setFact writes a fact. It fails only where the map is full; then this node goes on as
// if it had not known, and Status says so.
func (c *Core) setFact(key string, value []byte, now time.Time) {
	if err := c.facts.set(key, value, now); err != nil {
		c.factsFull.Add(1)
	}
}

// Rights is what a node says of its rights in one room.
type Rights struct {
	Held        ticket.Amount // owned by this node, in use or not
	Free        ticket.Amount // of that, what can be used now
	InUse       int64         // places
	Lent        int64         // of those in use: lent to the counter and not known to be used
	Borrowed    int64         // sessions that go on without a right
	Minted      ticket.Amount // by this node; negative if it burnt more
	MintedByAll ticket.Amount // as far as this node knows
	Limit       ticket.Amount // as this node knows it
	Minter      crdt.NodeID   // who makes them; zero: nobody, as far as this node knows
	InStock     int64         // lent to this node by others, and not used
	Alone       bool          // the counter does not answer
	Retired     bool          // the room is gone for good
	MintsFrom   time.Time     // this node is to make them, and makes none before; zero: at once
}

// Rights returns what this node's rights in the room are; zero until it is ready.
// Any goroutine may call it.
func (r *Room) Rights() Rights {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return Rights{}
	}
	is := Rights{
		Held: r.rights.Held(), Free: r.rights.Free(), InUse: r.rights.InUse(), Lent: r.rights.Lent(),
		Borrowed: r.rights.Borrowed(), Minted: r.rights.Minted(), MintedByAll: r.mintedByAll, Limit: r.limit,
		Minter: r.minter, Retired: r.rights.Retired(), MintsFrom: r.mintsFrom,
	}
	if k := r.counters.Load(); k != nil {
		is.InStock, is.Alone = k.inStock.Load(), k.alone.Load()
	}
	return is
}
