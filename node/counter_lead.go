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

// Who the counters of the rooms are, and who they say they are.

// nearNews is how long a new counter grants nothing in its own site: what the
// last one granted must show in the counts by then. A grant is taken up within
// ticket.CallTimeout, booked within a tick, and in all rows of the site with the
// next push. From other sites it takes ticket.FarNews.
const nearNews = time.Second

// leadSettles is how long a node that takes itself for a counter may be wrong, because
// it has not heard yet of the one that there is: its site has to see that it is ready,
// and to answer.
const leadSettles = 500 * time.Millisecond

const (
	// claimInterval is how often a counter says that it is the one.
	claimInterval = time.Second
	// claimStill is the same, of a room in which all is still.
	claimStill = 5 * time.Second
)

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

func (s *siteIDs) choose(by room.Chooser) string {
	best := by.Of(s.ids)
	return s.names[slices.Index(s.ids, best)]
}

// wantCounters has a room keep counters from now on if its policy needs them,
// and says whose tickets its next view gives.
func (r *Room) wantCounters(policy room.Policy, now time.Time) *counters {
	k := r.counters.Load()
	if policy != room.Counter && policy != room.Escrow {
		if k != nil {
			k.retire()
		}
		return nil
	}
	if k == nil {
		k = &counters{room: r}
		k.loop.ask = noLeaders
		r.counters.Store(k)
	}
	k.setByRights(policy == room.Escrow)
	k.choose(now)
	return k
}

// retire has this node lead no longer. Who still waits at a desk is answered by
// the next Tick, as nobody is there to ask.
func (k *counters) retire() {
	l := &k.loop
	l.lead.Drop()
	l.handed = nil
	l.accounts.Forget()
	l.since, l.ask, l.far = [ticket.Scopes]brief{}, noLeaders, crdt.NodeID{}
	if l.supply != nil {
		k.mu.Lock()
		k.here = false
		for _, p := range k.arrived(k.takeParked()) {
			k.desk(ticket.SiteCounter).Apply(p.applicant)
		}
		k.mu.Unlock()
		l.supply = nil
	}
}

// shareLeaders returns leaders in memory that a room has already, or the one before it.
func (c *Core) shareLeaders(was *leaders, is leaders) *leaders {
	if *was != is {
		if *c.lastAsk != is {
			fresh := is // is itself shall need no memory: nearly always nothing has changed
			c.lastAsk = &fresh
		}
		return c.lastAsk
	}
	return was
}

// choose works out who the counters are by now.
func (k *counters) choose(now time.Time) {
	c, l := k.room.core, &k.loop
	before := l.lead.Claim()
	first := k.room.chooser.Of(c.nodes)
	var near crdt.NodeID
	if l.supply != nil && !c.mayLead() {
		near = k.stepDown(first, now)
	} else {
		l.handed = nil
		near = l.lead.Choose(c.self, first, c.mate, now)
	}
	if mine := l.lead.Claim(); mine.Holder == c.self && mine != before {
		c.claims.at = time.Time{} // the others shall hear of it at once
	}
	ask := leaders{ticket.SiteCounter: near, ticket.AnywhereCounter: near}
	if site := k.anywhereSite(); site != c.site {
		ask[ticket.AnywhereCounter] = k.chooseFar(site)
	}
	l.ask = c.shareLeaders(l.ask, ask)
	for s, node := range l.ask {
		switch {
		case node != c.self.Node:
			l.since[s] = 0
		case l.since[s] == 0:
			l.since[s] = briefOf(now)
			if l.supply == nil && k.room.untouched(now) {
				l.since[s] = briefOf(now.Add(-ticket.FarNews)) // nobody has granted anything that could still show
			}
		}
	}
	if near != c.self.Node {
		l.accounts.Forget()
	}
}

// stepDown has another node of the site be the counter, if there is one, and
// returns who is; nobody if there is none. This node goes on saying so, as the
// others would choose it again.
func (k *counters) stepDown(first crdt.NodeID, now time.Time) crdt.NodeID {
	c, l := k.room.core, &k.loop
	if is := l.lead.Claim(); !is.IsZero() && is.Holder != c.self && c.mate(is.Holder) {
		return is.Holder.Node
	}
	others := slices.DeleteFunc(slices.Clone(c.nodes), func(id crdt.NodeID) bool { return id == c.self.Node })
	next, ok := c.peers.Find(k.room.chooser.Of(others))
	if !ok {
		l.lead.Drop()
		return crdt.NodeID{}
	}
	l.lead.Hand(c.self, crdt.Incarnation{Node: next.ID, Boot: next.Boot}, now)
	l.handed = new(next.ID)
	c.claims.at = time.Time{}
	return next.ID
}

// lost reports whether the counter of the site is out of sight.
func (k *counters) lost() bool {
	is := k.loop.ask[ticket.SiteCounter]
	_, there := slices.BinarySearchFunc(k.room.core.nodes, is, compareNodes)
	return !there
}

// anywhereSite returns the site whose counter is that of the places of no site: one of those
// that take part, also if it is out of reach. Were it another one then on each side of a cut,
// each would hand out the same places. Who cannot reach it has none of them.
func (k *counters) anywhereSite() string {
	c := k.room.core
	hidden := k.room.history.Hidden(k.room.settings.Load(), c.sizes)
	if len(hidden) == 0 {
		return c.sites.choose(k.room.chooser)
	}
	all := maps.Clone(c.sizes)
	for _, site := range hidden {
		all[site] = 0
	}
	var sites siteIDs
	sites.set(all)
	return sites.choose(k.room.chooser)
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
	l.far = k.room.chooser.Of(nodes)
	return l.far
}

// mate reports whether another node of the site is ready, in that incarnation.
func (c *Core) mate(inc crdt.Incarnation) bool {
	p, ok := c.peers.Find(inc.Node)
	return ok && p.Ready && p.Site == c.site && p.Boot == inc.Boot
}

// incarnation returns the present start of a node of this mesh.
func (c *Core) incarnation(id crdt.NodeID) (crdt.Incarnation, bool) {
	if id == c.self.Node {
		return c.self, true
	}
	p, ok := c.peers.Find(id)
	return crdt.Incarnation{Node: p.ID, Boot: p.Boot}, ok
}

// holdsBack reports whether this node grants nothing: it is not the counter, or
// has not been for long.
func (k *counters) holdsBack(s ticket.Scope, now time.Time) bool {
	since, hold := k.loop.since[s], nearNews
	if s == ticket.AnywhereCounter && len(k.room.core.sizes) > 1 {
		hold = ticket.FarNews
	}
	return since == 0 || now.Sub(since.time()) < hold
}

// untouched reports whether a room is new: nobody was ever let in or seen anywhere, and this
// node has seen the same nodes for as long as news of a grant takes. So there was no other
// counter whose grants a new one has to wait for, and all nodes choose the same one.
func (r *Room) untouched(now time.Time) bool {
	c := r.core
	if len(c.peers) > 0 && (c.met == 0 || now.Sub(c.met.time()) < ticket.FarNews) {
		return false
	}
	r.sites = c.replica.SitesInto(r.sites, r.id, now)
	for i := range r.sites {
		if s := &r.sites[i]; s.Counts.Active != 0 || len(s.Counts.Admitted) > 0 || len(s.Counts.Seen) > 0 || len(s.Counts.Waiting) > 0 {
			return false
		}
	}
	return true
}

// settled reports whether it is clear who the counter of the site is, as far as time
// and silence can tell.
func (k *counters) settled(now time.Time) bool {
	since := k.loop.since[ticket.SiteCounter]
	return !k.leads() || len(k.room.core.nodes) == 1 || now.Sub(since.time()) >= leadSettles
}

// paused has this node hold back as a new counter does, after a gap in which
// others may have taken over.
func (k *counters) paused(now time.Time) {
	c, l := k.room.core, &k.loop
	if !l.lead.Restart(c.self, now) {
		return
	}
	c.claims.at = time.Time{}
	for s := range l.since {
		if l.since[s] != 0 {
			l.since[s] = briefOf(now)
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

// speaks reports whether the site is to hear who the counter is: this node, or
// who has taken over from it.
func (k *counters) speaks() bool {
	return k.loop.lead.Claim().Holder == k.room.core.self || k.loop.handed != nil
}

// leads reports whether this node has to say that it is a counter of a room.
func (r *Room) leads() bool {
	k := r.counters.Load()
	return k != nil && k.speaks()
}

// claiming is when the site was told which counters this node is.
type claiming struct {
	at  time.Time // last; zero: it is to hear of all at once
	all time.Time // of all rooms, also of those in which all is still
}

// due reports whether it is to be told once more, and of all rooms.
func (c *claiming) due(now time.Time) (is, all bool) {
	return now.Sub(c.at) >= claimInterval, c.at.IsZero() || now.Sub(c.all) >= claimStill || now.Before(c.all)
}

// told notes that it is.
func (c *claiming) told(all bool, now time.Time) {
	if c.at = now; all {
		c.all = now
	}
}

// sendClaims tells the site which counters this node is, of all rooms or of those in which something happens.
func (c *Core) sendClaims(all bool) []Message {
	var claims []ticket.RoomClaim
	for _, r := range c.order {
		if k := r.counters.Load(); k != nil && k.speaks() && (all || !r.still) {
			is := k.loop.lead.Claim()
			claim := ticket.RoomClaim{Room: r.id, Since: is.Since}
			if next := k.loop.handed; next != nil {
				claim.Next = *next
			}
			claims = append(claims, claim)
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
		if claim.Next != (crdt.NodeID{}) {
			if next, ok := c.incarnation(claim.Next); ok && l.lead.Hand(holder, next, now) {
				r.look(now)
			}
			continue
		}
		switch ok := l.lead.Hear(ticket.Claim{Holder: holder, Since: claim.Since}); {
		case ok && mine.Holder == c.self:
			r.look(now) // this node grants nothing from here on
		case ok:
			if mine.Holder != holder {
				r.hasNews()
			}
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
