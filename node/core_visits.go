package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// What the nodes of a site tell each other of visitors.

// sendVisits tells owners of visits. What is this node's own to count waits for as long as
// what is others': all of the site see a crowd grow alike.
func (c *Core) sendVisits(now time.Time) []Message {
	if since := now.Sub(c.visits.flushed); len(c.nodes) > 1 && since >= 0 && since < visitsEvery && len(c.visits.pending) < maxVisits {
		return nil
	}
	out := c.visits.flush(now, c.self.Node, func(v visit) crdt.NodeID { return c.owner(v.room, v.visitor) })
	keep := out[:0]
	for _, m := range out {
		if m.To != c.self.Node {
			keep = append(keep, m)
			continue
		}
		for _, v := range c.visits.land(m.Slot) {
			c.visited(v, now)
		}
	}
	if len(keep)+len(c.visits.pending) > 0 {
		c.visits.flushed = now
	}
	return keep
}

// takeVisits counts what another node of the site says of visitors owned here.
// A visitor may just have got another owner; counting here as well does no harm,
// since who does not come again is soon not counted.
func (c *Core) takeVisits(from replica.Peer, payload []byte, now time.Time) ([]Message, error) {
	batch, items, err := decodeVisits(payload)
	if err != nil {
		return nil, err
	}
	if from.Site != c.site {
		return nil, fmt.Errorf("%w: visits from site %q", errMalformed, from.Site)
	}
	if !c.open.Load() {
		return nil, nil // not acknowledged: it will be sent again
	}
	var in []redemption
	for _, v := range items {
		if q := c.visited(v, now); q.is == confirmed {
			in = append(in, redemption{key: v.key(), word: isInside, admission: admissionOf(q.pass)})
		}
	}
	out := []Message{{To: from.ID, Kind: kindVisitsAck, Slot: batch, Payload: encodeAck(batch)}}
	for some := range slices.Chunk(in, maxRedeems) {
		out = append(out, c.message(from.ID, kindRedeemed, encodeRedeems(some)))
	}
	return out, nil
}

// visited counts a visitor who is owned here, and returns what somebody who waits, and was
// let in already, has got: the answer has not reached them.
func (c *Core) visited(v visit, now time.Time) (q redeemed) {
	r := c.roused(v.room)
	if r == nil {
		return q
	}
	if r.visited(v, now); v.admitted {
		r.letInElsewhere(v.visitor, v.admission(), now)
		return q
	}
	return c.stripes.ofVisitor(v.visitor).shown(v.key(), now)
}

// owner returns the node of this site that counts a visitor while they wait.
func (c *Core) owner(id crdt.RoomID, v VisitorID) crdt.NodeID {
	return room.Owner(c.key, id, v, c.nodes)
}
