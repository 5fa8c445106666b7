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
// lets a visitor in books that, and then asks the owner before it answers. A copy of the
// pass that comes within redeemedKept, as does a client that has not got its answer, is
// given the session that the first one has; a later one stands at the back.

const (
	// redeemTimeout is how long the owner has to answer. Without a word the visitor is
	// let in: what the owner knows is a cache, and a dead one must not hold up the line.
	redeemTimeout = 250 * time.Millisecond
	redeemResend  = 100 * time.Millisecond

	maxRedeems = 1000 // in one message; keeps it below 256 KiB

	redeemVersion = 1
)

// redemption asks a visitor's owner whether the session that the visitor got here is to
// be, or tells the asker which one is.
type redemption struct {
	number   uint64 // names the question in the reply
	key      visitKey
	ticket   ticket.Ticket // in a reply, zero: the place was taken up long ago
	arrival  time.Time
	accepted time.Time
	end      time.Time     // of the lease
	refresh  time.Duration // what the visitor was told last while waiting
}

// redeemedAs answers a visitor who may have redeemed a waiting pass, in exchange for p.
func (r *Room) redeemedAs(is redeemState, p Pass, now time.Time) (Verdict, need) {
	switch {
	case is == awaited:
		return Verdict{Pass: p}, ownersWord
	case is == late, now.After(p.LeaseEnd), r.over(p.Ticket):
		return r.decide(Pass{}, true, now)
	}
	return r.admit(p), nothing
}

// redeemedLately reports whether somebody was let in here with a waiting pass.
func (r *Room) redeemedLately(p *Pass, now time.Time) bool {
	return !p.Arrival.IsZero() && !p.Accepted() &&
		r.core.stripes.ofVisitor(p.Visitor).lately(visitKey{r.id, p.Visitor}, now).is != unknown
}

// exchange answers for a visitor who is owned here and was let in with p: it returns the
// session that the place was taken up with, which is that of p if nobody was faster. ok is
// false if they were by more than redeemedKept. The loop calls it.
func (r *Room) exchange(p Pass, refresh time.Duration, now time.Time) (_ Pass, ok bool) {
	k, s := visitKey{r.id, p.Visitor}, r.core.stripes.ofVisitor(p.Visitor)
	if old := s.lately(k, now); old.is == confirmed {
		return old.pass, true
	}
	if !r.line.Redeem(p.Visitor, now, refresh) {
		return Pass{}, false
	}
	s.settled(k, redeemed{p, now, refresh, confirmed})
	return p, true
}

// redeem goes on with a visitor who was let in with mine, once it is known which session
// holds. If that is another one, mine is ended: its place is free again.
func (r *Room) redeem(mine, holds Pass, ok bool, now time.Time) (Verdict, need) {
	q := redeemed{holds, now, 0, confirmed}
	if !ok {
		q = redeemed{at: now, is: late}
	}
	if q.pass.Ticket != mine.Ticket {
		r.End(mine, now)
		r.copies.Add(1)
	}
	r.core.stripes.ofVisitor(mine.Visitor).settled(visitKey{r.id, mine.Visitor}, q)
	return r.redeemedAs(q.is, q.pass, now)
}

// redeemAll is redeem for all who have waited for the same word.
func (c *Core) redeemAll(waiting []*pending, holds Pass, ok bool, now time.Time) {
	for _, w := range waiting {
		v, n := w.room.redeem(w.pass, holds, ok, now)
		c.settle(w, v, n, now)
	}
}

// sendRedeems returns what owners shall be asked, and goes on with those whose owner this
// node is, or is silent. sweep looks at older questions too.
func (c *Core) sendRedeems(now time.Time, sweep bool) (out []Message) {
	send, lost := c.redeems.due(now, sweep, askPace{redeemResend, redeemTimeout}, func(visitKey) bool { return true })
	for _, w := range lost {
		v, n := w.room.redeem(w.pass, w.pass, true, now)
		c.settle(w, v, n, now)
	}
	groups := map[crdt.NodeID][]redemption{}
	for _, a := range send {
		p, refresh := a.first.pass, c.stripes.ofVisitor(a.key.visitor).lately(a.key, now).refresh
		to := c.owner(a.key.room, a.key.visitor)
		if to == c.self.Node {
			holds, ok := a.first.room.exchange(p, refresh, now)
			c.redeemAll(c.redeems.replied(a.number, func(visitKey) bool { return true }), holds, ok, now)
			continue
		}
		groups[to] = append(groups[to], redemption{a.number, a.key, p.Ticket, p.Arrival, p.AcceptedAt, p.LeaseEnd, refresh})
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
		if r == nil {
			continue // see Core.keepRooms
		}
		holds, ok := r.exchange(Pass{Visitor: q.key.visitor, Room: r.id, Arrival: q.arrival, AcceptedAt: q.accepted,
			LeaseEnd: r.credible(q.end, now), Ticket: q.ticket}, q.refresh, now)
		if !ok {
			holds = Pass{AcceptedAt: q.accepted, LeaseEnd: q.end}
		}
		q.ticket, q.accepted, q.end = holds.Ticket, holds.AcceptedAt, holds.LeaseEnd
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
	for _, q := range items {
		by := func(k visitKey) bool { return k == q.key && c.owner(k.room, k.visitor) == from.ID }
		waiting := c.redeems.replied(q.number, by)
		if len(waiting) == 0 {
			continue
		}
		holds := waiting[0].pass
		if holds.Ticket != q.ticket {
			holds.Ticket, holds.AcceptedAt, holds.LeaseEnd = q.ticket, q.accepted, waiting[0].room.credible(q.end, now)
		}
		c.redeemAll(waiting, holds, !q.ticket.IsZero(), now)
	}
	return c.sendHot(now), nil
}

// encodeRedeems writes [version, n, then per redemption: number, room, visitor, anchor,
// boot, block, seq, arrival ms, accepted ms, end ms, refresh s].
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
		e.EncodeInt(int64(q.refresh / time.Second))
	}
	return buf.Bytes()
}

const (
	redeemFields = 11

	// minRedeemBytes is the least that one encoded redemption takes.
	minRedeemBytes = 1 + 3*18 + 8
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
	var seconds int64
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
		decodeInto(&seconds, d.DecodeInt64),
	)
	if err != nil {
		return err
	}
	if block > 1<<32-1 || seconds < 0 || seconds > maxRefresh {
		return fmt.Errorf("block %d or refresh of %d s is out of range", block, seconds)
	}
	q.ticket.Block, q.refresh = uint32(block), time.Duration(seconds)*time.Second
	return nil
}
