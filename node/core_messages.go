package node

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// Receive takes one message from a peer whose identity has been proven. What is
// refused changes nothing, and its sender is told.
func (c *Core) Receive(from replica.Peer, kind uint8, payload []byte, now time.Time) ([]Message, error) {
	out, err := c.receive(from, kind, payload, now)
	if err != nil {
		out = append(out, c.refuse(from, kind, err, now)...)
		return out, fmt.Errorf("message of kind %d: %w", kind, err)
	}
	out = append(out, c.sendRedeems(now, false)...)
	out = append(out, c.sendHot(now)...) // whose owner has said that they may come in
	return append(out, c.tellOwners()...), nil
}

func (c *Core) receive(from replica.Peer, kind uint8, payload []byte, now time.Time) ([]Message, error) {
	if _, dead := c.facts.dead[from.ID]; dead && c.leaveOut&ticket.Fence == 0 && kind != kindReplica {
		return nil, fmt.Errorf("%w: its sender was declared dead", replica.ErrForged)
	}
	switch kind {
	case kindReplica:
		out, err := c.replica.Receive(from, payload, now)
		for _, id := range c.replica.Changed() {
			if r := c.rooms[id]; r != nil {
				r.hasNews()
			}
		}
		return append(c.replicate(out), c.sendSpreads(now)...), err
	case kindVisits:
		return c.takeVisits(from, payload, now)
	case kindVisitsAck:
		batch, err := decodeAck(payload)
		if err == nil {
			c.visits.acked(from.ID, batch)
		}
		return nil, err
	case kindRenew:
		return c.takeRenewals(from, payload, now)
	case kindEnd:
		return c.takeEnds(from, payload, now)
	case kindRenewAck:
		return nil, c.takeRenewed(from, payload, now)
	case kindAsk:
		return c.takeQuestion(from, payload, now)
	case kindAnswer:
		return c.takeReply(from, payload, now)
	case kindCall:
		return c.takeCall(from, payload, now)
	case kindGrant:
		return c.takeGrant(from, payload, now)
	case kindClaims:
		return c.takeClaims(from, payload, now)
	case kindLoanCall:
		return c.takeLoanCall(from, payload, now)
	case kindLoanAnswer:
		return c.takeLoanAnswer(from, payload, now)
	case kindCancel:
		return c.takeCancel(from, payload, now)
	case kindTransfer:
		return c.takeTransfer(from, payload, now)
	case kindReceived:
		return c.takeReceived(from, payload, now)
	case kindWant:
		return c.takeWant(from, payload, now)
	case kindHandover:
		return c.takeHandover(from, payload, now)
	case kindHeir:
		return c.takeOffer(from, payload, now)
	case kindAgreed:
		return c.takeAgreed(from, payload, now)
	case kindPast:
		return c.takePast(from, payload, now)
	case kindPastTaken:
		return c.takePastTaken(from, payload, now)
	case kindKnown:
		return c.takeKnown(from, payload)
	case kindKept:
		return c.takeKept(payload)
	case kindInquiry:
		return c.takeInquiry(from, payload)
	case kindReceipts:
		return c.takeReceipts(from, payload)
	case kindRedeem:
		return c.takeRedeem(from, payload, now)
	case kindRedeemed:
		return c.takeRedeemed(from, payload, now)
	case kindRefused:
		return nil, c.takeRefusal(from, payload, now)
	case kindLimitCounted, kindLimitKnown, kindLimitAsked:
		return c.takeLimits(from, kind, payload, now)
	}
	return nil, errMalformed
}

// message returns a message that no other replaces.
func (c *Core) message(to crdt.NodeID, kind uint8, payload []byte) Message {
	c.slot++
	return Message{To: to, Kind: kind, Slot: c.slot, Payload: payload}
}

// replicate wraps what the replica sends.
func (c *Core) replicate(in []replica.Message) []Message {
	out := make([]Message, len(in))
	for i, m := range in {
		out[i] = Message{To: m.To, Kind: kindReplica, Slot: m.Slot, Payload: m.Payload}
	}
	return out
}
