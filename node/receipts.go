package node

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// A ledger may be older than its node: it was copied, or comes from a backup. Then it
// has forgotten gifts, and has rights that are others' by now. Those have written what
// they have received, and a node writes what it gives before it says so; so nobody can
// have more from a node than its ledger says, unless that is not the last one. A node
// that starts again asks everybody for receipts before it opens its rooms, and whoever
// it hears of later. A first start has given nothing, unless somebody chose its id and
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

	maxReceipts = 2000 // of one message

	firstAsks = 3 // how many are asked at a time at the first start

	receiptsVersion = 1
)

// receipt is what a node, or one whose heir it is, has received from another, all in all.
type receipt struct {
	room crdt.RoomID
	to   crdt.NodeID
	got  ticket.Amount
}

func (r receipt) compare(other receipt) int {
	return cmp.Or(r.room.Compare(other.room), r.to.Compare(other.to))
}

// receipts is one answer, of those behind the receipt that the question names.
type receipts struct {
	behind receipt // without an amount
	known  bool    // who asks has owned rights before, or may have
	more   bool
	items  []receipt // in order
}

// inquiry is what a node has asked of one other.
type inquiry struct {
	behind receipt // the last of those that have come
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

// Conflict says why this node must not go on: another process is this node as well, or
// its data directory is older than what it has done. Nil: nothing speaks against it.
func (c *Core) Conflict() error {
	if other, ok := c.replica.Conflict(); ok {
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
			out = append(out, c.message(p.ID, kindInquiry, encodeInquiry(x.behind)))
		}
	}
	q.next, q.turn = now.Add(again), q.turn+len(out)
	return out
}

// takeInquiry answers a node that has started.
func (c *Core) takeInquiry(from replica.Peer, payload []byte) ([]Message, error) {
	behind, err := decodeInquiry(payload)
	if err != nil {
		return nil, err
	}
	all := c.receiptsFrom(from.ID)
	i, _ := slices.BinarySearchFunc(all, behind, func(r, behind receipt) int {
		return cmp.Or(r.compare(behind), -1) // that one itself was told
	})
	_, known := c.facts.sites[from.ID]
	a := receipts{behind: behind, known: known, items: all[i:]}
	if len(a.items) > maxReceipts {
		a.items, a.more = a.items[:maxReceipts], true
	}
	return []Message{c.message(from.ID, kindReceipts, encodeReceipts(a))}, nil
}

// receiptsFrom returns what has come from a node, in order. It may be asked for before
// rooms are open: nodes that start at once ask each other.
func (c *Core) receiptsFrom(from crdt.NodeID) (all []receipt) {
	add := func(room crdt.RoomID, got []ticket.Received) {
		for _, g := range got {
			all = append(all, receipt{room, g.To, g.Gave})
		}
	}
	for _, r := range c.order {
		r.mu.Lock()
		if r.rights != nil {
			add(r.id, r.rights.ReceivedFrom(from))
		}
		r.mu.Unlock()
	}
	for id, stored := range c.storing.found {
		add(id, ticket.ReceivedFrom(c.self.Node, stored, from))
	}
	slices.SortFunc(all, receipt.compare)
	return all
}

// takeReceipts holds what others have from this node against what it knows of.
func (c *Core) takeReceipts(from replica.Peer, payload []byte) ([]Message, error) {
	a, err := decodeReceipts(payload)
	if err != nil {
		return nil, err
	}
	q := &c.inquiries
	if a.known && c.self.Boot == 1 && !c.open.Load() {
		q.found = cmp.Or(q.found, error(fmt.Errorf("node %s knows this node from before, and its data directory is from today: %w", from.ID, ErrCopied)))
	}
	for _, r := range a.items {
		if gave := c.gave(r.room, r.to); gave.Max(r.got) != gave && !c.facts.room(r.room).retired {
			q.found = cmp.Or(q.found, error(fmt.Errorf("node %s has got %d places and %d a minute of room %s from this node, whose data directory knows of %d and %d: %w",
				r.to, r.got.Places, r.got.Rate, r.room, gave.Places, gave.Rate, ErrCopied)))
		}
	}
	x := q.by[from.ID]
	if x.done || a.behind != x.behind {
		return nil, nil
	}
	if a.more && len(a.items) > 0 {
		last := a.items[len(a.items)-1]
		x.behind = receipt{room: last.room, to: last.to}
		q.by[from.ID] = x
		return []Message{c.message(from.ID, kindInquiry, encodeInquiry(x.behind))}, nil
	}
	q.by[from.ID] = inquiry{done: true}
	q.over = c.self.Boot == 1
	return nil, nil
}

// gave returns what this node knows to have given.
func (c *Core) gave(id crdt.RoomID, to crdt.NodeID) ticket.Amount {
	if r := c.rooms[id]; r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.rights != nil {
			return r.rights.GaveTo(to)
		}
	}
	return ticket.GaveTo(c.storing.found[id], to)
}

func encodeInquiry(behind receipt) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(3)
	e.EncodeUint(receiptsVersion)
	e.EncodeBytes(behind.room[:])
	e.EncodeBytes(behind.to[:])
	return buf.Bytes()
}

func decodeInquiry(msg []byte) (behind receipt, err error) {
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 3, receiptsVersion); err != nil {
		return behind, err
	}
	if err := errors.Join(decodeID(d, behind.room[:]), decodeID(d, behind.to[:])); err != nil || r.Len() > 0 {
		return receipt{}, fmt.Errorf("%w: inquiry", errMalformed)
	}
	return behind, nil
}

func encodeReceipts(a receipts) []byte {
	var buf bytes.Buffer
	e := msgpack.NewEncoder(&buf)
	e.UseCompactInts(true)
	e.EncodeArrayLen(6)
	e.EncodeUint(receiptsVersion)
	e.EncodeBytes(a.behind.room[:])
	e.EncodeBytes(a.behind.to[:])
	e.EncodeBool(a.known)
	e.EncodeBool(a.more)
	e.EncodeArrayLen(len(a.items))
	for _, r := range a.items {
		e.EncodeBytes(r.room[:])
		e.EncodeBytes(r.to[:])
		e.EncodeInt(r.got.Places)
		e.EncodeInt(r.got.Rate)
	}
	return buf.Bytes()
}

func decodeReceipts(msg []byte) (receipts, error) {
	var a receipts
	r := bytes.NewReader(msg)
	d := msgpack.NewDecoder(r)
	if err := expectHeader(d, 6, receiptsVersion); err != nil {
		return a, err
	}
	var n int
	err := errors.Join(
		decodeID(d, a.behind.room[:]),
		decodeID(d, a.behind.to[:]),
		decodeInto(&a.known, d.DecodeBool),
		decodeInto(&a.more, d.DecodeBool),
		decodeInto(&n, d.DecodeArrayLen),
	)
	if err != nil || n < 0 || n > maxReceipts {
		return receipts{}, fmt.Errorf("%w: receipts", errMalformed)
	}
	for range n {
		var x receipt
		err := errors.Join(
			decodeID(d, x.room[:]),
			decodeID(d, x.to[:]),
			decodeInto(&x.got.Places, d.DecodeInt64),
			decodeInto(&x.got.Rate, d.DecodeInt64),
		)
		if err != nil || x.got.Places < 0 || x.got.Rate < 0 {
			return receipts{}, fmt.Errorf("%w: receipts", errMalformed)
		}
		a.items = append(a.items, x)
	}
	if r.Len() > 0 {
		return receipts{}, fmt.Errorf("%w: receipts", errMalformed)
	}
	return a, nil
}
