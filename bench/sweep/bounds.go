package main

import (
	"fmt"

	"github.com/ropeline/ropeline/node/room"
)

// bound returns by how many visitors a policy may exceed a limit, in a mesh of so many nodes,
// before a sweep fails; ok is false where it promises nothing.
//
// Escrow goes by rights, and there are no more than the limit. What even and counter have is
// no proof: it is what was seen in schedules, rounded up to whole visitors for each node, so
// that a change which makes them worse is noticed. Curve lets several nodes use the same place
// by design.
func bound(p room.Policy, nodes int) (over int, ok bool) {
	switch p {
	case room.Escrow:
		return 0, true
	case room.Even:
		return 2 * nodes, true
	case room.Counter:
		return 3 * nodes, true
	}
	return 0, false
}

// boundText says the same in a table.
func boundText(p room.Policy) string {
	switch over, ok := bound(p, 1); {
	case !ok:
		return "no bound"
	case over == 0:
		return "0"
	default:
		return fmt.Sprintf("%d per node", over)
	}
}

// broken reports whether a run went further over a limit than its policy may.
func (o *outcome) broken() bool {
	over, ok := bound(o.policy, o.sites*o.nodes)
	return ok && o.beyond() > over
}

// beyond returns by how many visitors a run went over the limit that it exceeded most.
func (o *outcome) beyond() int {
	return max(0, o.result.PeakActive-o.limit, o.result.PeakMinute-o.rate)
}

func (w *worst) text() string {
	if w.times == 0 {
		return "0"
	}
	return fmt.Sprintf("%d of %d", w.over, w.limit)
}
