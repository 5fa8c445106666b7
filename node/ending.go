package node

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// Sessions that the origin has ended.

// askedFor is how many sessions after its end a pass may still be asked about:
// for so long, and the session itself, an ended one is remembered.
const askedFor = 2

// End ends the session of p before its time, because the origin said so. At this
// node p is worth nothing from now on: who shows it again is a new visitor. The
// anchor hears of it, again and again until it has answered or the lease is over,
// and frees the place; other nodes learn it when the pass comes to them and they
// check in. For a waiting pass that was exchanged for one lately, as far as this node
// knows, it is that one's session. End reports whether there is a session that p is of;
// it may have ended before. Any goroutine may call it.
func (r *Room) End(p Pass, now time.Time) bool {
	if p.Room != r.id {
		return false
	}
	if !p.Accepted() && p.Visitor != (VisitorID{}) {
		p = r.core.stripes.ofVisitor(p.Visitor).shown(visitKey{r.id, p.Visitor}, now).pass
	}
	if p.Ticket.IsZero() {
		return false
	}
	r.endSession(p, now)
	return true
}

// endSession is End for the pass of a session. It reports whether that is news to this
// node.
func (r *Room) endSession(p Pass, now time.Time) bool {
	k := sessionKey{r.id, p.Ticket}
	return r.core.stripes.ofSession(k).end(ended{r, p.Ticket, r.claimable(p.LeaseEnd, now)})
}

// claimable returns until when a pass of a session can be of use to anybody that
// does not know that the session is over.
func (r *Room) claimable(passEnd, now time.Time) time.Time {
	session := r.Settings().SessionDuration
	last := now.Add(session + ticket.Guard) // no pass was promised more
	if passEnd.After(last) {
		last = passEnd
	}
	return last.Add(askedFor * session)
}

// over reports whether the origin has ended a session, as far as this node
// knows. Any goroutine may call it.
func (r *Room) over(t ticket.Ticket) bool {
	k := sessionKey{r.id, t}
	return r.core.stripes.ofSession(k).over(k)
}

// setOver has requests find that a session is over.
func (r *Room) setOver(t ticket.Ticket, until time.Time) {
	k := sessionKey{r.id, t}
	r.core.stripes.ofSession(k).setOver(k, until)
}

// end does for the loop what End promises. A session that was re-anchored has
// several tickets, of which visitors may hold any: all end.
func (r *Room) end(e ended, now time.Time) {
	for old, ok := r.replaces[e.ticket]; ok; old, ok = r.replaces[old] {
		r.endTicket(old, e.until, now)
	}
	for t, ok := e.ticket, true; ok; {
		var next renewal
		next, ok = r.replaced[t]
		r.endTicket(t, e.until, now)
		t = next.ticket
	}
}

// endTicket ends the lease of one ticket, here or at its anchor.
func (r *Room) endTicket(t ticket.Ticket, until, now time.Time) {
	r.setOver(t, until)
	r.renewals.Forget(t)
	delete(r.stranded, t)
	if !r.answersFor(t.Anchor) {
		if r.endings == nil {
			r.ownAbroad().endings = new(ticket.Endings)
		}
		r.endings.Add(t, now.Add(r.Settings().SessionDuration), now)
		return
	}
	r.mu.Lock()
	d := r.rights.End(t, now)
	r.mu.Unlock()
	r.bookActive(d, now)
}

// sendEndings returns the ends that are due to be told.
func (c *Core) sendEndings(now time.Time) []Message {
	var out []Message
	for _, r := range c.up() {
		if r.endings.Len() == 0 {
			continue
		}
		for _, e := range r.endings.Due(now) {
			e.Room = r.id
			c.slot++
			out = append(out, Message{To: r.heir(e.Anchor), Kind: kindEnd, Slot: c.slot, Payload: ticket.AppendEnds(nil, e)})
		}
	}
	return out
}

// takeEnds ends sessions anchored here that the origin has ended elsewhere. The
// answer goes the way of answers to check-ins.
func (c *Core) takeEnds(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	e, err := ticket.DecodeEnds(payload)
	if err != nil {
		return nil, err
	}
	r := c.roused(e.Room)
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	if !r.answersFor(e.Anchor) {
		return nil, fmt.Errorf("%w: ends for room %s of anchor %s", errMalformed, e.Room, e.Anchor)
	}
	if !c.open.Load() {
		return nil, nil // not answered: they will be sent again
	}
	c.collect(now) // somebody let in here a moment ago may be there already
	acks := ticket.Acks{Room: e.Room, Anchor: e.Anchor, Items: make([]ticket.Ack, len(e.Items))}
	for i, t := range e.Items {
		if !r.over(t) {
			r.end(ended{r, t, r.claimable(time.Time{}, now)}, now)
		}
		acks.Items[i] = ticket.Ack{Ticket: t, Ended: true}
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindRenewAck, Slot: c.slot, Payload: ticket.AppendAcks(nil, acks)}}, nil
}
