package limit

import (
	"math"
	"time"
)

// Bound is by how much the requests of a key can be more than the limit of a rule within
// one period, beside what two numbers per key cannot tell (see Window): who is let in at
// one node counts at the others only once these have heard of it.
type Bound struct {
	Delay time.Duration // so much of what comes may be more: until all nodes have heard of a request, and what that makes of its age
	Nodes int           // that count together
	Most  int           // requests: whatever the rate, and also while nodes do not hear of each other
}

// NewBound returns the bound of a rule. nodes are those that count together, this one
// among them; near and far are round trips to the farthest node of the own site and to
// those of other sites, 0 if there is none.
func NewBound(r *Rule, nodes, sites int, near, far time.Duration) Bound {
	b := Bound{Nodes: nodes, Most: (nodes - 1) * r.RequestsPerPeriod}
	tick := tickInterval.Duration()
	if nodes > 1 {
		// A node tells its owner after an interval and when the owner has answered what
		// came before; the owner tells the site.
		b.Delay += tick + siteInterval.Duration() + 2*near
	}
	if sites > 1 {
		// The same once more from owner to owner.
		b.Delay += tick + meshInterval.Duration() + 3*far/2
	}
	// What is told counts as old as it may be, which is as much again.
	b.Delay = (2 * b.Delay).Round(time.Millisecond)
	return b
}

// Excess returns by how many requests the limit can be exceeded within a period, where so
// many come in a second.
func (b Bound) Excess(perSecond float64) int {
	return int(math.Ceil(min(perSecond*b.Delay.Seconds(), float64(b.Most))))
}
