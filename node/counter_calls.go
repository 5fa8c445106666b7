package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// What this node asks counters, and what it grants where it is one itself.

// sendCalls returns the calls that are due at the desks of one room, and answers
// whoever waits for nobody.
func (k *counters) sendCalls(now time.Time) []Message {
	if k.loop.supply != nil {
		return k.serveByRights(now)
	}
	var out []Message
	for s := range ticket.Scopes {
		to := k.loop.ask[s]
		self := k.room.core.self.Node
		k.mu.Lock()
		d := k.desks[s]
		lost := d.GiveUp(now)
		var left []applicant
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
			k.room.counted().refused.Add(1)
			k.turnAway(a.Who, now)
		}
		k.serve(left, s, to == self, now)
	}
	return out
}

// serve answers applicants here: with tickets if this node is the counter by
// now, else by having them wait.
func (k *counters) serve(left []applicant, s ticket.Scope, self bool, now time.Time) {
	for _, a := range left {
		c := classOf(s, a.Reserved)
		if self && k.room.takeSome(k.room.view.Load(), c, 1, now) == 1 {
			k.letIn(a.Who, &gotten{class: c}, now)
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
		if until := k.desks[s].RefusedUntil(waited); !until.IsZero() {
			k.until[classOf(s, waited)].Store(until.UnixNano())
		}
	}
}

// sendHot returns the calls of those counters at which somebody has applied.
func (c *Core) sendHot(now time.Time) []Message {
	var out []Message
	for _, k := range c.hot.take() {
		k.mu.Lock()
		k.hot = false
		k.mu.Unlock()
		k.room.wake()
		out = append(out, k.sendCalls(now)...)
	}
	return out
}

// tickCounters returns what is due at all counters.
func (c *Core) tickCounters(now time.Time) []Message {
	out := c.sendHot(now)
	for _, r := range c.up() {
		before := len(out)
		if r.keepsRights() {
			out = append(out, r.tickRights(now)...)
		}
		if k := r.counters.Load(); k != nil {
			if k.loop.supply == nil {
				out = append(out, k.sendLoans(now)...) // back to their lenders, after another policy
			}
			out = append(out, k.sendCalls(now)...)
		}
		r.busy = len(out) > before
	}
	if is, all := c.claims.due(now); is && slices.ContainsFunc(c.order, (*Room).leads) {
		c.claims.told(all, now)
		out = append(out, c.sendClaims(all)...)
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
	r := c.roused(call.Room)
	switch {
	case r == nil:
		return nil, nil // see Core.keepRooms
	case call.Scope == ticket.SiteCounter && from.Site != c.site:
		return nil, fmt.Errorf("%w: call for the counter of site %q from site %q", errMalformed, c.site, from.Site)
	case !c.open.Load():
		return nil, nil // not answered: it is asked again, or another is
	}
	g, ok := r.grant(from, call, now)
	if !ok {
		if k := r.counters.Load(); k != nil && k.loop.supply != nil && k.loop.accounts.Waiting() > 0 {
			return k.seek(now), nil
		}
		return nil, nil
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindGrant, Slot: c.slot, Payload: ticket.AppendGrant(nil, g)}}, nil
}

// grant works out the answer to a call.
func (r *Room) grant(from replica.Peer, call ticket.Call, now time.Time) (ticket.Grant, bool) {
	k := r.counters.Load()
	if k == nil || k.loop.since[call.Scope] == 0 {
		g := ticket.Grant{Room: call.Room, Scope: call.Scope, Number: call.Number, Retry: viewInterval}
		if k != nil {
			g.Leader = k.loop.ask[call.Scope]
		}
		return g, true
	}
	r.hasNews() // what is reckoned with changes
	if k.loop.supply != nil {
		k.catchUp(now)
		id := crdt.Incarnation{Node: from.ID, Boot: from.Boot}
		return k.loop.accounts.Answer(id, from.Site, call, func(ticket.Places) ticket.Offer { return k.offer(id, call, now) }, now)
	}
	w := r.view.Load()
	return k.loop.accounts.Answer(crdt.Incarnation{Node: from.ID, Boot: from.Boot}, from.Site, call, func(want ticket.Places) ticket.Offer {
		var got ticket.Places
		if call.Scope == ticket.AnywhereCounter {
			got.Contested = r.lend(w, anywhere, want.Contested, now)
		} else {
			got.Reserved = r.lend(w, reserved, want.Reserved, now)
			got.Contested = r.lend(w, contested, want.Contested, now)
		}
		// The next view is built at the latest by then. Counts may bring it sooner,
		// hence not shorter than a tick.
		return ticket.Offer{Given: got, Retry: r.retry(now)}
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
	r := c.roused(g.Room)
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	k := r.counters.Load()
	if k == nil {
		return nil, nil
	}
	if k.loop.supply != nil && g.Given != (ticket.Places{}) && len(g.Tickets) == 0 {
		return nil, nil // of a node that goes by another policy: its tickets have no right behind them
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
		r.hasNews()
	}
	return k.sendCalls(now), nil // who applied meanwhile goes at once
}

// lent returns by site how many of this node's tickets other nodes were granted
// that the counts do not show yet.
func (r *Room) lent(now time.Time) map[string]int {
	k := r.counters.Load()
	if k == nil || k.loop.supply != nil {
		return nil // rights are the limit: nothing rests on this
	}
	return k.loop.accounts.Pending(r.core.site, r.core.replica.Known, ticket.Far{
		Away: func(site string) bool { return r.core.sizes[site] == 0 },
		Shows: func(site string, at time.Time) bool {
			i := slices.IndexFunc(r.sites, func(s replica.SiteCounts) bool { return s.Site == site }) // as of the last look
			return i >= 0 && (r.sites[i].Closed >= crdt.TickOf(at) || r.sites[i].Changed.After(at.Add(siteNews))) || now.Sub(at) > r.session
		},
	}, now)
}

// siteNews is more than it takes until all nodes of a site hear of a change in a row: what is
// older shows in a summary with a newer change.
const siteNews = time.Second
