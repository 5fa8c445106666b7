package check

import (
	"math"
	"time"
)

// Spreads is how long after an operator was told that a limit holds every node that is
// reached has to know it.
const Spreads = 2 * time.Second

// Limit is what an operator has said of a room.
type Limit struct {
	Asked, Told       int64 // when that was asked of a node, and when the answer was there; 0: from the start
	Active, PerMinute int
}

// Limits are what operators have said of a room, in order. No node is asked.
type Limits []Limit

// Greatest returns the greatest limits that were in force at any time of a span: a limit
// may hold as soon as it is asked for, and the one before it until all have to know. A cut
// does not count, so nobody is to change limits during one.
func (l Limits) Greatest(from, to int64) (active, perMinute int) {
	for i, is := range l {
		until := int64(math.MaxInt64)
		if i+1 < len(l) {
			until = l[i+1].Told + int64(Spreads)
		}
		if is.Asked <= to && from < until {
			active, perMinute = max(active, is.Active), max(perMinute, is.PerMinute)
		}
	}
	return active, perMinute
}
