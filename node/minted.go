package node

import (
	"bytes"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/ticket"
)

// What comes with rights. Each minter tells all what it has minted, and that may arrive late, or
// never: its site is cut off, or it dies. Whoever gets rights of it then holds some of which it
// has not heard that they were made, and where a limit is lowered, it reckons that nobody else
// has as many. So a gift, and what a node passes on when it leaves, says what was minted, as far
// as the giver knows: the very facts, with the stamps that their writers gave them. The receiver takes
// those that are news before it takes the rights, and writes both at once or the facts first.

// Rights from and to nodes of the version before, whose messages do not say what was minted and
// who do not read those that do.
const (
	// olderTries is how often a message is sent before it is sent as the version before has it, too.
	olderTries = 3
	// olderAfter is for how long a giver has to have sent nothing but such messages to be
	// taken for an older one. A newer one has sent what was minted several times by then.
	olderAfter = 5 * time.Second
)

// hearsay is the rules without either of which a node goes by what it has heard from minters alone:
// what comes with rights would make good most of what FreshMint is for.
const hearsay = ticket.MintedWithGifts | ticket.FreshMint

// givers is what is known of those who pass rights to this node, and of who minted these.
type givers struct {
	by      map[crdt.NodeID]giver
	unheard time.Time // since when something minted is known from others than who minted it, or was told last
}

// giver is what is known of a node that passes rights to this one.
type giver struct {
	boot  uint64
	says  bool      // it has said what was minted
	since time.Time // when it first sent a message that does not say it; zero: it has not
}

// olderToo reports whether a message that says what was minted is to be sent as the version before
// reads it as well: it may be for an older node, as nobody has acknowledged it.
func (c *Core) olderToo(m ticket.Minted) bool {
	return m.Tries >= olderTries && c.leaveOut&hearsay == 0
}

// giftsDue returns the gifts that are to be sent, with what was minted. What this node itself has
// minted is on its disk before it goes with any.
func (r *Room) giftsDue(gives bool, now time.Time) []ticket.Transfer {
	if !gives {
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
		gifts[i].Minted.Told = minted
	}
	return gifts
}

// handoversDue is giftsDue of what this node passes on as it leaves: nothing, or one, as both versions have it
// where that may be needed.
func (r *Room) handoversDue(now time.Time) []ticket.Handover {
	r.mu.Lock()
	passes := r.rights.HandsOver()
	r.mu.Unlock()
	if !passes {
		return nil
	}
	minted, known := r.mintedNow(now)
	if !known {
		return nil
	}
	r.mu.Lock()
	h, due := r.rights.HandoverDue(now)
	r.mu.Unlock()
	if !due {
		return nil
	}
	older := h
	older.Minted = ticket.Minted{Older: true}
	if h.Minted.Told = minted; r.core.olderToo(h.Minted) {
		return []ticket.Handover{h, older}
	}
	return []ticket.Handover{h}
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
		if exact != nil && !bytes.Equal(value, encodeAmount(*exact)) {
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

// takeMinted takes what came with rights of another node, and has the room go by it at once. It
// returns false if the rights are not to be taken, as the message does not say what was minted
// and its sender says so in others.
func (c *Core) takeMinted(from replica.Peer, id crdt.RoomID, m ticket.Minted, now time.Time) bool {
	if c.leaveOut&hearsay != 0 {
		return true
	}
	if !c.heardGiver(from, m.Older, now) {
		return false
	}
	news := false
	for _, x := range m.Told {
		if x.Node != c.self.Node {
			news = c.replica.Take(roomNodeKey(factMinted, id, x.Node), encodeAmount(x.Minted), x.At, now) || news
		}
	}
	if news {
		c.heedFacts(now)
	}
	return true
}

// heardGiver notes a message of a giver and reports whether it counts: it says what was minted, or
// the giver is an older node, which never does.
func (c *Core) heardGiver(from replica.Peer, older bool, now time.Time) bool {
	g := c.givers.by[from.ID]
	if g.boot != from.Boot {
		g = giver{boot: from.Boot}
	}
	if g.says = g.says || !older; !g.says && g.since.IsZero() {
		g.since = now
	}
	noteFact(&c.givers.by, from.ID, g)
	return !older || !g.says && now.Sub(g.since) >= olderAfter
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
	if len(c.facts.unheard) == 0 || c.givers.unheard.IsZero() || now.Before(c.givers.unheard) {
		c.givers.unheard = now
		return
	}
	if now.Sub(c.givers.unheard) < unheardFor {
		return
	}
	c.givers.unheard = now
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
