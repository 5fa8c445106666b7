package node

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// How rights get to where visitors wait.

// limited returns the room that a message about rights is of; nil without an error
// if there is nothing to be done about it here. near says that only nodes of the
// own site have a say.
func (c *Core) limited(id crdt.RoomID, from replica.Peer, near bool) (*Room, error) {
	r := c.roused(id)
	switch {
	case r == nil:
		return nil, nil // see Core.keepRooms
	case near && from.Site != c.site:
		return nil, fmt.Errorf("%w: rights lent from site %q to site %q", errMalformed, from.Site, c.site)
	case !c.open.Load():
		return nil, nil // it comes again
	}
	return r, nil
}

// move has the mover look, at the counter of a site.
func (k *counters) move(need int64, now time.Time) (out []Message) {
	r, s := k.room, k.loop.supply
	if !k.leads() || !r.core.fit() || r.core.leave.on {
		return nil
	}
	if need == 0 && !k.settled(now) {
		return nil // two who move the same rights take them apart
	}
	in := r.standing(need, now)
	if need > 0 && now.Sub(s.hungry.time()) >= nearGives {
		for i := range in.Mates {
			in.Mates[i].Free = ticket.Amount{}
		}
	}
	k.lookElsewhere(in, now)
	s.moved = briefOf(now)
	return r.carry(s.mover.Move(in.Standing, now))(now)
}

// lookElsewhere remembers what others seem to have free. A counter that has not
// looked does not know that rights may come, and would turn visitors away.
func (k *counters) lookElsewhere(in standing, now time.Time) {
	s := k.loop.supply
	s.idle, s.taken, s.looked = in.elsewhere(), 0, briefOf(now)
}

// seek looks for rights elsewhere because visitors wait for some.
func (k *counters) seek(now time.Time) []Message {
	s := k.loop.supply
	last := s.asked.time()
	if now.Sub(last) < wantedAgain && !now.Before(last) {
		return nil
	}
	s = k.loop.supply.own()
	if now.Sub(last) > 2*wantedAgain || now.Before(last) {
		s.hungry = briefOf(now)
	}
	s.asked = briefOf(now)
	return append(k.sendLoans(now), k.move(int64(len(s.parked))+k.loop.accounts.Waiting(), now)...)
}

// carry gives what the mover has decided to give, and asks whom it would ask.
func (r *Room) carry(gifts []ticket.Gift, asks []ticket.Ask) func(time.Time) []Message {
	return func(now time.Time) (out []Message) {
		for _, g := range gifts {
			r.give(g.To, g.Amount, now)
		}
		for _, a := range asks {
			out = append(out, r.core.message(a.From, kindWant, ticket.AppendWant(nil, ticket.Want{Room: r.id, To: a.To, Amount: a.Amount})))
		}
		return out
	}
}

func (r *Room) give(to crdt.NodeID, a ticket.Amount, now time.Time) {
	c := r.core
	if c.facts.gone(to) || to == c.self.Node || !c.fit() || len(r.stranded) > 0 && r.starved {
		return
	}
	if p, there := c.peers.Find(to); there && !c.knows(to) {
		c.setFact(nodeKey(factNode, to), []byte(p.Site), now) // it may be lost before it can say that it has any
	}
	r.mu.Lock()
	r.rights.Give(to, a, now)
	r.mu.Unlock()
	c.storing.touch(r)
}

// standing is what is known of a room's rights, as the mover wants it.
type standing struct{ ticket.Standing }

// elsewhere returns what other nodes seem to have free.
func (s standing) elsewhere() (sum ticket.Amount) {
	for _, m := range s.Mates {
		sum = sum.Add(m.Free.Max(ticket.Amount{}))
	}
	for _, x := range s.Sites {
		if x.Name != s.Site && x.Counter != (crdt.NodeID{}) {
			sum = sum.Add(x.Held.Sub(x.Used).Max(ticket.Amount{}))
		}
	}
	return sum
}

func (r *Room) standing(need int64, now time.Time) standing {
	c, v := r.core, r.view.Load()
	in := standing{ticket.Standing{Self: c.self.Node, Site: c.site, Need: need}}
	r.mu.Lock()
	in.Held, in.Free = r.rights.Held(), r.rights.Free()
	in.Supply = r.limit.Min(r.mintedByAll)
	r.mu.Unlock()
	var counts crdt.Counts
	for _, p := range c.peers {
		if p.Site == c.site && p.Ready && p.ID != c.self.Node && !c.facts.gone(p.ID) {
			in.Mates = append(in.Mates, r.mateRights(p, &counts, now))
		}
	}
	r.sites = c.replica.SitesInto(r.sites, r.id, now)
	for i := range r.sites {
		in.Sites = append(in.Sites, r.siteRights(&r.sites[i], v.View, now))
	}
	return in
}

// mateRights returns what the row of another node of the site says, which it reads
// into the memory of counts.
func (r *Room) mateRights(p replica.Peer, counts *crdt.Counts, now time.Time) ticket.MateRights {
	r.core.replica.RightsOf(counts, crdt.Incarnation{Node: p.ID, Boot: p.Boot}, r.id, crdt.TickOf(now.Add(-time.Minute)), now)
	held := ticket.Amount{Places: counts.Held, Rate: counts.HeldRate}
	used := ticket.Amount{Places: counts.Active, Rate: lastMinute(counts.Admitted, now)}
	return ticket.MateRights{Node: p.ID, Held: held, Free: held.Sub(used).Max(ticket.Amount{})}
}

func (r *Room) siteRights(s *replica.SiteCounts, v *room.View, now time.Time) ticket.SiteRights {
	c := r.core
	out := ticket.SiteRights{
		Name: s.Site, At: s.Changed,
		Held:  ticket.Amount{Places: s.Counts.Held, Rate: s.Counts.HeldRate},
		Used:  ticket.Amount{Places: s.Counts.Active, Rate: lastMinute(s.Counts.Admitted, now)},
		Share: float64(settled(s.Counts.Seen, now)),
	}
	if s.Own {
		out.Counter, out.At = c.self.Node, now
	} else {
		out.Counter = r.counterThere(s.Site)
	}
	for i := range v.Sites {
		if v.Sites[i].Name == s.Site {
			out.Eligible = int64(v.Sites[i].Reserved)
		}
	}
	first := int64(0)
	for at, n := range s.Counts.Waiting {
		if n > 0 && (first == 0 || at < first) {
			first = at
		}
	}
	out.Oldest = time.Unix(first, 0)
	return out
}

// counterThere returns whom to deal with in another site; zero if nobody of it can
// be reached: who asked for rights last, or else who would be its first choice.
// Whoever it is, that site's visitors get what it is given.
func (r *Room) counterThere(site string) crdt.NodeID {
	c := r.core
	if k := r.counters.Load(); k != nil && k.loop.supply != nil {
		if p, ok := c.peers.Find(k.loop.supply.far[site]); ok && p.Ready && !c.facts.gone(p.ID) {
			return p.ID
		}
	}
	var nodes []crdt.NodeID
	for _, p := range c.peers {
		if p.Ready && p.Site == site && !c.facts.gone(p.ID) {
			nodes = append(nodes, p.ID)
		}
	}
	return r.chooser.Of(nodes)
}

// heardOf notes who asks for rights in another site: its counter.
func (s *supply) heardOf(site string, id crdt.NodeID) {
	s = s.own()
	if s.far == nil || len(s.far) >= maxCallers {
		s.far = map[string]crdt.NodeID{}
	}
	s.far[site] = id
}

// lastMinute returns about how many were admitted in the last minute: of the tick
// at its edge, the part that lies within, as if they had come evenly.
func lastMinute(admitted map[int64]int64, now time.Time) (n int64) {
	edge := now.Add(-time.Minute)
	from := crdt.TickOf(edge)
	for tick, x := range admitted {
		switch {
		case tick > from:
			n += x
		case tick == from:
			left := crdt.TickSpan - edge.Sub(time.Unix(from*int64(crdt.TickSpan/time.Second), 0))
			n += (x*int64(left) + int64(crdt.TickSpan) - 1) / int64(crdt.TickSpan)
		}
	}
	return n
}

// settledFrom and settledTo bound the traffic by which idle rights are spread: it
// is past, so that late news hardly changes it.
const (
	settledFrom = 3 * time.Minute
	settledTo   = 20 * time.Second
)

func settled(seen map[int64]int64, now time.Time) (n int64) {
	from, to := crdt.TickOf(now.Add(-settledFrom)), crdt.TickOf(now.Add(-settledTo))
	for tick, x := range seen {
		if tick >= from && tick <= to {
			n += x
		}
	}
	return n
}

// takeWant gives rights away because another node asks for them: the own site's
// counter for whomever it says, that of another site for itself. A site's counter
// decides for the site.
func (c *Core) takeWant(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	w, err := ticket.DecodeWant(payload)
	if err != nil {
		return nil, err
	}
	r, err := c.limited(w.Room, from, false)
	if r == nil {
		return nil, err
	}
	if !c.fit() || c.leave.on {
		return nil, nil
	}
	to, known := c.peers.Find(w.To)
	k := r.counters.Load()
	if !known && w.To != c.self.Node || k == nil || k.loop.supply == nil {
		return nil, nil
	}
	switch lead := k.loop.ask[ticket.SiteCounter]; {
	case known && to.Site != c.site && lead == c.self.Node:
		k.loop.supply.heardOf(to.Site, w.To)
		return r.carry(k.loop.supply.mover.Wanted(r.standing(0, now).Standing, ticket.Ask{From: c.self.Node, To: w.To, Amount: w.Amount}, now))(now), nil
	case from.Site != c.site && lead != (crdt.NodeID{}):
		return []Message{c.message(lead, kindWant, payload)}, nil // who knows what the others have
	}
	r.give(w.To, w.Amount, now)
	return nil, nil
}

// sendGifts returns the gifts that are to be sent, and the word on those that have
// come. What an heir is owed it gets in the leaver's place.
func (r *Room) sendGifts(now time.Time) (out []Message) {
	c := r.core
	r.mu.Lock()
	due, acks := r.rights.GiftDue(now), r.rights.AcksDue(now)
	r.mu.Unlock()
	for _, t := range r.giftsDue(due, now) {
		if to := r.heir(t.To); to != c.self.Node {
			out = append(out, c.message(to, kindTransfer, ticket.AppendTransfer(nil, t)))
			continue
		}
		// What was given to a node whose heir this one is comes back.
		r.receive(t, now)
	}
	for _, a := range acks {
		if a.From != c.self.Node {
			out = append(out, c.message(a.From, kindReceived, ticket.AppendReceived(nil, a)))
			continue
		}
		r.mu.Lock()
		r.rights.Acked(a)
		r.mu.Unlock()
	}
	return out
}

// receive takes rights that were given to this node, or to one whose heir it is. One
// that had left before it heard of the room had nothing in it to hand over: what was
// given to it all the same is the heir's.
func (r *Room) receive(t ticket.Transfer, now time.Time) {
	c := r.core
	if c.leave.on && !r.owns() {
		return // who leaves takes nothing up any more, and would keep it: it comes again, to the heir
	}
	r.inheritNothing(t.To, now)
	r.gets(now)
	r.mu.Lock()
	r.rights.Receive(t, now)
	r.mu.Unlock()
	c.storing.touch(r)
}

// takeTransfer takes rights that another node gives.
func (c *Core) takeTransfer(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	t, err := ticket.DecodeTransfer(payload)
	if err != nil {
		return nil, err
	}
	if t.From != from.ID {
		return nil, fmt.Errorf("%w: gift of %s", errMalformed, t.From)
	}
	if _, known := c.facts.sites[from.ID]; !known {
		return nil, nil // it is forgotten, and this comes late; or is heard of soon, and sends it again
	}
	r, err := c.limited(t.Room, from, false)
	if r == nil {
		return nil, err
	}
	c.takeMinted(t.Room, t.Minted, now)
	if r, err = c.limited(t.Room, from, false); r == nil {
		return nil, err // it is gone by what came with the gift
	}
	r.receive(t, now)
	if k := r.counters.Load(); k != nil && k.loop.supply != nil && from.Site != c.site {
		k.loop.supply.mover.Came(from.Site)
	}
	return r.sendGifts(now), nil
}

// takeReceived hears that a gift, or a hand-over, has arrived.
func (c *Core) takeReceived(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	a, err := ticket.DecodeReceived(payload)
	if err != nil {
		return nil, err
	}
	r, err := c.limited(a.Room, from, false)
	if r == nil {
		return nil, err
	}
	switch {
	case a.From != c.self.Node:
		return nil, fmt.Errorf("%w: word of a gift of %s", errMalformed, a.From)
	case from.ID != a.To && from.ID != r.heir(a.To):
		return nil, nil // of an heir of which this node has not heard yet: it comes again
	}
	r.mu.Lock()
	r.rights.Acked(a)
	r.mu.Unlock()
	c.storing.touch(r)
	return nil, nil
}

// tickRights returns what is due in a room whose limit is rights, whoever leads.
func (r *Room) tickRights(now time.Time) []Message {
	c := r.core
	r.mu.Lock()
	surplus := r.rights.Surplus(now)
	r.mu.Unlock()
	if !surplus.IsZero() {
		minter := c.facts.mints(c.facts.room(r.id))
		if _, there := c.peers.Find(minter); there {
			r.give(minter, surplus, now)
		}
	}
	out := append(r.loansDue(now), r.sendGifts(now)...)
	r.announceHeirs(now)
	k := r.counters.Load()
	if k == nil || k.loop.supply == nil {
		return out
	}
	k.loop.accounts.Close(now)
	out = append(out, k.moveInTurn(now)...)
	out = append(out, k.sendLoans(now)...)
	return append(out, k.sendCancels(now)...)
}

// moveInTurn has the mover look, and the stock hear who may lend, now and then.
func (k *counters) moveInTurn(now time.Time) (out []Message) {
	s, every := k.loop.supply, k.room.movesEvery()
	due := func(last time.Time) bool { return now.Sub(last) >= every || now.Before(last) }
	// The second by a time of its own: while visitors wait, the mover is asked all the time.
	moves, hears := due(s.moved.time()), due(s.lenders.time())
	if !moves && !hears {
		return nil
	}
	if t := &k.room.core.naps.turns; !t.take(&t.movers, s.passed) {
		s.passed++
		return nil
	}
	s.passed = 0
	if moves {
		out = k.move(0, now)
	}
	if hears {
		s.lenders = briefOf(now)
		k.setLenders(now)
	}
	return out
}

// setLenders says who may lend to this node. One that leads no longer has to know
// which lenders have started anew: those want to hear nothing of earlier loans.
func (k *counters) setLenders(now time.Time) {
	r := k.room
	var all []ticket.Lender
	var counts crdt.Counts
	for _, p := range r.core.peers {
		if p.Site == r.core.site && p.Ready && p.ID != r.core.self.Node && !r.core.facts.gone(p.ID) {
			m := r.mateRights(p, &counts, now)
			all = append(all, ticket.Lender{ID: crdt.Incarnation{Node: p.ID, Boot: p.Boot}, Free: max(0, min(m.Free.Places, m.Free.Rate))})
		}
	}
	if len(all) > 0 || k.loop.stock != nil {
		k.stock().SetLenders(all, now)
	}
}
