package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// Check-ins of visitors whose anchor is another node, on their way there and
// back, and what happens when the anchor stays silent.

// patience is the part of a session that a visitor whose anchor is a member but
// does not answer stays with it: a busy node is not a dead one, and a second
// lease keeps a place taken twice.
const patience = 2

// sendRenewals returns the check-ins that are due and gives up on anchors that
// are gone.
func (c *Core) sendRenewals(now time.Time) []Message {
	var out []Message
	for _, r := range c.up() {
		for _, b := range r.renewals.Due(now) {
			b.Room = r.id
			c.slot++
			out = append(out, Message{To: r.heir(b.Anchor), Kind: kindRenew, Slot: c.slot, Payload: ticket.AppendBatch(nil, b, now)})
		}
		r.strand(now)
	}
	return out
}

// strand re-anchors the visitors whose anchor does not answer: at once if it is
// no member any more, else when half of what the pass allows is gone. Where
// rights are the limit those who find no place go on looking for one, until
// their pass has run out: then they stand first in line.
func (r *Room) strand(now time.Time) {
	for _, s := range r.renewals.Unreachable(now) {
		r.leaveStranded(s)
	}
	r.starved = false
	if len(r.stranded) == 0 {
		return // nearly always, and there may be thousands of rooms
	}
	limited := r.limited()
	for _, t := range slices.SortedFunc(maps.Keys(r.stranded), compareTickets) {
		s := r.stranded[t]
		member := r.core.reaches(r.id, t.Anchor)
		switch {
		case limited && now.After(s.PassEnd):
			delete(r.stranded, t)
		case limited && r.starved, member && s.PassEnd.Sub(now) > r.Settings().SessionDuration/patience:
		case limited:
			r.rescue(s, now)
		default:
			delete(r.stranded, t)
			if r.renewals.Forget(t) {
				r.reanchor(t, s.PassEnd, s.At, now)
			}
		}
	}
}

// rescue gives one session a place here, if there is one.
func (r *Room) rescue(s ticket.Renewal, now time.Time) {
	if r.over(s.Ticket) || r.Settings().DisableSessionRenewal {
		delete(r.stranded, s.Ticket)
		return
	}
	next, ok := r.takeOver(s.At, now, true)
	if !ok {
		r.starved = true
		return
	}
	r.renewals.Forget(s.Ticket)
	delete(r.stranded, s.Ticket)
	r.replace(s.Ticket, next)
}

func compareTickets(a, b ticket.Ticket) int {
	return cmp.Or(compareNodes(a.Anchor, b.Anchor), cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Seq, b.Seq))
}

// takeRenewals answers the check-ins of another node's visitors.
func (c *Core) takeRenewals(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	b, err := ticket.DecodeBatch(payload, now)
	if err != nil {
		return nil, err
	}
	r := c.roused(b.Room)
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	if !r.answersFor(b.Anchor) {
		return nil, fmt.Errorf("%w: renewals for room %s of anchor %s", errMalformed, b.Room, b.Anchor)
	}
	if !c.open.Load() {
		return nil, nil // not answered: they will be sent again
	}
	c.collect(now) // somebody let in here a moment ago may be there already
	acks := ticket.Acks{Room: b.Room, Anchor: b.Anchor, Items: make([]ticket.Ack, len(b.Items))}
	for i, item := range b.Items {
		if r.over(item.Ticket) {
			acks.Items[i] = ticket.Ack{Ticket: item.Ticket, Ended: true}
			continue
		}
		end, _ := r.extend(item.Ticket, item.PassEnd, item.At, now) // zero: refused
		acks.Items[i] = ticket.Ack{Ticket: item.Ticket, End: end}
	}
	if r.unheard(b.Anchor) {
		return nil, nil
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindRenewAck, Slot: c.slot, Payload: ticket.AppendAcks(nil, acks)}}, nil
}

// takeRenewed takes an anchor's answers.
func (c *Core) takeRenewed(from replica.Peer, payload []byte, now time.Time) error {
	a, err := ticket.DecodeAcks(payload)
	if err != nil {
		return err
	}
	r := c.roused(a.Room)
	if r == nil {
		return nil // see Core.keepRooms
	}
	if a.Anchor != from.ID && r.heir(a.Anchor) != from.ID {
		return fmt.Errorf("%w: answers for room %s of anchor %s", errMalformed, a.Room, a.Anchor)
	}
	for _, item := range a.Items {
		r.renewed(item, now)
	}
	return nil
}

// renewed takes one answer. An anchor that has lost the session, with a pass
// that still runs, has lost it through a fault of ours: it goes on here.
func (r *Room) renewed(a ticket.Ack, now time.Time) {
	if a.Ended {
		r.end(ended{r, a.Ticket, r.claimable(time.Time{}, now)}, now)
		r.endings.Acked(a.Ticket)
		return
	}
	delete(r.stranded, a.Ticket)
	if !a.End.IsZero() {
		r.renewals.Acked(a.Ticket, a.End)
		if end, ok := r.renewals.Take(a.Ticket); ok {
			k := sessionKey{r.id, a.Ticket}
			r.core.stripes.ofSession(k).renewed(k, renewal{ticket: a.Ticket, end: r.credible(end, now)})
		}
		return
	}
	if r.renewals.Refused(a.Ticket) {
		r.reanchor(a.Ticket, now.Add(r.Settings().SessionDuration), now, now)
	}
}

// heir returns who answers for a node in a room by now: itself, or who took over last.
func (c *Core) heir(room crdt.RoomID, of crdt.NodeID) crdt.NodeID {
	return c.facts.heir(c.facts.room(room), of)
}

func (r *Room) heir(of crdt.NodeID) crdt.NodeID { return r.core.heir(r.id, of) }

// answersFor reports whether check-ins with an anchor are for this node to answer:
// it is the one, or its heir.
func (r *Room) answersFor(anchor crdt.NodeID) bool {
	return anchor == r.core.self.Node || r.heir(anchor) == r.core.self.Node
}

// reaches reports whether whoever answers for an anchor is there: a member, or this
// node.
func (c *Core) reaches(room crdt.RoomID, anchor crdt.NodeID) bool {
	heir := c.heir(room, anchor)
	_, member := c.peers.Find(heir)
	return member || heir == c.self.Node
}

// unheard reports whether this node is to answer for another one of which it has
// not taken over this room yet, or has passed its own sessions on: then its word would
// be wrong, and whose session is said to be lost would take a second place.
func (r *Room) unheard(anchor crdt.NodeID) bool {
	if !r.limited() {
		return false
	}
	if anchor == r.core.self.Node {
		return r.leaving()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.Contains(r.rights.AnswersFor(), anchor)
}

// credible returns no later end than an honest anchor can agree to: a session
// from now, by a clock that is ahead as far as clocks may be.
func (r *Room) credible(end, now time.Time) time.Time {
	if latest := now.Add(r.Settings().SessionDuration + ticket.Guard); end.After(latest) {
		return latest
	}
	return end
}
