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

// A pass that waited is redeemed once in a site: the visitor's owner has the say. A node
// asks the owner before it takes a ticket for a visitor who has waited, and the owner keeps
// the pass for it for a moment, in which no other node gets it. The owner is told at once
// of who is let in, and once more with all other visits, should that get lost. Whoever shows a copy of the pass within redeemedFor, as
// does a client that has not got its answer, is given the session that the first one has;
// a later one stands at the back.

const (
	// redeemTimeout is how long the owner has to answer. Without a word the visitor may
	// be let in: what the owner knows is a cache, and a dead one must not hold up the line.
	redeemTimeout = 250 * time.Millisecond
	redeemResend  = 100 * time.Millisecond

	// claimKept is how long after it asked a node may let the visitor in on the owner's
	// word, or silence: two calls of counters fit in.
	claimKept = 2 * time.Second

	// claimHeld is how long the owner keeps a pass for a node: until that may let nobody in
	// any more, and the owner has heard of it if it has.
	claimHeld = claimKept + admittedHeld + visitsEvery + 2*visitsResend

	maxRedeems = 1000 // in one message; keeps it below 256 KiB

	redeemVersion = 2
)

// word is what is said of a waiting pass.
type word uint8

const (
	isItFree    word = iota // to the owner: may this node let the visitor in?
	notUsed                 // to the owner: this node will not
	itIsFree                // from the owner: you may
	isElsewhere             // from the owner: another node is about to
	isInside                // from either: the visitor was let in, and this is the session
	isSpent                 // from the owner: the place was taken up long ago
	words
)

// redemption is a word about a waiting pass.
type redemption struct {
	number uint64 // names the question in the reply, and when it was of no use; 0: nobody has asked
	key    visitKey
	word   word
	admission
}

// admission is a session that somebody was let in with; zero where there is none.
type admission struct {
	ticket   ticket.Ticket
	arrival  time.Time
	accepted time.Time
	end      time.Time // of the lease
}

func admissionOf(p Pass) admission {
	return admission{p.Ticket, p.Arrival, p.AcceptedAt, p.LeaseEnd}
}

// pass returns the pass of a session of a visitor.
func (a admission) pass(r *Room, v VisitorID, now time.Time) Pass {
	return Pass{
		Visitor: v, Room: r.id, Arrival: a.arrival, AcceptedAt: a.accepted,
		LeaseEnd: r.credible(a.end, now), Ticket: a.ticket,
	}
}

// redeemedAs answers a visitor who shows the waiting pass p, or has just been let in with
// it: holds is the session that it was exchanged for.
func (r *Room) redeemedAs(is redeemState, p, holds Pass, now time.Time) (Verdict, need) {
	switch {
	case is == late:
		return r.decide(Pass{}, true, now)
	case is != confirmed: // the owner's word was too long ago
		return r.wait(r.view.Load(), p, now), nothing
	case now.After(holds.LeaseEnd), r.over(holds.Ticket):
		holds.Shown = p.Shown // as in judge
		return r.decide(holds, true, now)
	}
	return r.admit(holds), nothing
}

// redeemedLately reports whether somebody was let in here with a waiting pass.
func (r *Room) redeemedLately(p *Pass, now time.Time) bool {
	return !p.Arrival.IsZero() && !p.Accepted() &&
		r.core.stripes.ofVisitor(p.Visitor).shown(visitKey{r.id, p.Visitor}, now).isKnown()
}

// claim says whether a node may let a visitor in who is owned here. The loop calls it.
//
// An owner that has heard of an admission, but not of the session, takes the first that
// asks for the one who was let in.
func (r *Room) claim(v VisitorID, by crdt.NodeID, number uint64, now time.Time) (word, Pass) {
	k, q := visitKey{r.id, v}, redeemed{is: claimed, by: by, number: number, kept: claimHeld}
	if r.line.Spent(v, now.Add(-r.redeemedFor()), now) {
		q = redeemed{} // nothing to keep
	}
	switch is := r.core.stripes.ofVisitor(v).offer(k, q, now); {
	case is.is == confirmed && !r.over(is.pass.Ticket):
		return isInside, is.pass
	case is.isKnown(), q.is == unknown:
		return isSpent, Pass{}
	case is.by != by:
		return isElsewhere, Pass{}
	}
	return itIsFree, Pass{}
}

// goOn goes on with a request that the owner of its visitor has a word on. What is then
// left of claimKept is for getting a ticket.
func (r *Room) goOn(w *pending, is word, holds Pass, now time.Time) (Verdict, need) {
	k, s := visitKey{r.id, w.pass.Visitor}, r.core.stripes.ofVisitor(w.pass.Visitor)
	left := w.asked.Add(claimKept).Sub(now)
	switch {
	case is == isInside:
		r.counted().copies.Add(1)
		q := s.note(k, redeemed{pass: holds, is: confirmed, kept: r.redeemedFor()}, now)
		return r.redeemedAs(q.is, w.pass, q.pass, now)
	case is == isSpent:
		r.counted().copies.Add(1)
		// For as long as a copy is good that is shown now: none gets that far again.
		settings := r.Settings()
		kept := settings.PlaceKept + max(settings.RefreshInterval, w.pass.Refresh)
		q := s.note(k, redeemed{is: late, kept: kept}, now)
		return r.redeemedAs(q.is, w.pass, q.pass, now)
	case is == isElsewhere:
		return r.wait(r.view.Load(), w.pass, w.at), nothing
	case left <= 0:
		r.core.redemptions = append(r.core.redemptions, redemption{number: w.number, key: k, word: notUsed})
		return r.wait(r.view.Load(), w.pass, w.at), nothing
	}
	s.note(k, redeemed{is: claimed, by: r.core.self.Node, number: w.number, kept: left}, now)
	w.claimed = true
	return r.decide(w.pass, true, now)
}

// goOnAll is goOn for all who have waited for the same word.
func (c *Core) goOnAll(waiting []*pending, is word, holds Pass, now time.Time) {
	for _, w := range waiting {
		v, n := w.room.goOn(w, is, holds, now)
		c.settle(w, &v, n, now)
	}
}

// sendRedeems returns what owners shall be asked, and goes on with those whose owner this
// node is, or is silent. sweep looks at older questions too.
func (c *Core) sendRedeems(now time.Time, sweep bool) (out []Message) {
	send, lost := c.redeems.due(now, sweep, askPace{redeemResend, redeemTimeout}, func(visitKey) bool { return true })
	c.goOnAll(lost, itIsFree, Pass{}, now)
	groups := map[crdt.NodeID][]redemption{}
	for _, a := range send {
		to := c.owner(a.key.room, a.key.visitor)
		if to == c.self.Node {
			is, holds := a.first.room.claim(a.key.visitor, to, a.number, now)
			c.goOnAll(c.redeems.replied(a.number, func(visitKey) bool { return true }), is, holds, now)
			continue
		}
		groups[to] = append(groups[to], redemption{number: a.number, key: a.key, word: isItFree})
	}
	return c.redeemsTo(groups)
}

// tellOwners returns what owners shall know at once of passes that waited.
func (c *Core) tellOwners() []Message {
	if len(c.redemptions) == 0 {
		return nil // nearly always
	}
	groups := map[crdt.NodeID][]redemption{}
	for _, q := range c.redemptions {
		if to := c.owner(q.key.room, q.key.visitor); to != c.self.Node {
			groups[to] = append(groups[to], q)
		}
	}
	clear(c.redemptions)
	c.redemptions = c.redemptions[:0]
	return c.redeemsTo(groups)
}

func (c *Core) redeemsTo(groups map[crdt.NodeID][]redemption) (out []Message) {
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
		r := c.roused(q.key.room)
		switch {
		case r == nil: // see Core.keepRooms
		case q.word == notUsed:
			c.stripes.ofVisitor(q.key.visitor).unclaim(claim{q.key, from.ID, q.number})
		case q.word == isInside:
			r.letInElsewhere(q.key.visitor, q.admission, now)
		case q.word == isItFree:
			var holds Pass
			if q.word, holds = r.claim(q.key.visitor, from.ID, q.number, now); q.word == isInside {
				q.admission = admissionOf(holds)
			}
			answers = append(answers, q)
		}
	}
	if len(answers) == 0 {
		return nil, nil
	}
	return []Message{c.message(from.ID, kindRedeemed, encodeRedeems(answers))}, nil
}

// takeRedeemed goes on with the visitors who waited for their owner's word. Whoever then
// wants a ticket is applied for at once.
func (c *Core) takeRedeemed(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	items, err := decodeRedeems(payload)
	if err != nil {
		return nil, err
	}
	if from.Site != c.site {
		return nil, fmt.Errorf("%w: passes redeemed in site %q", errMalformed, from.Site)
	}
	for _, q := range items {
		r := c.roused(q.key.room)
		switch {
		case r == nil, q.word < itIsFree:
		case q.number == 0 && q.word == isInside:
			r.letInElsewhere(q.key.visitor, q.admission, now)
		case q.number != 0:
			// Who owns the visitor may have changed since it was asked.
			waiting := c.redeems.replied(q.number, func(k visitKey) bool { return k == q.key })
			c.goOnAll(waiting, q.word, q.pass(r, q.key.visitor, now), now)
		}
	}
	return nil, nil
}

// letInElsewhere notes that somebody who is owned here, or waits here, was let in at
// another node.
func (r *Room) letInElsewhere(v VisitorID, a admission, now time.Time) {
	q := redeemed{pass: a.pass(r, v, now), is: confirmed, kept: r.redeemedFor()}
	r.core.stripes.ofVisitor(v).note(visitKey{r.id, v}, q, now)
}

// encodeRedeems writes [version, n, then per word: number, room, visitor, word; and for
// isInside anchor, boot, block, seq, arrival ms, accepted ms, end ms].
func encodeRedeems(items []redemption) []byte {
	var buf bytes.Buffer
	buf.Grow(8 + 128*len(items))
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(2)
	e.EncodeUint(redeemVersion)
	e.EncodeArrayLen(len(items))
	for _, q := range items {
		fields := redeemFields
		if q.word == isInside {
			fields += admissionFields
		}
		e.EncodeArrayLen(fields)
		e.EncodeUint(q.number)
		e.EncodeBytes(q.key.room[:])
		e.EncodeBytes(q.key.visitor[:])
		e.EncodeUint(uint64(q.word))
		if q.word == isInside {
			encodeAdmission(e, q.admission)
		}
	}
	return buf.Bytes()
}

const (
	redeemFields    = 4
	admissionFields = 7

	// minRedeemBytes is the least that one encoded redemption takes.
	minRedeemBytes = 1 + 2*18 + 2
)

// encodeAdmission writes into an array that is open: anchor, boot, block, seq, arrival ms,
// accepted ms, end ms.
func encodeAdmission(e *msgpack.Encoder, a admission) {
	e.EncodeBytes(a.ticket.Anchor[:])
	e.EncodeUint(a.ticket.Boot)
	e.EncodeUint(uint64(a.ticket.Block))
	e.EncodeUint(a.ticket.Seq)
	e.EncodeInt(a.arrival.UnixMilli())
	e.EncodeInt(a.accepted.UnixMilli())
	e.EncodeInt(a.end.UnixMilli())
}

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
	fields, err := d.DecodeArrayLen()
	if err != nil {
		return err
	}
	var is uint64
	err = errors.Join(
		decodeInto(&q.number, d.DecodeUint64),
		decodeID(d, q.key.room[:]),
		decodeID(d, q.key.visitor[:]),
		decodeInto(&is, d.DecodeUint64),
	)
	switch {
	case err != nil:
		return err
	case is >= uint64(words):
		return fmt.Errorf("word %d", is)
	}
	q.word = word(is)
	want := redeemFields
	if q.word == isInside {
		want += admissionFields
		err = decodeAdmission(d, &q.admission)
	}
	if fields != want {
		return fmt.Errorf("%d fields", fields)
	}
	return err
}

// decodeAdmission reads what encodeAdmission writes. A ticket of nobody is refused.
func decodeAdmission(d *msgpack.Decoder, a *admission) error {
	var block uint64
	at := func() (time.Time, error) { return decodeMillis(d) }
	err := errors.Join(
		decodeID(d, a.ticket.Anchor[:]),
		decodeInto(&a.ticket.Boot, d.DecodeUint64),
		decodeInto(&block, d.DecodeUint64),
		decodeInto(&a.ticket.Seq, d.DecodeUint64),
		decodeInto(&a.arrival, at),
		decodeInto(&a.accepted, at),
		decodeInto(&a.end, at),
	)
	if err != nil {
		return err
	}
	if block > 1<<32-1 {
		return fmt.Errorf("block %d is out of range", block)
	}
	if a.ticket.Block = uint32(block); a.ticket.IsZero() {
		return errors.New("a session without a ticket")
	}
	return nil
}
