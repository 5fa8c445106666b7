package ticket

import (
	"cmp"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Claim is a node's word that it is the counter of a room in its site. Of two
// claims the earlier one wins, so that whoever is the counter stays it.
type Claim struct {
	Holder crdt.Incarnation
	Since  time.Time // by the holder's clock, whole milliseconds
}

// IsZero reports whether nobody claims anything.
func (c Claim) IsZero() bool { return c.Holder == crdt.Incarnation{} }

// before reports whether c wins over o. It is a total order over the claims of
// different nodes, so all who hear the same claims agree.
func (c Claim) before(o Claim) bool {
	return cmp.Or(c.Since.Compare(o.Since), c.Holder.Node.Compare(o.Holder.Node)) < 0
}

// Lead says who is the counter of one room in one site. There is no election:
// all work out the same first choice from the members, and keep to whoever
// claims to be the counter for as long as that node lives. The zero value knows
// of no claim.
type Lead struct {
	claim Claim
}

// Claim returns the claim that this node goes by, its own or another's.
func (l *Lead) Claim() Claim { return l.claim }

// Choose returns who the counter is. A claim stands while alive says so of its
// holder; without one, first is asked, and if that is this node, self, it claims
// to be the counter from now on.
func (l *Lead) Choose(self crdt.Incarnation, first crdt.NodeID, alive func(crdt.Incarnation) bool, now time.Time) crdt.NodeID {
	switch {
	case !l.claim.IsZero() && (l.claim.Holder == self || alive(l.claim.Holder)):
		return l.claim.Holder.Node
	case first == self.Node:
		l.claim = Claim{self, now.Truncate(time.Millisecond)}
	default:
		l.claim = Claim{}
	}
	return first
}

// Hear takes the claim of another node, which is alive. It returns false if a
// better one is known: the other should hear of that.
func (l *Lead) Hear(c Claim) bool {
	if l.claim.IsZero() || l.claim.Holder.Node == c.Holder.Node || c.before(l.claim) {
		l.claim = c
		return true
	}
	return false
}

// Restart makes a claim of this node's own the latest, as after a pause in which
// another may have become the counter. It reports whether there was one.
func (l *Lead) Restart(self crdt.Incarnation, now time.Time) bool {
	if l.claim.Holder != self {
		return false
	}
	l.claim.Since = now.Truncate(time.Millisecond)
	return true
}

// Hand takes the word of from, the counter so far, that next is the counter from
// now on: from may not hand out tickets any more, or is about to leave. If next is
// this node, that is its claim. The word of anybody else changes nothing,
// and it reports false. The old counter, for which it does the same, says so until
// it can be the counter again, since others may have missed it.
func (l *Lead) Hand(from, next crdt.Incarnation, now time.Time) bool {
	if !l.claim.IsZero() && l.claim.Holder != from || next == from {
		return false
	}
	l.claim = Claim{next, now.Truncate(time.Millisecond)}
	return true
}

// Drop forgets whatever is claimed.
func (l *Lead) Drop() { l.claim = Claim{} }
