package ticket

import (
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// block stands for leases that somebody has given and this anchor knows nothing
// of: itself before it restarted, a node that left and whose heir it is, one
// whose disk was lost. All of it is in use until it closes; from then on only the
// claims that still live are.
type block struct {
	anchors []crdt.NodeID // whose tickets may claim
	boot    uint64        // the last of this node's own starts that may
	size    int
	end     int64 // Unix ms
	claims  int   // tickets that showed up, those that have ended too
	extra   int   // claims beyond size: more leases than the anchor reckoned with
}

// claim is a ticket that showed up. It is counted once, also when its lease ends
// before the block does: it is claimEnded then, and stays.
type claim struct {
	end   int64  // Unix ms
	block *block // nil once that has closed
}

const claimEnded = math.MinInt64

// earlier returns who may claim after a restart: this node's earlier starts, and
// the nodes for which it answered.
func (l *Leases) earlier(others ...crdt.NodeID) block {
	return block{anchors: append(others, l.self.Node), boot: l.self.Boot - 1}
}

// openBlock counts size leases until end, in Unix ms, for the tickets that b
// lets claim.
func (l *Leases) openBlock(size int, b block, end int64) {
	b.size, b.end = size, end
	l.blocks = append(l.blocks, &b)
	l.delta.P += uint64(size)
}

func (b *block) covers(t Ticket, self crdt.NodeID) bool {
	return slices.Contains(b.anchors, t.Anchor) && (t.Anchor != self || t.Boot <= b.boot)
}

// claim extends the lease of a ticket that this anchor does not know. Such a
// ticket enters only while a block for it is open, is counted in it once, and
// stays counted until the block ends, whatever becomes of it: ending it early
// would free a place that another ticket of the block may stand for.
func (l *Leases) claim(t Ticket, passEnd, at, now time.Time) (end time.Time, err error) {
	ms := now.UnixMilli()
	known, claimed := l.claims[t]
	switch {
	case claimed && ms > known.end+l.guard(): // claimEnded is longer ago than anything
		return time.Time{}, ErrEnded
	case claimed:
		known.end = l.extended(known.end, at, now)
		l.claims[t] = known
		return time.UnixMilli(known.end), nil
	case ms > passEnd.UnixMilli()+guardMS:
		return time.Time{}, l.unknown(t)
	}
	b, open := l.blockFor(t, ms)
	switch {
	case open:
		b.claims++
		if b.claims > b.size {
			b.extra++
			l.delta.P++
		}
	case l.rules&OpenBlockOnly != 0:
		l.loose++
		l.delta.P++
	default:
		return time.Time{}, l.unknown(t)
	}
	next := l.extended(l.promised(passEnd, now), at, now)
	if l.claims == nil {
		l.claims = map[Ticket]claim{}
	}
	l.claims[t] = claim{next, b}
	l.claimed.push(next, t)
	return time.UnixMilli(next), nil
}

// unknown says why a ticket that no block covers is refused.
func (l *Leases) unknown(t Ticket) error {
	if t.Anchor == l.self.Node {
		return ErrEnded
	}
	for _, b := range l.blocks {
		if slices.Contains(b.anchors, t.Anchor) {
			return ErrEnded
		}
	}
	return ErrNotMine
}

// blockFor returns the block in which a ticket is to be counted: the oldest with
// room, or else one that is full if blocks may be too small. A borrowed one was
// never counted, and has no part in any.
func (l *Leases) blockFor(t Ticket, ms int64) (*block, bool) {
	if t.Borrowed() {
		return nil, false
	}
	var full *block
	for _, b := range l.blocks {
		switch {
		case ms > b.end || !b.covers(t, l.self.Node):
		case b.claims < b.size:
			return b, true
		case full == nil:
			full = b
		}
	}
	return full, full != nil && !l.strict
}

// endClaim ends a claim that lives, and reports whether there was one. Its place is free at
// once only if the block, which counts it otherwise, has closed.
func (l *Leases) endClaim(t Ticket) bool {
	c, claimed := l.claims[t]
	switch {
	case !claimed || c.end == claimEnded:
		return false
	case c.block == nil:
		l.loose--
		delete(l.claims, t)
		l.delta.N++
	default:
		if l.rules&CountUntilBlockEnds != 0 && c.block.size > 0 {
			c.block.size--
			c.block.claims--
			l.delta.N++
		}
		c.end = claimEnded
		l.claims[t] = c
	}
	return true
}

// expireClaims ends the claims whose end is at due or before.
func (l *Leases) expireClaims(due int64) {
	for {
		t, ok := l.claimed.pop(due)
		if !ok {
			return
		}
		c := l.claims[t.key]
		if c.end > due {
			l.claimed.push(c.end, t.key)
			continue
		}
		if l.endClaim(t.key) {
			l.stays.endUnknown(l.heard(c.end), false)
		}
	}
}

// closeBlocks ends the blocks that are over: from then on each claim stands for
// itself, and what nobody claimed is free.
func (l *Leases) closeBlocks(now int64) {
	l.blocks = slices.DeleteFunc(l.blocks, func(b *block) bool {
		if now <= b.end {
			return false
		}
		live := 0
		for t, c := range l.claims {
			switch {
			case c.block != b:
			case c.end == claimEnded:
				delete(l.claims, t)
			default:
				c.block = nil
				l.claims[t] = c
				live++
			}
		}
		l.loose += live
		l.delta.N += uint64(b.size + b.extra - live)
		return true
	})
}
