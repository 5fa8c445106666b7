package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Who takes over from a node that leaves. What it passes on it has passed on for good,
// and whoever leaves takes nothing more: two nodes that passed their rights on to each
// other, or three in a circle, would keep them for ever. So a node asks before it
// begins, who leaves agrees to nothing, and who has agreed stays for as long as the
// other one may begin on that.

const (
	// heirAnswers is how long a node waits for an answer before it asks another one.
	heirAnswers = 500 * time.Millisecond
	// heirAgreed is how long after it was asked for a word is good.
	heirAgreed = 2 * time.Second
	// heirStays is how long who has agreed does not begin to leave itself.
	heirStays = 3 * time.Second
)

// seeking is where a node stands that looks for an heir.
type seeking struct {
	on    bool
	asked []crdt.NodeID // in this turn
	at    time.Time     // when the last of them was
	rooms *[]*Room      // those that this node kept, and had told of, when it asked last
	stays time.Time     // until then this node itself has agreed to be an heir, or may have
}

// seekHeir asks the next node whether it would take over.
func (c *Core) seekHeir(now time.Time) []Message {
	s := &c.leave.seeking
	if !s.on || now.Before(s.stays) || now.Sub(s.at) < heirAnswers && !now.Before(s.at) {
		return nil
	}
	heir, ok := c.chooseHeir(s.asked)
	s.at = now
	if !ok {
		s.asked = nil // all over again
		return nil
	}
	s.asked, s.rooms = append(s.asked, heir), c.shown.Load()
	return []Message{c.message(heir, kindHeir, encodeOffer(offer{at: now.UnixMilli(), told: c.replica.Written()}))}
}

// chooseHeir returns who might take over from this node: a ready node of its site, or
// else any, but none of those who were asked already.
func (c *Core) chooseHeir(asked []crdt.NodeID) (crdt.NodeID, bool) {
	var near, far []crdt.NodeID
	for _, p := range c.peers {
		switch {
		case !p.Ready || p.ID == c.self.Node || c.facts.gone(p.ID) || slices.Contains(asked, p.ID):
		case p.Site == c.site:
			near = append(near, p.ID)
		default:
			far = append(far, p.ID)
		}
	}
	if len(near) == 0 {
		near = far
	}
	if len(near) == 0 {
		return crdt.NodeID{}, false
	}
	return room.Owner(c.key, crdt.RoomID{}, VisitorID(c.self.Node), near), true
}

// takeOffer answers a node that looks for an heir. Of two that look for one and ask each
// other, the one with the lesser id agrees. Nobody agrees who has not heard all that the other has
// said: what it minted, and in which rooms it has something. Without that an heir would say that it
// has all when it has some.
func (c *Core) takeOffer(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	o, err := decodeOffer(payload)
	if err != nil {
		return nil, err
	}
	if !c.open.Load() {
		return nil, nil // it asks another one
	}
	s := &c.leave.seeking
	if known := c.replica.Knows(from.ID, o.told) || c.facts.leaveOut&ticket.FreshMint != 0; !known {
		return nil, nil // it asks again, and is heard soon
	}
	o.agreed = c.fit() && !c.leave.on && (!s.on || compareNodes(c.self.Node, from.ID) < 0)
	if until := now.Add(heirStays); o.agreed && s.stays.Before(until) {
		s.stays = until
	}
	return []Message{c.message(from.ID, kindAgreed, encodeOffer(o))}, nil
}

// takeAgreed begins to leave if the other node has agreed in time to take over.
func (c *Core) takeAgreed(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	o, err := decodeOffer(payload)
	s := &c.leave.seeking
	if err != nil || !s.on {
		return nil, err
	}
	age := now.UnixMilli() - o.at
	switch {
	case now.Before(s.stays) || c.facts.gone(from.ID):
		return nil, nil
	case !o.agreed:
		s.at = time.Time{}
		return c.seekHeir(now), nil
	case age < 0 || age > heirAgreed.Milliseconds(), s.rooms != c.shown.Load():
		return nil, nil // too late, or this node has something in other rooms by now
	}
	return c.leaveTo(from.ID, now), nil
}

// offer is a question whether a node would take over, and the answer.
type offer struct {
	at     int64 // when it was asked, by the clock of who asked, ms since 1970
	agreed bool
	told   uint64 // the number of all that who asked has said
}

const offerVersion = 2

// encodeOffer writes [version, at, agreed, told].
func encodeOffer(o offer) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(4)
	e.EncodeUint(offerVersion)
	e.EncodeInt(o.at)
	e.EncodeBool(o.agreed)
	e.EncodeUint(o.told)
	return buf.Bytes()
}

func decodeOffer(payload []byte) (o offer, err error) {
	r := bytes.NewReader(payload)
	d := msgpack.NewDecoder(r)
	n, err := d.DecodeArrayLen()
	var version uint64
	if err == nil {
		version, err = d.DecodeUint64()
	}
	if err != nil || version != offerVersion || n != 4 {
		return offer{}, fmt.Errorf("%w: offer of %d elements, version %d", errMalformed, n, version)
	}
	err = errors.Join(decodeInto(&o.at, d.DecodeInt64), decodeInto(&o.agreed, d.DecodeBool), decodeInto(&o.told, d.DecodeUint64))
	if err != nil || r.Len() > 0 {
		return offer{}, fmt.Errorf("%w: whether to take over", errMalformed)
	}
	return o, nil
}
