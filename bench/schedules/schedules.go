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
// A rule can be left out, or each in turn, to see that schedules notice. A few rules matter so
// seldom that tests of node/ticket have to show what they are for.
package schedules

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/ticket"
)

// progressEvery is after how many schedules a line says how far it is.
const progressEvery = 5000

// Judge runs a set, writes to out which schedules fail, to progress how far it is, and reports whether all promises were
// kept.
func (s *Set) Judge(ctx context.Context, out, progress io.Writer) (kept bool, err error) {
	start := time.Now()
	t, err := s.run(ctx, out, func(t *tally) {
		if t.runs%progressEvery == 0 {
			fmt.Fprintf(progress, "%d of %d after %v\n", t.runs, s.N, time.Since(start).Round(time.Second))
		}
	})
	t.tell(out, time.Since(start))
	return t.failed == 0, err
}

// JudgeStories does so with each story, and writes a table.
func (s *Set) JudgeStories(ctx context.Context, out, failures io.Writer) (kept bool, err error) {
	failed, err := s.table(ctx, "story", Stories(), func(s *Set, name string) { s.Story = name }, out, failures)
	return err == nil && slices.Max(failed) == 0, err
}

// KnockOut leaves out each rule in turn, and writes a table of what notices. Those who fail are what is wanted. What a
// rule is for that none misses, TestRulesAreNeeded and TestRulesInShort of node/ticket have to show.
func (s *Set) KnockOut(ctx context.Context, out io.Writer) error {
	_, err := s.table(ctx, "rule left out", ticket.RuleNames(), func(s *Set, name string) {
		rules, err := ticket.ParseRules(name)
		if err != nil {
			panic(err)
		}
		s.LeaveOut = rules
	}, out, io.Discard)
	return err
}
