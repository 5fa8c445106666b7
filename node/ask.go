package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// askTimeout is how long an anchor has to say whether a session goes on.
const askTimeout = time.Second

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
	room    crdt.RoomID
	ticket  ticket.Ticket
	passEnd time.Time
	age     time.Duration // since the visitor's request
}

// reply is the anchor's word. A zero end says that the session is over.
type reply struct {
	end time.Time
}

const askVersion = 1

func encodeQuestion(q question) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(8)
	e.EncodeUint(askVersion)
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
	if err := expectHeader(d, 8, askVersion); err != nil {
		return q, err
	}
	var block uint64
	var age int64
	err = errors.Join(
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
	e.EncodeArrayLen(2)
	e.EncodeUint(askVersion)
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
	if err := expectHeader(d, 2, askVersion); err != nil {
		return a, err
	}
	end, err := decodeMillis(d)
	if err != nil || r.Len() > 0 {
		return a, fmt.Errorf("%w: reply", errMalformed)
	}
	if end.UnixMilli() > 0 {
		a.end = end
	}
	return a, nil
}

// caller asks another node and waits for the answer.
type caller func(ctx context.Context, to crdt.NodeID, method uint8, req []byte) ([]byte, error)

// ask asks a session's anchor whether it goes on. p has run out, as far as p
// itself tells.
func (c *Core) ask(ctx context.Context, r *Room, p Pass, now time.Time) (time.Time, answer) {
	if p.Ticket.Anchor == c.self.Node {
		if end, ok := r.extend(p.Ticket, p.LeaseEnd, now, now); ok {
			return end, goesOn
		}
		return time.Time{}, over
	}
	if c.call == nil {
		return time.Time{}, silent
	}
	return c.asks.once(sessionKey{r.id, p.Ticket}, func() (time.Time, answer) {
		return c.askAnchor(ctx, r, p)
	})
}

func (c *Core) askAnchor(ctx context.Context, r *Room, p Pass) (time.Time, answer) {
	// The question may be under way for as long as the answer is waited for; the
	// anchor reckons from when it arrives.
	msg, err := c.call(ctx, p.Ticket.Anchor, methodAsk, encodeQuestion(question{
		room: r.id, ticket: p.Ticket, passEnd: p.LeaseEnd,
	}))
	if err != nil {
		return time.Time{}, silent
	}
	a, err := decodeReply(msg)
	switch {
	case err != nil:
		return time.Time{}, silent
	case a.end.IsZero():
		return time.Time{}, over
	}
	return a.end, goesOn
}

// asks joins those who ask the same at the same time, so that one pass sent a
// thousand times does not become a thousand calls. The zero value is ready.
type asks struct {
	mu   sync.Mutex // guards the following
	open map[sessionKey]*asking
}

type asking struct {
	done chan struct{} // closed once the following are set
	end  time.Time
	is   answer
}

// once returns what ask says, or what it says to somebody who asked before and
// has no answer yet.
func (a *asks) once(k sessionKey, ask func() (time.Time, answer)) (time.Time, answer) {
	a.mu.Lock()
	q, ok := a.open[k]
	if ok {
		a.mu.Unlock()
		<-q.done // no longer than the first one waits
		return q.end, q.is
	}
	if a.open == nil {
		a.open = map[sessionKey]*asking{}
	}
	q = &asking{done: make(chan struct{})}
	a.open[k] = q
	a.mu.Unlock()
	defer func() { // also if ask panics: nobody shall wait for ever
		a.mu.Lock()
		delete(a.open, k)
		a.mu.Unlock()
		close(q.done)
	}()
	q.end, q.is = ask()
	return q.end, q.is
}

// errNotReady is answered while the node does not hold its site's state.
var errNotReady = errors.New("not ready yet")

// Answer answers the call of another node. Any goroutine may call it.
func (c *Core) Answer(method uint8, req []byte, now time.Time) ([]byte, error) {
	if method != methodAsk {
		return nil, fmt.Errorf("%w: method %d", errMalformed, method)
	}
	q, err := decodeQuestion(req)
	if err != nil {
		return nil, err
	}
	r := c.rooms[q.room]
	if r == nil {
		return nil, fmt.Errorf("room %s is not kept here", q.room)
	}
	if !c.open.Load() {
		return nil, errNotReady
	}
	end, _ := r.extend(q.ticket, q.passEnd, now.Add(-q.age), now)
	return encodeReply(reply{end}), nil
}
