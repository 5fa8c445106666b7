package node

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/history"
	"github.com/ropeline/ropeline/node/replica"
)

// What a node that leaves has recorded goes to another one, once all know that it has left: in pieces of one message
// each, some of which are under way at a time. The other one keeps it with its own, and answers for the leaver from
// then on. Should it end before it has said so, and after it has taken all, and the leaver find another one, what the
// leaver recorded counts twice while both are there; nobody decides by it.

const (
	pastPiece     = 128 << 10               // bytes of what was recorded, in a message
	pastAhead     = 1 << 20                 // bytes that are under way
	pastAgain     = 300 * time.Millisecond  // what nobody says has arrived is sent again
	pastElsewhere = 1500 * time.Millisecond // another node is tried if no more has arrived for so long
	pastPatience  = 6 * time.Second         // that a node which leaves waits for a node to take it all
	pastIdle      = 5 * time.Second         // without another piece, after which what has arrived is dropped
	pastMost      = 4000                    // minutes that are taken over in a tick
	pastKnown     = 10 * time.Minute        // that it is known whose past was taken, who may come back and pass it on again

	pastVersion = 1
)

// passing is a node's own past on its way to another one.
type passing struct {
	data  []byte // nil: it has not begun
	began time.Time
	to    crdt.NodeID
	tried []crdt.NodeID // in this turn
	has   uint64        // bytes that have arrived
	sent  uint64
	at    time.Time // when more arrived, or it was begun with this node
	again time.Time // when something was sent
	done  bool      // the other one has all, or nobody has taken it
	lost  bool      // nobody has
}

// taking is the past of a node that leaves, as it arrives.
type taking struct {
	from crdt.Incarnation // zero: nothing is
	data []byte
	size uint64
	at   time.Time
	in   *history.Inheritance // nil: not all is here yet
}

// passPast sends what is due of this node's past, and reports whether that is done.
func (c *Core) passPast(now time.Time) (out []Message, done bool) {
	p := &c.past.passing
	if c.past.recorder == nil || p.done {
		return nil, true
	}
	if p.data == nil {
		p.began, p.data = now, c.past.all()
	}
	if now.Sub(p.began) >= pastPatience {
		p.done, p.lost = true, true
		return nil, true
	}
	if !c.hears(p.to) || now.Sub(p.at) >= pastElsewhere {
		if !c.choosePastHeir(p) {
			return nil, false
		}
		p.has, p.sent, p.at = 0, 0, now
	} else if now.Sub(p.again) >= pastAgain {
		p.sent = p.has
	}
	return c.sendPast(now), false
}

// all returns all that was recorded, and inherited.
func (p *past) all() []byte {
	data, err := p.recorder.AppendBinary(nil)
	if err != nil {
		panic("node: history of our own: " + err.Error()) // a buffer takes what is written
	}
	return data
}

// hears reports whether a node is there.
func (c *Core) hears(id crdt.NodeID) bool {
	return slices.ContainsFunc(c.peers, func(p replica.Peer) bool { return p.ID == id })
}

// choosePastHeir chooses the next node that may take this one's past: its heir first, since that has stayed for it.
func (c *Core) choosePastHeir(p *passing) bool {
	if !slices.Contains(p.tried, c.leave.heir) && c.hears(c.leave.heir) && !c.facts.gone(c.leave.heir) {
		p.to = c.leave.heir
	} else if heir, ok := c.chooseHeir(p.tried); ok {
		p.to = heir
	} else {
		p.to, p.tried = crdt.NodeID{}, nil // all over again
		return false
	}
	p.tried = append(p.tried, p.to)
	return true
}

// sendPast sends as many pieces as may be under way.
func (c *Core) sendPast(now time.Time) (out []Message) {
	p := &c.past.passing
	for size := uint64(len(p.data)); p.sent < size && p.sent < p.has+pastAhead; {
		end := min(size, p.sent+pastPiece)
		b := binary.BigEndian.AppendUint64([]byte{pastVersion}, size)
		b = binary.BigEndian.AppendUint64(b, p.sent)
		out = append(out, c.message(p.to, kindPast, append(b, p.data[p.sent:end]...)))
		p.sent, p.again = end, now
	}
	return out
}

// takePastTaken notes how much of this node's past has arrived.
func (c *Core) takePastTaken(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	if len(payload) != 10 || payload[0] != pastVersion {
		return nil, fmt.Errorf("%w: how much has arrived of what was recorded", errMalformed)
	}
	p := &c.past.passing
	if p.data == nil || p.done || from.ID != p.to {
		return nil, nil
	}
	if p.done = payload[1] != 0; p.done {
		return nil, nil
	}
	if has := binary.BigEndian.Uint64(payload[2:]); has >= p.has && has <= uint64(len(p.data)) {
		p.has, p.sent, p.at = has, max(p.sent, has), now
	}
	return c.sendPast(now), nil
}

// takePast takes a piece of the past of a node that has left. Of two that leave at a time the second one waits, or finds
// another node.
func (c *Core) takePast(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	if len(payload) < 17 || payload[0] != pastVersion {
		return nil, fmt.Errorf("%w: a piece of what was recorded", errMalformed)
	}
	p := &c.past
	if _, has := p.taken[from.ID]; has {
		return []Message{c.pastTaken(from.ID, 0, true)}, nil
	}
	size, at, piece := binary.BigEndian.Uint64(payload[1:]), binary.BigEndian.Uint64(payload[9:]), payload[17:]
	if p.recorder == nil || c.leave.on || !c.open.Load() || !c.facts.hasLeft(from.ID) {
		return nil, nil
	}
	if size > uint64(p.recorder.Most()) || at > size || uint64(len(piece)) > size-at {
		return nil, fmt.Errorf("%w: bytes from %d of %d of what was recorded", errMalformed, at, size)
	}
	t, sender := &p.taking, crdt.Incarnation{Node: from.ID, Boot: from.Boot}
	if t.from != sender || t.size != size {
		if t.from != (crdt.Incarnation{}) && t.from.Node != from.ID {
			return nil, nil
		}
		if t.in != nil {
			return nil, nil // it has started again: what it had said before is on its way in
		}
		*t = taking{from: sender, size: size}
	}
	if at == uint64(len(t.data)) && t.in == nil {
		t.data, t.at = append(t.data, piece...), now
		if uint64(len(t.data)) == size {
			return c.beginTaking(), nil
		}
	}
	return []Message{c.pastTaken(from.ID, uint64(len(t.data)), false)}, nil
}

// beginTaking takes over what has arrived from here on.
func (c *Core) beginTaking() []Message {
	t := &c.past.taking
	var err error
	if t.in, err = history.NewInheritance(t.data); err != nil { // nobody can make anything of it
		return c.taken(t.at)
	}
	return []Message{c.pastTaken(t.from.Node, t.size, false)}
}

func (c *Core) pastTaken(to crdt.NodeID, has uint64, done bool) Message {
	b := []byte{pastVersion, 0}
	if done {
		b[1] = 1
	}
	return c.message(to, kindPastTaken, binary.BigEndian.AppendUint64(b, has))
}

// takePastOver takes over a part of what has arrived.
func (c *Core) takePastOver(now time.Time) []Message {
	p := &c.past
	t := &p.taking
	switch {
	case t.from == (crdt.Incarnation{}):
		return nil
	case t.in == nil:
		if now.Sub(t.at) >= pastIdle || now.Before(t.at) || c.leave.on {
			*t = taking{}
		}
		return nil
	}
	done, err := p.recorder.Inherit(t.in, pastMost)
	if err != nil {
		c.refusals.total.Add(1)
	}
	p.bytes.Store(uint64(p.recorder.Bytes()))
	if !done {
		return []Message{c.pastTaken(t.from.Node, t.size, false)} // so that nobody else is asked meanwhile
	}
	if frame, err := t.in.AppendBinary(nil); err == nil && len(p.closed) < maxClosed {
		p.closed = append(p.closed, frame)
	}
	return c.taken(now)
}

// taken has this node answer for whom it has taken over from.
func (c *Core) taken(now time.Time) []Message {
	p := &c.past
	from := p.taking.from.Node
	p.taking = taking{}
	noteFact(&p.taken, from, now)
	return []Message{c.pastTaken(from, 0, true)}
}

// answersForPast returns the nodes whose past this one has, and who may still tell of it themselves.
func (c *Core) answersForPast() (all []crdt.NodeID) {
	if t := &c.past.taking; t.in != nil {
		all = append(all, t.from.Node)
	}
	for id := range c.past.taken {
		if c.hears(id) {
			all = append(all, id)
		}
	}
	return all
}

// forgetTaken forgets whose past was taken over long ago, and who is gone.
func (c *Core) forgetTaken(now time.Time) {
	for id, at := range c.past.taken {
		if now.Sub(at) >= pastKnown && !c.hears(id) {
			delete(c.past.taken, id)
		}
	}
}

// PastPassed reports whether another node has all that this one has recorded.
func (c *Core) PastPassed() bool { return c.leave.done && c.past.passing.done && !c.past.passing.lost }

// PastLost reports whether a node that has left could pass what it recorded on to nobody.
func (c *Core) PastLost() bool { return c.past.passing.lost }
