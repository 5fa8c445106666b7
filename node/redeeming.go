package node

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// A pass that waited is redeemed once in a site: the visitor's owner has the say. Who
// lets a visitor in books that, and then asks the owner before it answers. Whoever shows a
// copy of the pass within redeemedFor, as does a client that has not got its answer, is
// given the session that the first one has; a later one stands at the back.

const (
	// redeemTimeout is how long the owner has to answer. Without a word the visitor is
	// let in: what the owner knows is a cache, and a dead one must not hold up the line.
	redeemTimeout = 150 * time.Millisecond
	redeemResend  = 50 * time.Millisecond

	// letInWithin is how long after the ticket was taken the visitor is let in at the
	// latest: the ticket's rate right cools as if that were when it was used.
	letInWithin = ticket.TakeUp - ticket.CallTimeout

	maxRedeems = 1000 // in one message; keeps it below 256 KiB

	redeemVersion = 1
)

// redemption asks a visitor's owner whether the session that the visitor got here is to
// be, or tells the asker which one is.
type redemption struct {
	number   uint64 // names the question in the reply; 0: nobody has asked
	key      visitKey
	ticket   ticket.Ticket // in a reply, zero: the place was taken up long ago
	arrival  time.Time
	accepted time.Time
	end      time.Time // of the lease
}

func redemptionOf(number uint64, k visitKey, p Pass) redemption {
	return redemption{number, k, p.Ticket, p.Arrival, p.AcceptedAt, p.LeaseEnd}
}

// pass returns the pass of the session that q is about.
func (q redemption) pass(r *Room, now time.Time) Pass {
	return Pass{Visitor: q.key.visitor, Room: r.id, Arrival: q.arrival, AcceptedAt: q.accepted,
		LeaseEnd: r.credible(q.end, now), Ticket: q.ticket}
}

// redeemedAs answers a visitor who may have redeemed a waiting pass, in exchange for p.
func (r *Room) redeemedAs(is redeemState, p Pass, now time.Time) (Verdict, need) {
	switch {
	case is == awaited:
		return Verdict{Pass: p}, ownersWord
	case is == late:
		return r.decide(Pass{}, true, now)
	case now.After(p.LeaseEnd), r.over(p.Ticket):
		return r.decide(p, true, now)
	}
	return r.admit(p), nothing
}

// redeemedLately reports whether somebody was let in here with a waiting pass.
func (r *Room) redeemedLately(p *Pass, now time.Time) bool {
	return !p.Arrival.IsZero() && !p.Accepted() &&
		r.core.stripes.ofVisitor(p.Visitor).shown(visitKey{r.id, p.Visitor}, now).letIn()
}

// exchange answers for a visitor who is owned here and was let in with p: it returns the
// session that the place was taken up with, which is that of p if nobody was faster. ok is
// false if somebody was, and it is not known any more what they got. The loop calls it.
//
// An owner that has only heard of an admission, since it was silent when it was asked, or
// has become the owner since, takes the first that asks for the one who was let in.
func (r *Room) exchange(p Pass, by crdt.NodeID, now time.Time) (_ Pass, ok bool) {
	k, s := visitKey{r.id, p.Visitor}, r.core.stripes.ofVisitor(p.Visitor)
	switch old := s.shown(k, now); {
	case old.holds() && !r.over(old.pass.Ticket):
		return old.pass, true
	case old.holds(), old.is == late, r.line.Spent(p.Visitor, now.Add(-r.redeemedFor()), now):
		return Pass{}, false
	}
	is := told
	if by == r.core.self.Node {
		is = confirmed
	}
	s.remember(k, redeemed{pass: p, is: is, kept: r.redeemedFor()}, now)
	return p, true
}

// redeem goes on with a visitor who was let in with mine, once it is known which session
// holds. If that is another one, mine is ended: its place is free again.
func (r *Room) redeem(mine, holds Pass, ok bool, now time.Time) (Verdict, need) {
	k, s := visitKey{r.id, mine.Visitor}, r.core.stripes.ofVisitor(mine.Visitor)
	q := redeemed{pass: holds, is: confirmed, kept: r.redeemedFor()}
	if !ok {
		// For as long as a copy is good that is shown now: none gets that far again.
		is := r.Settings()
		q = redeemed{is: late, kept: is.PlaceKept + max(is.RefreshInterval, s.shown(k, now).refresh)}
	}
	s.remember(k, q, now) // before the end of mine, or who shows the pass just then is new
	if q.pass.Ticket != mine.Ticket {
		if r.endSession(mine, now) {
			r.copies.Add(1)
		}
	}
	return r.redeemedAs(q.is, q.pass, now)
}

// redeemAll is redeem for all who have waited for the same word.
func (c *Core) redeemAll(waiting []*pending, holds Pass, ok bool, now time.Time) {
	for _, w := range waiting {
		v, n := w.room.redeemInTime(w, holds, ok, now)
		c.settle(w, v, n, now)
	}
}

// redeemInTime is redeem, unless it is too late for that by the limit on new users, as after
// the process was stopped: then w, with the pass that it waited with, needs another ticket,
// and with that the owner's word once more. Its place is that of the first one as long as
// the owner knows of it. The second time nobody waits; see letIn.
func (r *Room) redeemInTime(w *pending, holds Pass, ok bool, now time.Time) (Verdict, need) {
	mine := w.pass
	if ok && r.limited() && now.Sub(mine.AcceptedAt) >= letInWithin {
		was := r.core.stripes.ofVisitor(mine.Visitor).lapse(visitKey{r.id, mine.Visitor}, mine.Ticket, now)
		if was != nil {
			w.late = true
			return r.decide(*was, true, now)
		}
	}
	return r.redeem(mine, holds, ok, now)
}

// sendRedeems returns what owners shall be asked, and goes on with those whose owner this
// node is, or is silent. sweep looks at older questions too.
func (c *Core) sendRedeems(now time.Time, sweep bool) (out []Message) {
	send, lost := c.redeems.due(now, sweep, askPace{redeemResend, redeemTimeout}, func(visitKey) bool { return true })
	for _, w := range lost {
		v, n := w.room.redeemInTime(w, w.pass, true, now)
		c.settle(w, v, n, now)
	}
	groups := map[crdt.NodeID][]redemption{}
	for _, a := range send {
		p := a.first.pass
		to := c.owner(a.key.room, a.key.visitor)
		if to == c.self.Node {
			holds, ok := a.first.room.exchange(p, to, now)
			c.redeemAll(c.redeems.replied(a.number, func(visitKey) bool { return true }), holds, ok, now)
			continue
		}
		groups[to] = append(groups[to], redemptionOf(a.number, a.key, p))
	}
	for _, to := range slices.SortedFunc(maps.Keys(groups), compareNodes) {
		for some := range slices.Chunk(groups[to], maxRedeems) {
			out = append(out, c.message(to, kindRedeem, encodeRedeems(some)))
		}
	}
	return out
}

// takeRedeem answers another node of the site for visitors who are owned here.
func (c *Core) takeRedeem(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	items, err := decodeRedeems(payload)
	if err != nil {
		return nil, err
	}
	if from.Site != c.site {
		return nil, fmt.Errorf("%w: passes redeemed in site %q", errMalformed, from.Site)
	}
	if !c.open.Load() {
		return nil, nil // they are let in without this node's word
	}
	answers := items[:0]
	for _, q := range items {
		r := c.rooms[q.key.room]
		if r == nil || q.ticket.IsZero() {
			continue // see Core.keepRooms
		}
		if holds, ok := r.exchange(q.pass(r, now), from.ID, now); ok {
			q = redemptionOf(q.number, q.key, holds)
		} else {
			q.ticket = ticket.Ticket{}
		}
		answers = append(answers, q)
	}
	if len(answers) == 0 {
		return nil, nil
	}
	return []Message{c.message(from.ID, kindRedeemed, encodeRedeems(answers))}, nil
}

// takeRedeemed goes on with the visitors who waited for their owner's word. Whoever then
// wants a ticket after all is applied for at once.
func (c *Core) takeRedeemed(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	items, err := decodeRedeems(payload)
	if err != nil {
		return nil, err
	}
	if from.Site != c.site {
		return nil, fmt.Errorf("%w: passes redeemed in site %q", errMalformed, from.Site)
	}
	for _, q := range items {
		r := c.rooms[q.key.room]
		if r == nil {
			continue
		}
		if q.number == 0 {
			r.letInElsewhere(q, now)
			continue
		}
		// Who owns the visitor may have changed since it was asked.
		waiting := c.redeems.replied(q.number, func(k visitKey) bool { return k == q.key })
		c.redeemAll(waiting, q.pass(r, now), !q.ticket.IsZero(), now)
	}
	return c.sendHot(now), nil
}

// letInElsewhere notes that somebody who waits here was let in at another node.
func (r *Room) letInElsewhere(q redemption, now time.Time) {
	s := r.core.stripes.ofVisitor(q.key.visitor)
	if !q.ticket.IsZero() && s.shown(q.key, now).is == unknown {
		s.remember(q.key, redeemed{pass: q.pass(r, now), is: told, kept: r.redeemedFor()}, now)
	}
}

// encodeRedeems writes [version, n, then per redemption: number, room, visitor, anchor,
// boot, block, seq, arrival ms, accepted ms, end ms].
func encodeRedeems(items []redemption) []byte {
	var buf bytes.Buffer
	buf.Grow(8 + 128*len(items))
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(2)
	e.EncodeUint(redeemVersion)
	e.EncodeArrayLen(len(items))
	for _, q := range items {
		e.EncodeArrayLen(redeemFields)
		e.EncodeUint(q.number)
		e.EncodeBytes(q.key.room[:])
		e.EncodeBytes(q.key.visitor[:])
		e.EncodeBytes(q.ticket.Anchor[:])
		e.EncodeUint(q.ticket.Boot)
		e.EncodeUint(uint64(q.ticket.Block))
		e.EncodeUint(q.ticket.Seq)
		e.EncodeInt(q.arrival.UnixMilli())
		e.EncodeInt(q.accepted.UnixMilli())
		e.EncodeInt(q.end.UnixMilli())
	}
	return buf.Bytes()
}

const (
	redeemFields = 10

	// minRedeemBytes is the least that one encoded redemption takes.
	minRedeemBytes = 1 + 3*18 + 7
)

func decodeRedeems(msg []byte) ([]redemption, error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 2, redeemVersion); err != nil {
		return nil, err
	}
	n, err := d.DecodeArrayLen()
	if err != nil || n < 0 || n > maxRedeems || n > r.Len()/minRedeemBytes {
		return nil, fmt.Errorf("%w: %d passes redeemed", errMalformed, n)
	}
	items := make([]redemption, n)
	for i := range items {
		if err := decodeRedemption(d, &items[i]); err != nil {
			return nil, fmt.Errorf("%w: pass redeemed %d: %w", errMalformed, i, err)
		}
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the end", errMalformed, r.Len())
	}
	return items, nil
}

func decodeRedemption(d *msgpack.Decoder, q *redemption) error {
	if n, err := d.DecodeArrayLen(); err != nil || n != redeemFields {
		return fmt.Errorf("%d fields: %w", n, err)
	}
	var block uint64
	at := func() (time.Time, error) { return decodeMillis(d) }
	err := errors.Join(
		decodeInto(&q.number, d.DecodeUint64),
		decodeID(d, q.key.room[:]),
		decodeID(d, q.key.visitor[:]),
		decodeID(d, q.ticket.Anchor[:]),
		decodeInto(&q.ticket.Boot, d.DecodeUint64),
		decodeInto(&block, d.DecodeUint64),
		decodeInto(&q.ticket.Seq, d.DecodeUint64),
		decodeInto(&q.arrival, at),
		decodeInto(&q.accepted, at),
		decodeInto(&q.end, at),
	)
	if err != nil {
		return err
	}
	if block > 1<<32-1 {
		return fmt.Errorf("block %d is out of range", block)
	}
	q.ticket.Block = uint32(block)
	return nil
}
