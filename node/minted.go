package node

import (
	"bytes"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// What comes with rights. Each minter tells all what it has minted, and that may arrive late, or
// never: its site is cut off, or it dies. Whoever gets rights of it then holds some of which it
// has not heard that they were made, and where a limit is lowered, it reckons that nobody else
// has as many. So a gift, and what a node passes on when it leaves, says what was minted, as far
// as the giver knows: the very facts, with the stamps that their writers gave them. The receiver takes
// those that are news before it takes the rights, and writes both at once or the facts first.

// hearsay is the rules without either of which a node goes by what it has heard from minters alone:
// what comes with rights would make good most of what FreshMint is for.
const hearsay = ticket.MintedWithGifts | ticket.FreshMint

// giftsDue returns the gifts that are to be sent, with what was minted. What this node itself has
// minted is on its disk before it goes with any.
func (r *Room) giftsDue(due bool, now time.Time) []ticket.Transfer {
	if !due {
		return nil
	}
	minted, known := r.mintedNow(now)
	if !known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	gifts := r.rights.TransfersDue(now)
	for i := range gifts {
		gifts[i].Minted = minted
	}
	return gifts
}

// handoverDue is giftsDue of what this node passes on as it leaves.
func (r *Room) handoverDue(now time.Time) (h ticket.Handover, due bool) {
	r.mu.Lock()
	passes := r.rights.HandsOver()
	r.mu.Unlock()
	if !passes {
		return h, false
	}
	minted, known := r.mintedNow(now)
	if !known {
		return h, false
	}
	r.mu.Lock()
	h, due = r.rights.HandoverDue(now)
	r.mu.Unlock()
	h.Minted = minted
	return h, due
}

// mintedNow returns what was minted in a room, as this node knows it; ok is false as long as
// what it has to say itself is not on its disk. Where last ledgers or recoveries say what counts,
// that becomes what all are told, in place of what the node in question was heard to say.
func (r *Room) mintedNow(now time.Time) (all []ticket.Told, ok bool) {
	c := r.core
	if c.leaveOut&hearsay != 0 {
		return nil, true
	}
	f, ok := c.facts.room(r.id), true
	add := func(id crdt.NodeID, exact *ticket.Amount) {
		key := roomNodeKey(factMinted, r.id, id)
		value, at, told := c.replica.Get(key)
		// Most have never minted, and nobody has said so: then there is nothing to put right.
		if exact != nil && (told || !exact.IsZero()) && !bytes.Equal(value, encodeAmount(*exact)) {
			c.setFact(key, encodeAmount(*exact), now)
			value, at, told = c.replica.Get(key)
		}
		if a, err := decodeAmount(value); told && err == nil {
			all = append(all, ticket.Told{Node: id, Minted: a, At: at})
			ok = ok && c.replica.Tellable(at)
		}
	}
	r.mu.Lock()
	mine := r.rights.Minted()
	r.mu.Unlock()
	if f.by.has(c.self.Node) || !mine.IsZero() {
		add(c.self.Node, &mine)
	}
	for _, id := range f.minters() {
		if a := f.mintedItself(id); id != c.self.Node && f.settled(id) {
			add(id, &a)
		} else if id != c.self.Node {
			add(id, nil)
		}
	}
	slices.SortFunc(all, func(a, b ticket.Told) int { return b.At.Compare(a.At) })
	return all[:min(len(all), ticket.MaxTold)], ok
}

// minters returns, in order, all nodes of which it is known what they have minted.
func (r *roomFacts) minters() (all []crdt.NodeID) {
	for id := range r.mintedByEach() {
		all = append(all, id)
	}
	slices.SortFunc(all, compareNodes)
	return all
}

// settled reports whether it stands for good what a node has minted: it has left, or what it had
// was recovered.
func (r *roomFacts) settled(id crdt.NodeID) bool {
	_, recovered := r.again[id]
	_, left := r.counted[id]
	return recovered || left
}

// takeMinted takes what came with rights of another node, and has the room go by it at once.
func (c *Core) takeMinted(id crdt.RoomID, minted []ticket.Told, now time.Time) {
	if c.leaveOut&hearsay != 0 {
		return
	}
	news := false
	for _, x := range minted {
		if x.Node != c.self.Node {
			news = c.replica.Take(roomNodeKey(factMinted, id, x.Node), encodeAmount(x.Minted), x.At, now) || news
		}
	}
	if news {
		c.heedFacts(now)
	}
}

const (
	// mintedLately is for how long it is not sure that all have heard what a node has minted.
	mintedLately = time.Minute
	// unheardFor is for how long a minter has not been heard before others say what it has minted.
	unheardFor = 5 * time.Second
	// maxKnew is of how many nodes a fact says what they have minted.
	maxKnew = 500
)

// tellKnew has all know, in the name of a node, what that knows to be minted, where others may not hear
// it from who minted it: it is younger than lately, or has come here with rights alone.
func (r *Room) tellKnew(name crdt.NodeID, lately time.Duration, now time.Time) {
	c := r.core
	all, _ := r.mintedNow(now)
	knew := &c.facts.room(r.id).knew
	all = slices.DeleteFunc(all, func(x ticket.Told) bool {
		told := false
		for _, all := range knew.all() {
			told = told || slices.ContainsFunc(all, func(o ticket.Told) bool { return o.Node == x.Node && o.At.Compare(x.At) >= 0 })
		}
		young := now.UnixMilli()-x.At.Wall < lately.Milliseconds()
		return !young && (told || c.replica.HoldsUpTo(x.At))
	})
	if all = all[:min(len(all), maxKnew)]; len(all) > 0 {
		c.setFact(roomNodeKey(factKnew, r.id, name), ticket.AppendTold(nil, all), now)
	}
}

// tellUnheard has all know what has come here with rights, if its minter has not been heard for a while: it may be lost, and
// then nobody else would ever know, nor who recovers its rights.
func (c *Core) tellUnheard(now time.Time) {
	if len(c.facts.unheard) == 0 || c.unheard.IsZero() || now.Before(c.unheard) {
		c.unheard = now
		return
	}
	if now.Sub(c.unheard) < unheardFor {
		return
	}
	c.unheard = now
	rooms := c.facts.unheardRooms()
	for _, r := range c.order {
		if rooms[r.id] {
			r.tellKnew(c.self.Node, 0, now)
		}
	}
}

// takeKnew takes what others know to be minted.
func (c *Core) takeKnew(now time.Time) {
	news := false
	for id := range c.facts.fresh {
		for _, knew := range c.facts.room(id).knew.all() {
			for _, x := range knew {
				news = c.replica.Take(roomNodeKey(factMinted, id, x.Node), encodeAmount(x.Minted), x.At, now) || news
			}
		}
	}
	if news {
		c.facts.update()
	}
}
