package node

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

const (
	// askTimeout is how long an anchor has to say whether a session goes on.
	askTimeout = time.Second

	// askResend is after how long it is asked again: often enough that one lost
	// message does not look like a lost anchor.
	askResend = 300 * time.Millisecond
)

// answer is what became of a question to an anchor.
type answer int

const (
	silent answer = iota // nobody answered
	goesOn
	over
)

// question asks an anchor whether a session goes on. It carries an age, not a
// time, so that the clocks of the two nodes do not matter.
type question struct {
	number  uint64 // names the question in the reply
	room    crdt.RoomID
	ticket  ticket.Ticket
	passEnd time.Time
	age     time.Duration // since the visitor's request
}

// reply is the anchor's word. A zero end says that the session is over.
type reply struct {
	number uint64
	end    time.Time
}

const askVersion = 2

func encodeQuestion(q question) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(9)
	e.EncodeUint(askVersion)
	e.EncodeUint(q.number)
	e.EncodeBytes(q.room[:])
	e.EncodeBytes(q.ticket.Anchor[:])
	e.EncodeUint(q.ticket.Boot)
	e.EncodeUint(uint64(q.ticket.Block))
	e.EncodeUint(q.ticket.Seq)
	e.EncodeInt(q.passEnd.UnixMilli())
	e.EncodeInt(q.age.Milliseconds())
	return buf.Bytes()
}

func decodeQuestion(msg []byte) (q question, err error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 9, askVersion); err != nil {
		return q, err
	}
	var block uint64
	var age int64
	err = errors.Join(
		decodeInto(&q.number, d.DecodeUint64),
		decodeID(d, q.room[:]),
		decodeID(d, q.ticket.Anchor[:]),
		decodeInto(&q.ticket.Boot, d.DecodeUint64),
		decodeInto(&block, d.DecodeUint64),
		decodeInto(&q.ticket.Seq, d.DecodeUint64),
		decodeInto(&q.passEnd, func() (time.Time, error) { return decodeMillis(d) }),
		decodeInto(&age, d.DecodeInt64),
	)
	if err != nil || r.Len() > 0 || block > 1<<32-1 || age < 0 || age > maxAge.Milliseconds() {
		return q, fmt.Errorf("%w: question", errMalformed)
	}
	q.ticket.Block = uint32(block)
	q.age = time.Duration(age) * time.Millisecond
	return q, nil
}

// maxAge is far more than any question travels.
const maxAge = time.Minute

func decodeInto[T any](dst *T, decode func() (T, error)) (err error) {
	*dst, err = decode()
	return err
}

func encodeReply(a reply) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(3)
	e.EncodeUint(askVersion)
	e.EncodeUint(a.number)
	if a.end.IsZero() {
		e.EncodeInt(0)
	} else {
		e.EncodeInt(a.end.UnixMilli())
	}
	return buf.Bytes()
}

func decodeReply(msg []byte) (a reply, err error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 3, askVersion); err != nil {
		return a, err
	}
	var end time.Time
	err = errors.Join(
		decodeInto(&a.number, d.DecodeUint64),
		decodeInto(&end, func() (time.Time, error) { return decodeMillis(d) }),
	)
	if err != nil || r.Len() > 0 {
		return a, fmt.Errorf("%w: reply", errMalformed)
	}
	if end.UnixMilli() > 0 {
		a.end = end
	}
	return a, nil
}

// sendQuestions returns what anchors shall be asked, and answers those whose
// anchor is gone or silent. sweep looks at older questions too.
func (c *Core) sendQuestions(now time.Time, sweep bool) []Message {
	send, lost := c.asks.due(now, sweep, askPace{askResend, askTimeout}, func(k sessionKey) bool { return c.reaches(k.room, k.ticket.Anchor) })
	for _, w := range lost {
		v, n := w.room.answered(w.pass, time.Time{}, silent, now)
		c.settle(w, &v, n, now)
	}
	var out []Message
	for _, a := range send {
		age := min(max(0, now.Sub(a.first.at)), maxAge)
		q := question{a.number, a.key.room, a.key.ticket, a.first.pass.LeaseEnd, age}
		out = append(out, c.message(c.heir(q.room, q.ticket.Anchor), kindAsk, encodeQuestion(q)))
	}
	return out
}

// takeQuestion answers another node for one of this node's own tickets.
func (c *Core) takeQuestion(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	q, err := decodeQuestion(payload)
	if err != nil {
		return nil, err
	}
	r := c.roused(q.room)
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	if !r.answersFor(q.ticket.Anchor) {
		return nil, fmt.Errorf("%w: question for room %s of anchor %s", errMalformed, q.room, q.ticket.Anchor)
	}
	if !c.open.Load() || r.unheard(q.ticket.Anchor) {
		return nil, nil // not answered: it is asked again
	}
	c.collect(now) // somebody let in here a moment ago may be there already
	var end time.Time
	if !r.over(q.ticket) {
		end, _ = r.extend(q.ticket, q.passEnd, now.Add(-q.age), now)
	}
	c.slot++
	return []Message{{To: from.ID, Kind: kindAnswer, Slot: c.slot, Payload: encodeReply(reply{q.number, end})}}, nil
}

// takeReply goes on with the requests that waited for an anchor's word.
// Whoever then wants a ticket instead is applied for at once.
func (c *Core) takeReply(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	a, err := decodeReply(payload)
	if err != nil {
		return nil, err
	}
	is := goesOn
	if a.end.IsZero() {
		is = over
	}
	by := func(k sessionKey) bool {
		return k.ticket.Anchor == from.ID || c.heir(k.room, k.ticket.Anchor) == from.ID
	}
	for _, w := range c.asks.replied(a.number, by) {
		v, n := w.room.answered(w.pass, a.end, is, now)
		c.settle(w, &v, n, now)
	}
	return nil, nil
}
