package crdt

import (
	"cmp"
	"time"
)

// maxDrift is how far ahead of the local clock a stamp may be and still be
// believed. One clock that runs wild must not drag all others along.
const maxDrift = 500 * time.Millisecond

// Stamp is the time of a write on a hybrid logical clock. Stamps are totally
// ordered; those of one node never repeat. The zero value is before all others.
type Stamp struct {
	Wall    int64  // Unix milliseconds
	Logical uint16 // orders what happened within one millisecond
	Node    NodeID // orders what happened at once
}

// Compare orders stamps, earlier first.
func (s Stamp) Compare(o Stamp) int {
	return cmp.Or(cmp.Compare(s.packed(), o.packed()), s.Node.Compare(o.Node))
}

// IsZero reports whether s is the stamp of no write.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// packed is the time without the node, in the order of Compare. One writer's
// packed stamps grow with each write and so number its changes.
func (s Stamp) packed() uint64 { return uint64(s.Wall)<<16 | uint64(s.Logical) }

func unpack(packed uint64, node NodeID) Stamp {
	return Stamp{int64(packed >> 16), uint16(packed), node}
}

// Clock is a hybrid logical clock: it keeps close to the wall clock, never goes
// back, and is never behind a stamp that it has observed. The zero value is
// ready.
type Clock struct {
	last    uint64 // packed
	refused uint64
}

// Now returns a stamp for a write by node, later than all before it.
func (c *Clock) Now(now time.Time, node NodeID) Stamp {
	// Running out of logical time within a millisecond carries into the wall
	// part, which is what the packed form does by itself.
	c.last = max(c.last+1, uint64(max(0, now.UnixMilli()))<<16)
	return unpack(c.last, node)
}

// Observe moves the clock past a stamp from elsewhere. It reports false, counts
// a refusal and stays where it is if the stamp is more than 500 ms ahead of now.
func (c *Clock) Observe(s Stamp, now time.Time) bool {
	if s.Wall > now.Add(maxDrift).UnixMilli() {
		c.refused++
		return false
	}
	c.last = max(c.last, s.packed())
	return true
}

// Last returns the latest stamp that the clock has given or observed, without its node.
func (c *Clock) Last() Stamp { return unpack(c.last, NodeID{}) }

// Refused returns how many stamps were too far ahead to be believed.
func (c *Clock) Refused() uint64 { return c.refused }
