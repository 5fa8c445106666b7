package transport

import (
	"encoding/binary"
	"sync/atomic"
)

// Memberlist and serf decode what peers send with a general decoder, in
// goroutines of their own, where a panic would end the process and where a
// header that claims millions of elements is believed. So nothing reaches
// them before it was walked through here: only the kinds of message that a
// mesh of ours sends, well-formed to the last byte, no deeper nested and no
// larger than the bytes that came.

// Kinds of memberlist message.
const (
	mlPing         = 0
	mlIndirectPing = 1
	mlAck          = 2
	mlSuspect      = 3
	mlAlive        = 4
	mlDead         = 5
	mlPushPull     = 6
	mlCompound     = 7
	mlUser         = 8
	mlNack         = 11
	mlChecksum     = 12
	mlError        = 13
)

// Kinds of serf message, inside a memberlist user message or exchange.
const (
	serfLeave    = 0
	serfJoin     = 1
	serfPushPull = 2
)

// serfTagsMagic precedes the tags in a member's meta data.
const serfTagsMagic = 255

const (
	maxGossipNodes = 10_000
	// maxLamportJump bounds what one message may add to serf's logical
	// clock. It has no ceiling of its own, so that a single message could
	// otherwise wear it out for everybody; a true cluster needs ages for
	// such a step.
	maxLamportJump = 1 << 32
)

// gossipCheck checks what peers send before memberlist sees it. The zero
// value is ready.
type gossipCheck struct {
	lamport atomic.Uint64 // highest logical time let through
}

// packet checks one datagram.
func (c *gossipCheck) packet(b []byte) error {
	if len(b) >= 5 && b[0] == mlChecksum {
		b = b[5:]
	}
	if len(b) == 0 {
		return malformed("empty gossip")
	}
	if b[0] != mlCompound {
		return c.message(b)
	}
	return c.compound(b[1:])
}

// compound checks a bundle: count (1), lengths (2 each), messages.
func (c *gossipCheck) compound(b []byte) error {
	if len(b) == 0 || len(b) < 1+2*int(b[0]) {
		return malformed("gossip bundle cut in its head")
	}
	n := int(b[0])
	lengths, b := b[1:1+2*n], b[1+2*n:]
	for i := range n {
		size := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if size == 0 || size > len(b) {
			return malformed("gossip bundle cut in part %d", i)
		}
		if err := c.message(b[:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	if len(b) != 0 {
		return malformed("bytes after a gossip bundle")
	}
	return nil
}

// message checks one message that is not a bundle.
func (c *gossipCheck) message(b []byte) error {
	kind, b := b[0], b[1:]
	switch kind {
	case mlPing, mlIndirectPing, mlAck, mlSuspect, mlDead, mlNack:
		return wholeMap(b, nil)
	case mlAlive:
		return wholeMap(b, checkNodeField)
	case mlUser:
		return c.serfMessage(b)
	}
	return malformed("gossip of kind %d", kind)
}

// checkNodeField looks into the one field of a member that is decoded again.
func checkNodeField(key string, value []byte) error {
	switch key {
	case "Meta":
		meta, _, err := mpBytes(value)
		if err != nil || len(meta) == 0 {
			return err
		}
		if meta[0] != serfTagsMagic {
			return malformed("tags in an unknown form")
		}
		return wholeMap(meta[1:], func(_ string, v []byte) error {
			_, _, err := mpBytes(v)
			return err
		})
	case "Vsn":
		if vsn, _, err := mpBytes(value); err != nil || len(vsn) != 6 {
			return malformed("protocol versions of %d bytes", len(vsn))
		}
	}
	return nil
}

// serfMessage checks what serf makes of a user message. Events, queries and
// the rest of what serf can do are not used here and therefore refused.
func (c *gossipCheck) serfMessage(b []byte) error {
	if len(b) == 0 {
		return malformed("empty serf message")
	}
	if b[0] != serfLeave && b[0] != serfJoin {
		return malformed("serf message of kind %d", b[0])
	}
	return wholeMap(b[1:], c.checkLamport)
}

// checkLamport refuses logical times from nowhere.
func (c *gossipCheck) checkLamport(key string, value []byte) error {
	switch key {
	case "LTime", "EventLTime", "QueryLTime":
		t, _, err := mpUint(value)
		if err != nil {
			return err
		}
		return c.witness(t)
	case "StatusLTimes":
		if _, isNil := mpNil(value); isNil {
			return nil
		}
		return wholeMap(value, func(_ string, v []byte) error {
			t, _, err := mpUint(v)
			if err != nil {
				return err
			}
			return c.witness(t)
		})
	case "Events":
		return checkNoEvents(value)
	}
	return nil
}

func (c *gossipCheck) witness(t uint64) error {
	for {
		top := c.lamport.Load()
		if t <= top {
			return nil
		}
		if t-top > maxLamportJump {
			return malformed("logical time %d jumps too far ahead of %d", t, top)
		}
		if c.lamport.CompareAndSwap(top, t) {
			return nil
		}
	}
}

// checkNoEvents accepts the empty ring of events that serf sends along.
func checkNoEvents(b []byte) error {
	if _, ok := mpNil(b); ok {
		return nil
	}
	n, b, err := mpArray(b)
	if err != nil {
		return err
	}
	for range n {
		var ok bool
		if b, ok = mpNil(b); !ok {
			return malformed("serf events are not used here")
		}
	}
	return nil
}

// exchange checks one side of a full exchange: header, members, serf's state.
func (c *gossipCheck) exchange(b []byte) error {
	if len(b) == 0 {
		return malformed("empty exchange")
	}
	kind, b := b[0], b[1:]
	if kind == mlError {
		return wholeMap(b, nil)
	}
	if kind != mlPushPull {
		return malformed("exchange of kind %d", kind)
	}
	var nodes, userLen uint64
	rest, err := mpMap(b, func(key string, v []byte) error {
		var err error
		switch key {
		case "Nodes":
			nodes, _, err = mpUint(v)
		case "UserStateLen":
			userLen, _, err = mpUint(v)
		}
		return err
	})
	if err != nil {
		return err
	}
	if nodes > maxGossipNodes || nodes > uint64(len(rest)) {
		return malformed("exchange of %d members in %d bytes", nodes, len(rest))
	}
	for range nodes {
		if rest, err = mpMap(rest, checkNodeField); err != nil {
			return err
		}
	}
	if uint64(len(rest)) != userLen {
		return malformed("exchange with %d bytes of state, announced were %d", len(rest), userLen)
	}
	if userLen == 0 {
		return nil
	}
	if rest[0] != serfPushPull {
		return malformed("exchange with serf state of kind %d", rest[0])
	}
	return wholeMap(rest[1:], c.checkLamport)
}
