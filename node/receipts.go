package node

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// A ledger may be older than its node: it was copied, or comes from a backup. Then it
// has forgotten gifts, and has rights that are others' by now. Those have written what
// they have received, and a node writes what it gives before it says so; so nobody can
// have more from a node than its ledger says, unless that is not the last one. A node
// that starts again asks everybody for receipts before it opens its rooms, and whoever
// it hears of later. With each gift goes a code that only the giver's data directory can make, and that comes
// back with the receipt: whoever has the secret of the mesh could say else that it has got more, and
// the giver would stop for good. A first start has given nothing, unless somebody chose its id and
// it is not the first: whether an id has owned rights before is known to all, so that
// one answer will do.

const (
	// receiptsAgain is the time between two rounds of questions, and receiptsSeldom once
	// rooms are open.
	receiptsAgain  = 300 * time.Millisecond
	receiptsSeldom = 3 * time.Second

	// receiptsPatience is how long rooms stay closed because somebody who is listed
	// does not answer: a cut must not keep a node from its own rights.
	receiptsPatience = 10 * time.Second

	firstAsks = 3 // how many are asked at a time at the first start
)

// inquiry is what a node has asked of one other.
type inquiry struct {
	behind ticket.Inquiry // where the last of those stands that have come
	done   bool
}

// inquiries is what a node has asked since it started.
type inquiries struct {
	since time.Time // when it was first told of others; zero: not yet
	by    map[crdt.NodeID]inquiry
	found error // what speaks against this node; nil: nothing
	over  bool  // nobody is asked, or no more

	next time.Time // when the next round is
	turn int       // with whom it begins
}

// ErrDeclaredDead says that this node lives, and others have its capacity.
var ErrDeclaredDead = errors.New("this node was declared dead, and other nodes have its capacity: the next start in its data directory is that of a new node (with certificates of your own, move the directory away, and give it one for a new id)")

// Conflict says why this node must not go on: another process is this node as well, its data
// directory is older than what it has done, or it has heard that it was declared dead. Nil:
// nothing speaks against it.
func (c *Core) Conflict() error {
	if _, dead := c.facts.dead[c.self.Node]; dead {
		return ErrDeclaredDead
	}
	if c.start.key != nil {
		if err := c.laterStart(); err != nil {
			return err
		}
	} else if other, ok := c.replica.Conflict(); ok {
		return fmt.Errorf("another process runs or ran as this node with boot number %d, this one has %d: %w", other.Boot, c.self.Boot, ErrCopied)
	}
	return c.inquiries.found
}

// answered reports whether all who are listed have given their receipts, or have had
// time enough.
func (c *Core) answered(now time.Time) bool {
	q := &c.inquiries
	if q.over || q.since.IsZero() || now.Sub(q.since) >= receiptsPatience {
		return true
	}
	return !slices.ContainsFunc(c.peers, func(p replica.Peer) bool { return c.owesReceipts(p) && !q.by[p.ID].done })
}

// owesReceipts reports whether another node is to be asked.
func (c *Core) owesReceipts(p replica.Peer) bool { return p.ID != c.self.Node && !c.facts.gone(p.ID) }

// askForReceipts asks those who are listed and have not answered, round by round.
func (c *Core) askForReceipts(now time.Time) (out []Message) {
	q := &c.inquiries
	if q.over || now.Before(q.next) && q.next.Sub(now) <= receiptsSeldom {
		return nil
	}
	again, most, ready := receiptsAgain, len(c.peers), false
	if c.open.Load() {
		again = receiptsSeldom
	}
	if c.self.Boot == 1 {
		most, ready = firstAsks, slices.ContainsFunc(c.peers, func(p replica.Peer) bool { return p.Ready && c.owesReceipts(p) })
	}
	for i := range c.peers {
		p := c.peers[(i+q.turn)%len(c.peers)]
		if x := q.by[p.ID]; len(out) < most && !x.done && c.owesReceipts(p) && (p.Ready || !ready) {
			out = append(out, c.message(p.ID, kindInquiry, ticket.AppendInquiry(nil, x.behind)))
		}
	}
	q.next, q.turn = now.Add(again), q.turn+len(out)
	return out
}

// takeInquiry answers a node that has started.
func (c *Core) takeInquiry(from replica.Peer, payload []byte) ([]Message, error) {
	q, err := ticket.DecodeInquiry(payload)
	if err != nil {
		return nil, err
	}
	all := c.receiptsFrom(from.ID)
	i, told := slices.BinarySearchFunc(all, q, func(a ticket.Received, q ticket.Inquiry) int { return a.Place().Compare(q) })
	if told {
		i++
	}
	_, known := c.facts.sites[from.ID]
	a := ticket.Receipts{Behind: q, Known: known, Items: all[i:]}
	if len(a.Items) > ticket.MaxReceipts {
		a.Items, a.More = a.Items[:ticket.MaxReceipts], true
	}
	return []Message{c.message(from.ID, kindReceipts, ticket.AppendReceipts(nil, a))}, nil
}

// receiptsFrom returns what has come from a node, in order, but in rooms that are gone. It may be asked for before
// rooms are open: nodes that start at once ask each other.
func (c *Core) receiptsFrom(from crdt.NodeID) (all []ticket.Received) {
	for _, r := range c.order {
		r.mu.Lock()
		if r.rights != nil {
			all = append(all, r.rights.ReceivedFrom(from)...)
		}
		r.mu.Unlock()
	}
	for id, stored := range c.storing.found {
		if c.isGone(id) {
			continue // who asks may have dropped its own ledger of it
		}
		all = append(all, ticket.ReceivedFrom(id, c.self.Node, stored, from)...)
	}
	slices.SortFunc(all, func(a, b ticket.Received) int { return a.Place().Compare(b.Place()) })
	return all
}

// takeReceipts holds what others have from this node against what it knows of.
func (c *Core) takeReceipts(from replica.Peer, payload []byte) ([]Message, error) {
	a, err := ticket.DecodeReceipts(payload)
	if err != nil {
		return nil, err
	}
	q := &c.inquiries
	if a.Known && c.self.Boot == 1 && !q.over && !c.open.Load() { // over: nobody chose this node's id, so that nobody has had it
		q.found = cmp.Or(q.found, error(fmt.Errorf("node %s knows this node from before, and its data directory is from today: %w", from.ID, ErrCopied)))
	}
	for _, r := range a.Items {
		if r.Code != c.giftCode(r.Room, r.To, r.Gave) {
			continue // not this node's gift
		}
		if gave := c.gave(r.Room, r.To); gave.Max(r.Gave) != gave && !c.facts.room(r.Room).retired {
			q.found = cmp.Or(q.found, error(fmt.Errorf("node %s has got %d places and %d a minute of room %s from this node, whose data directory knows of %d and %d: %w",
				r.To, r.Gave.Places, r.Gave.Rate, r.Room, gave.Places, gave.Rate, ErrCopied)))
		}
	}
	x := q.by[from.ID]
	if x.done || a.Behind != x.behind {
		return nil, nil
	}
	if a.More && len(a.Items) > 0 {
		x.behind = a.Items[len(a.Items)-1].Place()
		q.by[from.ID] = x
		return []Message{c.message(from.ID, kindInquiry, ticket.AppendInquiry(nil, x.behind))}, nil
	}
	q.by[from.ID] = inquiry{done: true}
	q.over = c.self.Boot == 1
	return nil, nil
}

// giftCode returns what this node says with a gift: see ticket.Code.
func (c *Core) giftCode(room crdt.RoomID, to crdt.NodeID, gave ticket.Amount) ticket.Code {
	mac := hmac.New(sha256.New, c.start.key)
	mac.Write([]byte("gift of a node\x00"))
	mac.Write(room[:])
	mac.Write(to[:])
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(gave.Places)))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(gave.Rate)))
	return ticket.Code(binary.BigEndian.Uint64(mac.Sum(nil)))
}

// gave returns what this node knows to have given.
func (c *Core) gave(id crdt.RoomID, to crdt.NodeID) ticket.Amount {
	if r := c.roused(id); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rights != nil {
			return r.rights.GaveTo(to)
		}
	}
	return ticket.GaveTo(c.storing.found[id], to)
}
