package node

import (
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Rooms in which nothing happens. A node may have ten thousand of them, and the loop comes
// round twenty times a second: it leaves them out until their view is due again or something wakes
// them: a note of a request, a message, news from peers, a fact, settings, an event's edge. What
// is left out would have found nothing to do. A view is due twice a second where nobody is, and every
// stillInterval once nothing has happened for stillAfter: then whatever wakes the room also has its view be built.

// naps says which rooms the loop looks at. The zero value has none.
type naps struct {
	awake []*Room // by id
	woken []*Room // since awake was put together
	read  uint64  // the last reading of the facts that was looked at
	last  brief   // when rouse was last called
	next  brief   // before then nobody has slept enough; zero: not known
	never bool    // for tests: nobody sleeps
	turns turns
}

// turns is how many rooms may still have in this tick what is due with time alone. Whatever concerns all rooms
// at once, as members who come and go do, has all of thousands be due at once, and from then on time after time: some of
// them are passed over, and their turn is with one of the next ticks.
type turns struct {
	views, movers int
}

const (
	// turnsAtLeast is for how many rooms there is no need to take turns.
	turnsAtLeast = 100
	// turnsWithin is with how many ticks each room has its turn.
	turnsWithin = 4
)

// take reports whether a room has its turn, which has been passed over so many times.
func (t *turns) take(left *int, passed uint8) bool {
	*left--
	return *left >= 0 || passed >= turnsWithin
}

// wake has the loop look at a room from now on.
func (r *Room) wake() {
	if r.still {
		r.news = true // its view may be old
	}
	r.getUp()
}

func (r *Room) getUp() {
	if r.nap != 0 {
		r.nap = 0
		r.core.naps.woken = append(r.core.naps.woken, r)
	}
}

// hasNews has the view of a room be built again.
func (r *Room) hasNews() {
	r.news = true
	r.wake()
}

// isDue has the view of a room be built again with its next turn.
func (r *Room) isDue() {
	r.dated = true
	r.getUp()
}

// lookAtRooms builds the views that are not fresh any more. Those of rooms that have news do not wait.
func (c *Core) lookAtRooms(now time.Time) {
	n := max(turnsAtLeast, len(c.order)/turnsWithin)
	c.naps.turns = turns{views: n, movers: n}
	for _, r := range c.up() {
		switch {
		case !r.stale(now):
		case !r.news && !r.eventOver(now) && !c.naps.turns.take(&c.naps.turns.views, r.passed):
			r.passed++
		default:
			r.look(now)
		}
	}
}

// roused returns a room that something has come for; nil: there is none.
func (c *Core) roused(id crdt.RoomID) *Room {
	r := c.rooms[id]
	if r != nil {
		r.wake()
	}
	return r
}

// wakeAll has the loop look at all rooms: something has changed that may concern them all.
func (c *Core) wakeAll() {
	for i, r := range c.order {
		r.nap = 0
		if r.still { // to be looked at as soon as others, and like these not all at once
			r.viewed = briefOf(c.ticked.Add(-stillInterval + time.Duration(i)*tickInterval%idleInterval))
		}
	}
	c.naps.awake, c.naps.woken, c.naps.read = append(c.naps.awake[:0], c.order...), c.naps.woken[:0], c.facts.reading
	c.naps.next = 0
}

// wakeTold has the loop look at the rooms of which there are new facts.
func (c *Core) wakeTold() {
	n := &c.naps
	if n.read == c.facts.reading {
		return
	}
	since := n.read
	if n.read = c.facts.reading; c.facts.nodes > since {
		c.wakeAll()
		return
	}
	for _, r := range c.order {
		if c.facts.room(r.id).reading > since {
			r.wake()
		}
	}
}

// rouse wakes who has slept enough.
func (c *Core) rouse(now time.Time) {
	n := &c.naps
	c.wakeTold()
	at := briefOf(now)
	if at >= n.last && at < n.next && len(n.woken) == 0 {
		n.awake, n.last = n.awake[:0], at
		return
	}
	n.awake, n.woken, n.last, n.next = n.awake[:0], n.woken[:0], at, math.MaxInt64
	for _, r := range c.order {
		if r.news || r.dated || at >= r.nap || at < r.viewed {
			r.nap = 0
			n.awake = append(n.awake, r)
		} else {
			n.next = min(n.next, r.nap)
		}
	}
}

// up returns the rooms that are awake, in order of id. What it returns is good until it is
// called again.
func (c *Core) up() []*Room {
	n := &c.naps
	c.wakeTold()
	if len(n.woken) > 0 {
		n.awake = append(n.awake, n.woken...)
		n.woken = n.woken[:0]
		slices.SortFunc(n.awake, func(a, b *Room) int { return a.id.Compare(b.id) })
		n.awake = slices.Compact(n.awake) // who was put to sleep since and woken again
	}
	return n.awake
}

// settleDown has rooms sleep in which there is nothing to do until their views are built
// anew. It is called at the end of a tick.
func (c *Core) settleDown(now time.Time) {
	n := &c.naps
	if n.never || c.leave.on || !c.fit() {
		n.next = 0
		return
	}
	for _, r := range c.up() {
		if !r.quiet(now) {
			n.next = 0
			continue
		}
		r.nap = briefOf(r.viewed.time().Add(r.every()))
		r.notLaterThan(r.until)
		if k := r.counters.Load(); len(c.peers) > 0 && k != nil && k.loop.supply != nil {
			if k.leads() {
				r.notLaterThan(briefOf(k.loop.supply.moved.time().Add(r.movesEvery()))) // others may have rights, and want some
			}
			r.notLaterThan(briefOf(k.loop.supply.lenders.time().Add(r.movesEvery())))
		}
		n.next = min(n.next, r.nap)
	}
}

// notLaterThan has a room wake at a time, if it sleeps for longer; zero: there is none.
func (r *Room) notLaterThan(at brief) {
	if at != 0 && at < r.nap {
		r.nap = at
	}
}

// quiet reports whether nothing in a room goes on by itself: nobody is in it, and nobody
// is on the way in or out.
func (r *Room) quiet(now time.Time) bool {
	if r.news || r.dated || !r.idle || r.busy || r.came > 0 ||
		r.keepsRights() && r.lasts != r.saidLasts || r.escrow() && !r.told || r.line.Len() > 0 || r.renewals.Len() > 0 || r.endings.Len() > 0 || len(r.stranded) > 0 {
		return false
	}
	for c := range classes {
		if r.used[c].Load() != r.collected[c] {
			return false
		}
	}
	if k := r.counters.Load(); k != nil && !k.quiet() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.escrow() && r.limit != limitsOf(r.Settings()) {
		return false // an event has begun or ended, and mint has not heard of it
	}
	return r.rights.Quiet(now) && r.delta.P|r.delta.N == 0 && len(r.overHere) == 0
}

// quiet is Room.quiet for what the counters do.
func (k *counters) quiet() bool {
	l := &k.loop
	if l.accounts.Waiting() > 0 || !l.accounts.Idle() || len(l.leaving.lately) > 0 || l.handed != nil ||
		!l.stock.Idle() || l.supply != nil && (len(l.supply.parked) > 0 || len(l.supply.unused) > 0) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.desks {
		if !d.Idle() {
			return false
		}
	}
	return len(k.own) == 0 && !k.hot
}
