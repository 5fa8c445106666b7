package sweep

import (
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/node/room"
)

// bound returns by how many visitors a policy may exceed a limit before a sweep fails; ok is
// false where it promises nothing.
//
// Escrow goes by rights, and there are no more than the limit. Under even and counter each site
// goes by the same division, which all of them round: as long as every site is on one side of a
// cut they have together at most one visitor more for each site but one. Under even each node
// of a site rounds its part up as well, which is one more for each node but one.
//
// A site that is heard by two others who do not hear each other has its idle places used by
// both; see docs/policies.md. How many that are depends on its share. What is allowed for it
// here is no proof, but what was seen, rounded up to whole visitors for each node, so that a
// change which makes it worse is noticed. Curve lets several nodes use the same place by design.
func (s *schedule) bound() (over int, ok bool) {
	nodes := s.sites * s.nodes
	switch s.policy {
	case room.Escrow:
		return 0, true
	case room.Even:
		if s.betweenTwo() {
			return 2 * nodes, true
		}
		return nodes - 1, true
	case room.Counter:
		if s.betweenTwo() {
			return 4 * nodes, true
		}
		return s.sites - 1, true
	}
	return 0, false
}

// betweenTwo reports whether there may be a site that two others hear, or have heard just before,
// who do not hear each other.
func (s *schedule) betweenTwo() bool {
	return s.sites >= 3 && slices.ContainsFunc(s.cuts, func(c cut) bool { return c.peer > 0 || c.site != s.cuts[0].site })
}

// boundText says the same in a table.
func boundText(p room.Policy) string {
	switch p {
	case room.Escrow:
		return "0"
	case room.Even:
		return "nodes − 1; 2 per node with a site between two"
	case room.Counter:
		return "sites − 1; 4 per node with a site between two"
	}
	return "no bound"
}

// broken reports whether a run went further over a limit than its policy may.
func (o *outcome) broken() bool {
	over, ok := o.bound()
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
