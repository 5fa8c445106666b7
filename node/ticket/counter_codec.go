package ticket

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// counterVersion 1 knew no tickets of other anchors, 2 did not say how long their
// sessions last.
const counterVersion = 3

// AppendCall appends the encoding of c to dst: version, room, scope, number, how
// many tickets of each kind, void, got, booked, seq.
func AppendCall(dst []byte, c Call) []byte {
	w := newCounterWriter(dst, c.Room, c.Scope, c.Number, c.Want)
	w.number(c.Void)
	w.number(c.Got)
	w.number(c.Booked)
	w.number(c.Seq)
	return w.buf.Bytes()
}

// DecodeCall takes apart what AppendCall wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeCall(message []byte) (Call, error) {
	r := newReader(message)
	var c Call
	r.counterHeader(&c.Room, &c.Scope, &c.Number, &c.Want)
	if c.Void = r.number(c.Number); r.err == nil && c.Void == 0 {
		r.fail("call 0 given up; calls are numbered from 1 on")
	}
	c.Got = r.number(maxCounted)
	c.Booked = r.number(c.Got)
	c.Seq = r.number(math.MaxUint64)
	if err := r.finish(); err != nil {
		return Call{}, fmt.Errorf("call: %w", err)
	}
	return c, nil
}

// maxCounted bounds cumulative numbers, so that no sum of them wraps.
const maxCounted = 1 << 48

// AppendGrant appends the encoding of g to dst: version, room, scope, number,
// how many tickets of each kind, retry in ms, leader, the tickets, and how long a session lasts with those of each range.
func AppendGrant(dst []byte, g Grant) []byte {
	w := newCounterWriter(dst, g.Room, g.Scope, g.Number, g.Given)
	w.number(uint64(min(max(0, g.Retry), MaxRetry).Milliseconds()))
	w.keep(w.enc.EncodeBytes(g.Leader[:]))
	w.ranges(g.Tickets)
	for _, x := range g.Tickets {
		w.session(x.Session)
	}
	return w.buf.Bytes()
}

// DecodeGrant takes apart what AppendGrant wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeGrant(message []byte) (Grant, error) {
	r := newReader(message)
	var g Grant
	r.counterHeader(&g.Room, &g.Scope, &g.Number, &g.Given)
	g.Retry = time.Duration(r.number(uint64(MaxRetry.Milliseconds()))) * time.Millisecond
	r.id(g.Leader[:])
	if r.err == nil && g.Leader != (crdt.NodeID{}) && g.Given != (Places{}) {
		r.fail("tickets of a node that is not the counter")
	}
	g.Tickets = r.ranges()
	for i := range g.Tickets {
		g.Tickets[i].Session = r.session()
	}
	if sum := total(g.Tickets); r.err == nil && len(g.Tickets) > 0 && sum != uint64(g.Given.Sum()) {
		r.fail("%d tickets for %d visitors", sum, g.Given.Sum())
	}
	if err := r.finish(); err != nil {
		return Grant{}, fmt.Errorf("grant: %w", err)
	}
	return g, nil
}

func newCounterWriter(dst []byte, room crdt.RoomID, scope Scope, number uint64, p Places) writer {
	w := newBareWriter(dst, counterVersion)
	w.keep(w.enc.EncodeBytes(room[:]))
	w.number(uint64(scope))
	w.number(number)
	w.number(uint64(p.Reserved))
	w.number(uint64(p.Contested))
	return w
}

func (r *reader) counterHeader(room *crdt.RoomID, scope *Scope, number *uint64, p *Places) {
	r.version(counterVersion)
	r.id(room[:])
	*scope = Scope(r.number(uint64(Scopes) - 1))
	*number = r.number(maxCounted)
	p.Reserved = int(r.number(MaxWant))
	p.Contested = int(r.number(MaxWant))
}

// RoomClaim is a claim to the counter of one room. Its holder is the sender.
type RoomClaim struct {
	Room  crdt.RoomID
	Since time.Time

	// Next takes over from the sender, who is the counter no longer: see
	// Lead.Hand. Zero: the sender is the counter.
	Next crdt.NodeID
}

// minClaim is the least that one claim takes: two ids, and a number.
const minClaim = 2*(2+16) + 1

// AppendClaims appends the encoding of at most MaxBatch claims to dst: version,
// how many, then room, Unix ms and next of each.
func AppendClaims(dst []byte, claims []RoomClaim) []byte {
	w := newBareWriter(dst, counterVersion)
	w.keep(w.enc.EncodeArrayLen(len(claims)))
	for _, c := range claims {
		w.keep(w.enc.EncodeBytes(c.Room[:]))
		w.millis(c.Since)
		w.keep(w.enc.EncodeBytes(c.Next[:]))
	}
	return w.buf.Bytes()
}

// DecodeClaims takes apart what AppendClaims wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeClaims(message []byte) ([]RoomClaim, error) {
	r := newReader(message)
	r.version(counterVersion)
	claims := make([]RoomClaim, r.items(minClaim))
	for i := range claims {
		r.id(claims[i].Room[:])
		claims[i].Since = time.UnixMilli(int64(r.number(maxMillis)))
		r.id(claims[i].Next[:])
	}
	if err := r.finish(); err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	return claims, nil
}
