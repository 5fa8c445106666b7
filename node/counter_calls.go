package node

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// The counters of the rooms, as the loop sees them: who they are, what this node
// asks them, and what it grants where it is one itself.

// nearNews is how long a new counter grants nothing in its own site: what the
// last one granted must show in the counts by then. A grant is taken up within
// ticket.CallTimeout, booked within a tick, and in all rows of the site with the
// next push. From other sites it takes ticket.FarNews.
const nearNews = time.Second

// claimInterval is how often a counter says that it is the one.
const claimInterval = time.Second

// siteIDs names sites by ids of their own, so that one of them can be chosen
// like a node.
type siteIDs struct {
	names []string
	ids   []crdt.NodeID // in order of names
}

func (s *siteIDs) set(sizes map[string]int) {
	names := slices.Sorted(maps.Keys(sizes))
	if slices.Equal(names, s.names) {
		return
	}
	s.names, s.ids = names, make([]crdt.NodeID, len(names))
	for i, name := range names {
		sum := sha256.Sum256([]byte("site\x00" + name))
		s.ids[i] = crdt.NodeID(sum[:16])
	}
}

func (s *siteIDs) choose(key []byte, id crdt.RoomID) string {
	best := room.Owner(key, id, VisitorID{}, s.ids)
	return s.names[slices.Index(s.ids, best)]
}

// wantCounters has a room keep counters from now on if its policy needs them,
// and says whose tickets its next view gives.
func (r *Room) wantCounters(policy room.Policy, now time.Time) *counters {
	k := r.counters.Load()
	if policy != room.Counter {
		if k != nil {
			k.retire()
		}
		return nil
	}
	if k == nil {
		k = &counters{room: r}
		r.counters.Store(k)
	}
	k.choose(now)
	return k
}

// retire has this node lead no longer. Who still waits at a desk is answered by
// the next Tick, as nobody is there to ask.
func (k *counters) retire() {
	l := &k.loop
	l.lead.Drop()
	l.accounts.Forget()
	l.since, l.ask, l.far = [ticket.Scopes]time.Time{}, [ticket.Scopes]crdt.NodeID{}, crdt.NodeID{}
}

// choose works out who the counters are by now.
func (k *counters) choose(now time.Time) {
	c, l := k.room.core, &k.loop
	before := l.lead.Claim()
	first := room.Owner(c.key, k.room.id, VisitorID{}, c.nodes)
	near := l.lead.Choose(c.self, first, c.mate, now)
	if mine := l.lead.Claim(); mine.Holder == c.self && mine != before {
		c.claims = time.Time{} // the others shall hear of it at once
	}
	l.ask[ticket.SiteCounter] = near
	if site := c.sites.choose(c.key, k.room.id); site == c.site {
		l.ask[ticket.AnywhereCounter] = near
	} else {
		l.ask[ticket.AnywhereCounter] = k.chooseFar(site)
	}
	for s, node := range l.ask {
		switch {
		case node != c.self.Node:
			l.since[s] = time.Time{}
		case l.since[s].IsZero():
			l.since[s] = now
		}
	}
	if near != c.self.Node {
		l.accounts.Forget()
	}
}

// chooseFar returns whom to ask in another site: who is said to be the counter
// there, else whom nodes of that site would ask first.
func (k *counters) chooseFar(site string) crdt.NodeID {
	c, l := k.room.core, &k.loop
	if p, ok := c.peers.Find(l.far); ok && p.Ready && p.Site == site {
		return l.far
	}
	var nodes []crdt.NodeID
	for _, p := range c.peers {
		if p.Ready && p.Site == site {
			nodes = append(nodes, p.ID)
		}
	}
	l.far = room.Owner(c.key, k.room.id, VisitorID{}, nodes)
	return l.far
}

// mate reports whether another node of the site is ready, in that incarnation.
func (c *Core) mate(inc crdt.Incarnation) bool {
	p, ok := c.peers.Find(inc.Node)
	return ok && p.Ready && p.Site == c.site && p.Boot == inc.Boot
}

// holdsBack reports whether this node grants nothing: it is not the counter, or
// has not been for long.
func (k *counters) holdsBack(s ticket.Scope, now time.Time) bool {
	since, hold := k.loop.since[s], nearNews
	if s == ticket.AnywhereCounter && len(k.room.core.sizes) > 1 {
		hold = ticket.FarNews
	}
	return since.IsZero() || now.Sub(since) < hold
}

// paused has this node hold back as a new counter does, after a gap in which
// others may have taken over.
func (k *counters) paused(now time.Time) {
	c, l := k.room.core, &k.loop
	if !l.lead.Restart(c.self, now) {
		return
	}
	c.claims = time.Time{}
	for s := range l.since {
		if !l.since[s].IsZero() {
			l.since[s] = now
		}
	}
}

// notePause notices that the loop stood still.
func (c *Core) notePause(now time.Time) {
	if gap := now.Sub(c.ticked); !c.ticked.IsZero() && gap > viewKept {
		for _, r := range c.order {
			if k := r.counters.Load(); k != nil {
				k.paused(now)
			}
		}
	}
	c.ticked = now
}

// sendCalls returns the calls that are due at the desks of one room, and answers
// whoever waits for nobody.
func (k *counters) sendCalls(now time.Time) []Message {
	var out []Message
	for s := range ticket.Scopes {
		to := k.loop.ask[s]
		self := k.room.core.self.Node
		k.mu.Lock()
		d := &k.desks[s]
		lost := d.GiveUp(now)
		var left []ticket.Applicant[pending]
		if to == self || to == (crdt.NodeID{}) {
			left = d.Drain()
		}
		call, ok := ticket.Call{}, false
		if to != self && to != (crdt.NodeID{}) {
			call, ok = d.Next(to, now)
		}
		k.remember(s)
		k.mu.Unlock()
		if ok {
			call.Room, call.Scope = k.room.id, s
			c := k.room.core
			c.slot++
			out = append(out, Message{To: to, Kind: kindCall, Slot: c.slot, Payload: ticket.AppendCall(nil, call)})
		}
		for _, a := range lost {
			k.room.core.settle(a.Who, k.room.wait(k.room.view.Load(), a.Who.pass, a.Who.at), nothing, now)
		}
		k.serve(left, s, to == self, now)
	}
	return out
}

// serve answers applicants here: with tickets if this node is the counter by
// now, else by having them wait.
func (k *counters) serve(left []ticket.Applicant[pending], s ticket.Scope, self bool, now time.Time) {
	for _, a := range left {
		c := classOf(s, a.Reserved)
		if self && k.room.takeSome(k.room.view.Load(), c, 1, now) == 1 {
			k.room.core.settle(a.Who, k.room.enterWith(c, false, a.Who.pass, now), nothing, now)
			continue
		}
		k.applied(a, c, false, now)
	}
}

func classOf(s ticket.Scope, waited bool) class {
	switch {
	case s == ticket.AnywhereCounter:
		return anywhere
	case waited:
		return reserved
	}
	return contested
}

// remember publishes until when a desk refuses. mu is held.
func (k *counters) remember(s ticket.Scope) {
	for _, waited := range []bool{true, false} {
		k.until[classOf(s, waited)].Store(k.desks[s].RefusedUntil(waited).UnixNano())
	}
}

// sendHot returns the calls of those counters at which somebody has applied.
func (c *Core) sendHot(now time.Time) []Message {
	var out []Message
	for _, k := range c.hot.take() {
		k.mu.Lock()
		k.hot = false
		k.mu.Unlock()
		out = append(out, k.sendCalls(now)...)
	}
	return out
}

// tickCounters returns what is due at all counters.
func (c *Core) tickCounters(now time.Time) []Message {
	out := c.sendHot(now)
	led := false
	for _, r := range c.order {
		if k := r.counters.Load(); k != nil {
			out = append(out, k.sendCalls(now)...)
			led = led || k.loop.lead.Claim().Holder == c.self
		}
	}
	if led && now.Sub(c.claims) >= claimInterval {
		c.claims = now
		out = append(out, c.sendClaims()...)
	}
	return out
}

// takeCall answers a call for tickets of this node. Only the own site may ask
// its counter.
func (c *Core) takeCall(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	call, err := ticket.DecodeCall(payload)
	if err != nil {
		return nil, err
	}
	r := c.rooms[call.Room]
	switch {
	case r == nil:
		return nil, fmt.Errorf("%w: call for room %s", errMalformed, call.Room)
	case call.Scope == ticket.SiteCounter && from.Site != c.site:
		return nil, fmt.Errorf("%w: call for the counter of site %q from site %q", errMalformed, c.site, from.Site)
	case !c.open.Load():
		return nil, nil // not answered: it is asked again, or another is
	}
	g, ok := r.grant(from, call, now)
	if !ok {
		return nil, nil
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindGrant, Slot: c.slot, Payload: ticket.AppendGrant(nil, g)}}, nil
}

// grant works out the answer to a call.
func (r *Room) grant(from replica.Peer, call ticket.Call, now time.Time) (ticket.Grant, bool) {
	k := r.counters.Load()
	if k == nil || k.loop.since[call.Scope].IsZero() {
		g := ticket.Grant{Room: call.Room, Scope: call.Scope, Number: call.Number, Retry: viewInterval}
		if k != nil {
			g.Leader = k.loop.ask[call.Scope]
		}
		return g, true
	}
	w := r.view.Load()
	r.news = true // what is reckoned with changes
	return k.loop.accounts.Answer(crdt.Incarnation{Node: from.ID, Boot: from.Boot}, from.Site, call, func(want ticket.Places) (got ticket.Places, retry time.Duration) {
		if call.Scope == ticket.AnywhereCounter {
			got.Contested = r.lend(w, anywhere, want.Contested, now)
		} else {
			got.Reserved = r.lend(w, reserved, want.Reserved, now)
			got.Contested = r.lend(w, contested, want.Contested, now)
		}
		// The next view is built at the latest by then. Counts may bring it sooner,
		// hence not shorter than a tick.
		return got, max(tickInterval, min(r.viewed.Add(viewInterval).Sub(now), viewInterval))
	}, now)
}

// lend takes tickets of a class for another node, whose account tells what
// becomes of them.
func (r *Room) lend(w *view, c class, n int, now time.Time) int {
	n = r.takeSome(w, c, n, now)
	r.collected[c] += int64(n)
	return n
}

// takeGrant hands the tickets of a grant to the applicants.
func (c *Core) takeGrant(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	g, err := ticket.DecodeGrant(payload)
	if err != nil {
		return nil, err
	}
	r := c.rooms[g.Room]
	if r == nil {
		return nil, fmt.Errorf("%w: grant for room %s", errMalformed, g.Room)
	}
	k := r.counters.Load()
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	in, out, err := k.desks[g.Scope].Granted(from.ID, g, now)
	k.remember(g.Scope)
	k.mu.Unlock()
	switch err {
	case nil:
	case ticket.ErrNotAsked:
		return nil, nil // late, or twice
	default:
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	for _, a := range in {
		k.applied(a, classOf(g.Scope, a.Reserved), true, now)
	}
	for _, a := range out {
		k.applied(a, classOf(g.Scope, a.Reserved), false, now)
	}
	if g.Leader != (crdt.NodeID{}) && g.Scope == ticket.AnywhereCounter {
		k.loop.far = g.Leader
		r.news = true
	}
	return k.sendCalls(now), nil // who applied meanwhile goes at once
}

// sendClaims tells the site which counters this node is.
func (c *Core) sendClaims() []Message {
	var claims []ticket.RoomClaim
	for _, r := range c.order {
		if k := r.counters.Load(); k != nil && k.loop.lead.Claim().Holder == c.self {
			claims = append(claims, ticket.RoomClaim{Room: r.id, Since: k.loop.lead.Claim().Since})
		}
	}
	var out []Message
	for part := range slices.Chunk(claims, ticket.MaxBatch) {
		payload := ticket.AppendClaims(nil, part)
		for _, id := range c.nodes {
			if id != c.self.Node {
				c.slot++
				out = append(out, Message{To: id, Kind: kindClaims, Slot: c.slot, Payload: payload})
			}
		}
	}
	return out
}

// takeClaims hears who is the counter of which rooms. Whoever claims what this
// node has claimed before is told so.
func (c *Core) takeClaims(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	claims, err := ticket.DecodeClaims(payload)
	if err != nil {
		return nil, err
	}
	if from.Site != c.site {
		return nil, fmt.Errorf("%w: claims to the counters of site %q from site %q", errMalformed, c.site, from.Site)
	}
	holder := crdt.Incarnation{Node: from.ID, Boot: from.Boot}
	if !c.mate(holder) {
		return nil, nil // not heard of yet: it says so again
	}
	var better []ticket.RoomClaim
	for _, claim := range claims {
		r := c.rooms[claim.Room]
		if r == nil || r.counters.Load() == nil {
			continue
		}
		l := &r.counters.Load().loop
		mine := l.lead.Claim()
		switch ok := l.lead.Hear(ticket.Claim{Holder: holder, Since: claim.Since}); {
		case ok && mine.Holder == c.self:
			r.look(now) // this node grants nothing from here on
		case ok:
			r.news = r.news || mine.Holder != holder
		case mine.Holder == c.self:
			better = append(better, ticket.RoomClaim{Room: r.id, Since: mine.Since})
		}
	}
	if len(better) == 0 {
		return nil, nil
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindClaims, Slot: c.slot, Payload: ticket.AppendClaims(nil, better)}}, nil
}

// lent returns by site how many of this node's tickets other nodes were granted
// that the counts do not show yet.
func (r *Room) lent(now time.Time) map[string]int {
	k := r.counters.Load()
	if k == nil {
		return nil
	}
	return k.loop.accounts.Pending(r.core.site, r.core.replica.Known, now)
}
