package node

import (
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/catalog"
	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// How rooms follow what operators set while nodes run.

// Cataloging has rooms follow the catalog, which all nodes share, instead of this node's
// configuration alone. Rooms of the configuration are brought into the catalog when a node
// starts; see catalog.Catalog.Bring. Fields may be nil.
type Cataloging struct {
	// Check says what else is to hold of a room, as whoever serves it sees it. It has to
	// say the same of the same settings at all nodes.
	Check func(*room.Settings) error
	// Follow is told of all rooms that are run, and of what was left out of them, before
	// requests are decided by the new settings. The loop calls it, and waits for it.
	Follow func([]room.Settings, []catalog.Refusal)

	// CheckLimit and FollowLimits are the same for rate limit rules. Core.Meter has what counts
	// for them already when FollowLimits is called.
	CheckLimit   catalog.LimitCheck
	FollowLimits func([]limit.Rule, []catalog.Refusal)
}

// cataloged is the state of a Cataloging.
type cataloged struct {
	Cataloging
	file   []room.Settings // as the configuration has them
	limits []limit.Rule    // the same

	begun   bool
	mark    uint64 // the reading of the facts that it is of
	at      uint64 // how far the map was read by then
	effects *catalog.Effects
	read    atomic.Pointer[catalog.Catalog]
	refused atomic.Pointer[[]catalog.Refusal]
	left    []string // names of rooms that the configuration had at the last start, and has no more

	looked  time.Time            // when dropUnused last did
	unused  map[string]time.Time // what it saw then, and since when
	orphans bool                 // some of that is of nodes that exist no more
}

// Why a node takes no change of the catalog.
var (
	// ErrNoCatalog says that its rooms are those of its configuration.
	ErrNoCatalog = errors.New("the rooms of this node are not in the catalog, and cannot be changed while it runs")
	// ErrClock says that the clock of this node is off: others would not believe when a change was made.
	ErrClock = errors.New("the clock of this node differs from those of its peers by more than 400 ms; ask another one")
	// ErrTime says that it is not known whether this clock is behind or the one of an earlier start was ahead: what was
	// changed now would win over what others change for as long as that one was ahead.
	ErrTime = errors.New("what this node wrote before it was started is of a time to come by its clock, and it reaches no node that could tell which is wrong; ask another one, or wait until it reaches one")
	// ErrLeaving says that it passes its rights on, and then ends.
	ErrLeaving = errors.New("this node is leaving the mesh; ask another one")
	// ErrMapFull says that what is new has no room beside what all nodes know. Changes of what there is have,
	// unless they make pages of megabytes longer.
	ErrMapFull = fmt.Errorf("%w: there is no room for anything new beside what the nodes of this mesh have agreed on; what there is can be changed and deleted. "+
		"Delete rooms, events, rules and pages that nobody needs, or begin another mesh", crdt.ErrFull)
)

// Catalog returns what operators have set, as this node knows it; nil before it has opened,
// or if it follows no catalog. Any goroutine may call it.
func (c *Core) Catalog() *catalog.Catalog {
	if c.catalog == nil {
		return nil
	}
	return c.catalog.read.Load()
}

// brought returns what this node's configuration writes into the catalog cat.
func (c *Core) brought(cat *catalog.Catalog, now time.Time) (out []catalog.Write) {
	for _, s := range c.catalog.file {
		name := s.ID // under which it is remembered, whatever it is called by now
		s.ID = c.facts.current(name)
		b := catalog.FileRoom(catalog.DefaultZone, "", s, now)
		before, says := catalog.ReadPrints(c.replica, name, c.self.Node), catalog.PrintsOf(b)
		var retired *catalog.Room
		deleted := cat.Deleted(s.ID)
		for id := name; id != s.ID; id = successor(id) {
			if r := cat.Room(id); r != nil {
				retired = r
			}
			deleted = deleted || cat.Deleted(id)
		}
		is := cat.Bring(b, before)
		switch {
		case s.ID == name || cat.Room(s.ID) != nil:
		case !c.mintsMesh() || before == nil && retired == nil && deleted:
			is = nil // whoever mints in the mesh makes it again, unless it has only now heard of all
		case retired != nil:
			out = append(out, cat.Writes(retired, nil)...)
			is = b
		}
		if is != nil {
			out = append(out, cat.Writes(cat.Room(s.ID), is)...)
		}
		out = append(out, says.Remember(before, name, c.self.Node)...)
	}
	return append(out, c.broughtLimits(cat, now)...)
}

// broughtLimits is brought for rate limits.
func (c *Core) broughtLimits(cat *catalog.Catalog, now time.Time) []catalog.Write {
	brought := catalog.FileLimits(c.catalog.limits, now)
	before, says := catalog.ReadLimitPrints(c.replica, c.self.Node), catalog.LimitPrints(brought)
	out := cat.LimitWrites(cat.RateLimits(), cat.BringLimits(brought, before))
	return append(out, catalog.RememberLimits(says, before, c.self.Node)...)
}

// overlay is a map in which writes have been made that are not.
type overlay struct {
	catalog.Map
	writes map[string][]byte
}

func (o overlay) Get(key string) ([]byte, crdt.Stamp, bool) {
	if v, ok := o.writes[key]; ok {
		return v, crdt.Stamp{}, v != nil
	}
	return o.Map.Get(key)
}

func (o overlay) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range o.Map.Keys() {
			if _, ok := o.writes[key]; !ok && !yield(key) {
				return
			}
		}
		for key, v := range o.writes {
			if v != nil && !yield(key) {
				return
			}
		}
	}
}

func (o overlay) KeysWith(id [16]byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range o.Map.KeysWith(id) {
			if _, ok := o.writes[key]; !ok && !yield(key) {
				return
			}
		}
		for key, v := range o.writes {
			_, rest, _ := strings.Cut(key, "/")
			if name, _, _ := strings.Cut(rest, "/"); v != nil && name == hex.EncodeToString(id[:]) && !yield(key) {
				return
			}
		}
	}
}

// startRooms returns the rooms that a node starts with: those it had at its last start,
// and what its configuration brings. It writes nothing yet.
func (c *Core) startRooms() []room.Settings {
	o := overlay{c.replica, map[string][]byte{}}
	for _, w := range c.brought(catalog.Read(c.replica), time.Time{}) {
		o.writes[w.Key] = w.Value
	}
	all, _ := catalog.Read(o).Effective(c.catalog.Check)
	return all
}

// bring writes into the catalog what this node's configuration has of it. It is called
// once, when the node opens and so knows what its peers do.
func (c *Core) bring(now time.Time) {
	c.facts.update()
	was := catalog.Read(c.replica).By(c.self.Node, c.replica.Written())
	if err := c.writeCatalog(nil, c.brought(was, now), crdt.Change, now); err != nil {
		c.factsFull.Add(1)
		return
	}
	is := catalog.Read(c.replica)
	c.tellRooms(was, is, now)
	defer func() { c.catalog.file, c.catalog.limits = nil, nil }() // from now on the catalog has it
	file := map[crdt.RoomID]bool{}
	for _, s := range c.catalog.file {
		file[s.ID] = true
	}
	for r := range is.Rooms() {
		if id := r.Settings.ID; !file[id] && catalog.ReadPrints(c.replica, id, c.self.Node) != nil {
			c.catalog.left = append(c.catalog.left, r.Settings.Name)
		}
	}
}

// writeCatalog tells the mesh what is written into the catalog, and some facts before that: all or, after an error, nothing.
func (c *Core) writeCatalog(before []crdt.Write, writes []catalog.Write, as crdt.Weight, now time.Time) error {
	all := slices.Clone(before)
	for _, w := range writes {
		if !catalog.IsKey(w.Key) {
			return fmt.Errorf("key %q is none of a catalog's", w.Key)
		}
		all = append(all, crdt.Write{Key: w.Key, Value: w.Value})
	}
	return c.replica.SetAll(all, as, now)
}

// tellRooms has the mesh know the limits of the rooms that have changed from one catalog
// to another: nodes that only keep rights go by these.
func (c *Core) tellRooms(was, is *catalog.Catalog, now time.Time) {
	for r := range is.Rooms() {
		s := &r.Settings
		if before := was.Room(s.ID); before == nil || limitsOf(&before.Settings) != limitsOf(s) {
			c.setFact(roomKey(factLimits, s.ID), encodeAmount(limitsOf(s)), now)
		}
	}
}

// Edit has operators change the catalog: edit is given the newest that this node knows,
// and returns what is to be written. Its error is returned as it is, and nothing is
// written then. This node makes the rights of a room that it adds. A room that is deleted
// is retired. As long as Noted does not say that all this is on disk, a crash may undo it.
func (c *Core) Edit(edit func(*catalog.Catalog) ([]catalog.Write, error), now time.Time) error {
	switch {
	case c.catalog == nil:
		return ErrNoCatalog
	case !c.open.Load():
		return ErrNotReady
	case c.leave.on:
		return ErrLeaving
	case !c.health.clockOK.Load():
		return ErrClock
	case c.health.unsure && c.replica.Ahead(now):
		return ErrTime
	}
	c.heedFacts(now)
	was := c.catalog.read.Load()
	writes, err := edit(was.By(c.self.Node, c.replica.Written()))
	if err != nil || len(writes) == 0 {
		return err
	}
	o := overlay{c.replica, map[string][]byte{}}
	for _, w := range writes {
		o.writes[w.Key] = w.Value
	}
	is := was.Update(o, maps.Keys(o.writes))
	// Who hears that a room stands nowhere any more shall know already that it was deleted: another
	// one may be made there at once.
	var before []crdt.Write
	for r := range was.Rooms() {
		if id := r.Settings.ID; is.Room(id) == nil && !c.facts.room(id).retired {
			before = append(before, crdt.Write{Key: roomKey(factRetired, id), Value: []byte{factVersion}})
		}
	}
	// Who hears of a room shall know already who makes its rights. Its id is random, so that
	// nobody else adds it. Of a room that there is already the mesh's minter is who makes
	// them: two nodes may be told at once to switch its policy.
	for r := range is.Rooms() {
		if id := r.Settings.ID; was.Room(id) == nil && c.facts.room(id).minter == (crdt.NodeID{}) {
			before = append(before, crdt.Write{Key: roomKey(factMinter, id), Value: c.self.Node[:]})
		}
	}
	weight := crdt.Change
	if is.Adds(was) {
		weight = crdt.New
	}
	if err := c.writeCatalog(before, writes, weight, now); errors.Is(err, crdt.ErrFull) {
		return ErrMapFull
	} else if err != nil {
		return fmt.Errorf("node: edit rooms: %w", err)
	}
	c.tellRooms(was, is, now)
	c.heedFacts(now)
	return nil
}

// followCatalog has rooms be what the catalog says, if that has changed.
func (c *Core) followCatalog(now time.Time) {
	k := c.catalog
	if k == nil || !c.open.Load() {
		return
	}
	if k.begun && k.mark == c.facts.catalog {
		k.at = max(k.at, c.facts.at) // what has come since is not of the catalog, and is not to be looked at with the next change
		return
	}
	at := c.replica.MapChanges()
	var read *catalog.Catalog
	if k.begun {
		read = k.read.Load().Update(c.replica, c.replica.MapChanged(k.at))
	} else {
		read = catalog.Read(c.replica)
	}
	k.begun, k.mark, k.at = true, c.facts.catalog, at
	if c.leave.on { // who leaves takes nothing up any more, and shows operators what there is
		k.read.Store(read)
		return
	}
	same := map[*room.Settings]bool{}
	if k.effects != nil {
		for _, s := range k.effects.Running {
			same[s] = true
		}
	}
	k.effects = read.Effects(k.effects, k.Check)
	running := k.effects.Running
	refused := slices.Clone(k.effects.Refused)
	if k.Follow != nil {
		all := make([]room.Settings, len(running))
		for i, s := range running {
			all[i] = *s
		}
		k.Follow(all, refused)
	}
	refused = append(refused, c.followLimits(read, now)...)
	k.read.Store(read)
	k.refused.Store(&refused)
	c.followRooms(running, same, now)
}

// followRooms has rooms be run by these settings, and no others be run. Those that are the same as before are left alone.
func (c *Core) followRooms(running []*room.Settings, same map[*room.Settings]bool, now time.Time) {
	rooms := maps.Clone(c.rooms)
	wanted := make(map[crdt.RoomID]bool, len(running))
	var fresh, over []*Room
	for _, s := range running {
		wanted[s.ID] = true
		r := rooms[s.ID]
		switch {
		case r == nil:
			r = newRoom(c, *s)
			r.cataloged = true
			rooms[s.ID] = r
			fresh = append(fresh, r)
		case same[s] && r.cataloged && !r.resting.Load():
			continue
		default:
			r.follow(*s, now)
		}
		r.shareSettings(s)
	}
	for _, r := range c.order {
		switch {
		case wanted[r.id] || r.resting.Load():
		case c.facts.room(r.id).lives():
			r.rest()
		default:
			delete(rooms, r.id)
			over = append(over, r)
		}
	}
	c.setRooms(rooms)
	slices.SortFunc(fresh, func(a, b *Room) int { return a.id.Compare(b.id) })
	for _, r := range fresh {
		r.open(now)
		r.look(now)
	}
	for _, r := range over {
		r.abandon(now)
	}
}

// followLimits has the rate limit rules be what the catalog says, and returns what of that
// does not hold.
func (c *Core) followLimits(read *catalog.Catalog, now time.Time) []catalog.Refusal {
	rules, refused := read.EffectiveLimits(c.catalog.CheckLimit)
	c.limiter.follow(rules, now)
	if c.catalog.FollowLimits != nil {
		c.catalog.FollowLimits(rules, refused)
	}
	return refused
}

// follow has a room that is kept be as the catalog says.
func (r *Room) follow(s room.Settings, now time.Time) {
	r.cataloged = true
	if r.resting.Load() {
		r.resting.Store(false)
		r.told = false
	} else if reflect.DeepEqual(*r.settings.Load(), s) {
		return
	}
	r.configure(s, now)
}

// shareSettings has a room keep no settings of its own where the catalog keeps the same:
// nobody changes either.
func (r *Room) shareSettings(s *room.Settings) {
	if reflect.DeepEqual(*r.settings.Load(), *s) {
		r.settings.Store(s)
		r.line.SetSettings(s)
	}
}

// rest has a room take no requests any more, and keep its rights.
func (r *Room) rest() {
	s := restingSettings(r.id, r.core.facts.room(r.id))
	r.cataloged, r.told = false, false
	r.resting.Store(true)
	r.settings.Store(&s)
	r.line.SetSettings(&s)
	r.hasNews()
}
