package node

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
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

// asks holds the questions to anchors that have no reply yet. It joins those who
// ask the same at the same time, so that one pass sent a thousand times does not
// become a thousand messages. The zero value is ready.
type asks struct {
	mu       sync.Mutex // guards the following
	closed   bool       // nobody answers any more
	open     map[sessionKey]*asking
	numbered map[uint64]*asking
	order    []*asking // as they came; answered ones go with the next sweep
	sent     int       // how many of order have been sent
	last     uint64    // number of the newest question
}

type asking struct {
	key     sessionKey
	number  uint64
	passEnd time.Time
	at      time.Time  // of the first request
	sent    time.Time  // zero: not yet
	waiting []*pending // nil: answered
}

// add has a request wait for its anchor's word. It reports whether it may.
func (a *asks) add(w *pending) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	k := sessionKey{w.room.id, w.pass.Ticket}
	q := a.open[k]
	if q == nil {
		if a.open == nil {
			a.open, a.numbered = map[sessionKey]*asking{}, map[uint64]*asking{}
		}
		a.last++
		q = &asking{key: k, number: a.last, passEnd: w.pass.LeaseEnd, at: w.at}
		a.open[k], a.numbered[q.number] = q, q
		a.order = append(a.order, q)
	}
	q.waiting = append(q.waiting, w)
	return true
}

// due returns the questions that shall be sent now and those that are given up.
// Without sweep, only those that were never sent are looked at.
func (a *asks) due(now time.Time, sweep bool, reachable func(crdt.NodeID) bool) (send []question, lost []*pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.sent
	if sweep {
		from = 0
	}
	keep := a.order[:from]
	for _, q := range a.order[from:] {
		switch {
		case q.waiting == nil:
			continue
		case !reachable(q.key.ticket.Anchor) || now.Sub(q.at) >= askTimeout:
			lost = append(lost, a.closeLocked(q)...)
			continue
		case q.sent.IsZero() || now.Sub(q.sent) >= askResend:
			q.sent = now
			age := min(max(0, now.Sub(q.at)), maxAge)
			send = append(send, question{q.number, q.key.room, q.key.ticket, q.passEnd, age})
		}
		keep = append(keep, q)
	}
	clear(a.order[len(keep):])
	a.order, a.sent = keep, len(keep)
	return send, lost
}

// replied returns who waited for a reply; nobody if its sender, by whom anchors are
// spoken for, was not asked.
func (a *asks) replied(by func(anchor crdt.NodeID) bool, number uint64) []*pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.numbered[number]
	if q == nil || !by(q.key.ticket.Anchor) {
		return nil
	}
	return a.closeLocked(q)
}

func (a *asks) closeLocked(q *asking) []*pending {
	waiting := q.waiting
	q.waiting = nil
	delete(a.open, q.key)
	delete(a.numbered, q.number)
	return waiting
}

// close returns all who wait. From then on nobody may.
func (a *asks) close() (all []*pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, q := range a.order {
		all = append(all, a.closeLocked(q)...)
	}
	a.order, a.sent = nil, 0
	return all
}

// sendQuestions returns what anchors shall be asked, and answers those whose
// anchor is gone or silent. sweep looks at older questions too.
func (c *Core) sendQuestions(now time.Time, sweep bool) []Message {
	send, lost := c.asks.due(now, sweep, c.reaches)
	for _, w := range lost {
		v, n := w.room.answered(w.pass, time.Time{}, silent, now)
		c.settle(w, v, n, now)
	}
	var out []Message
	for _, q := range send {
		c.slot++
		out = append(out, Message{To: c.facts.heir(q.ticket.Anchor), Kind: kindAsk, Slot: c.slot, Payload: encodeQuestion(q)})
	}
	return out
}

// takeQuestion answers another node for one of this node's own tickets.
func (c *Core) takeQuestion(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	q, err := decodeQuestion(payload)
	if err != nil {
		return nil, err
	}
	r := c.rooms[q.room]
	if r == nil {
		return nil, nil // see Core.keepRooms
	}
	if !c.answersFor(q.ticket.Anchor) {
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
	by := func(anchor crdt.NodeID) bool { return anchor == from.ID || c.facts.heir(anchor) == from.ID }
	for _, w := range c.asks.replied(by, a.number) {
		v, n := w.room.answered(w.pass, a.end, is, now)
		c.settle(w, v, n, now)
	}
	return c.sendHot(now), nil
}
