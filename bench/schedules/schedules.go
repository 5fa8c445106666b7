// Package schedules runs whole meshes of shipped nodes through many random schedules of trouble, and demands that
// the limit holds in all of them.
//
// Each schedule follows from one number: sites, nodes, limits, visitors, a network
// that delays, loses, doubles and overtakes, clocks that differ, crashes, disks that
// are lost, full, slow or failing, pauses, cuts, nodes that join and leave, limits
// that change at two nodes at once, and just before whoever mints leaves, is killed or
// lost, policies that are switched, old passes and lost answers. Then all is healed and
// everybody goes home. What must hold is what [sim.Result] calls violations: it goes by the
// limits that operators set.
//
// Some of them are stories: one change of who mints soon after a limit was
// changed, in a mesh that is calm but for that. In half of them the rate is the limit.
//
// A rule can be left out, to see that schedules notice. A few rules matter so
// seldom that tests of node/ticket have to show what they are for.
package schedules

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Judge runs a set, writes to out which schedules fail, to progress how far it is, and reports whether all promises were
// kept.
func (s *Set) Judge(ctx context.Context, out, progress io.Writer) (kept bool, err error) {
	start := time.Now()
	t, err := s.Run(ctx, out, Progress(progress, s.N))
	t.tell(out, time.Since(start))
	return t.Failed == 0, err
}

// Progress returns what says after every few thousand of n schedules how far it is.
func Progress(to io.Writer, n int) func(*Tally) {
	return func(t *Tally) {
		if t.Schedules%5000 == 0 {
			fmt.Fprintf(to, "%d of %d schedules, %d failed\n", t.Schedules, n, t.Failed)
		}
	}
}
