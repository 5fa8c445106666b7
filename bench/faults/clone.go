//go:build linux

package faults

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// twins are two processes on copies of one data directory, of which the later start
// goes on: to those who hear of both it is the same node, started again. What it then
// does the original knows nothing of, and what the original did since the copy was
// made it knows nothing of, so that neither directory is good for anything once both
// processes have ended.
type twins struct {
	id       string // of both
	anchor   uint64 // the first bytes of it
	original uint32 // its start; that of the copy is a later one
	alone    int64  // when the original had ended
	over     int64  // when the copy had, too

	given      int   // tickets that rest on the copy
	first      int64 // when the first of them was
	late       int   // tickets that rest on the original, when none can any more
	posthumous int   // grants that rest on either of them, when none can any more
}

// afterlife is for how long grants may rest on a node that has ended: tickets that it
// had lent to its site's counter, and ends of sessions that it had agreed to.
func (r *run) afterlife() time.Duration {
	return loanValid + takeUp + r.Room.session
}

// cloneDisk has two processes run on the data of a node until one of them stops, then
// the copy only, and at last starts the original again, so often.
func cloneDisk(again int) func(*run) error {
	return func(r *run) error {
		n := r.mesh.Node("a2")
		clone, err := r.mesh.Add("a9")
		if err != nil {
			return err
		}
		if r.twins, err = r.twinsOf(n); err != nil {
			return err
		}
		if err := r.snapshot(n, clone.Data); err != nil {
			return err
		}
		r.mark("a9 starts on a copy of the data directory of a2, which runs")
		if err := r.laterGoesOn(n, clone); err != nil {
			return err
		}
		if clone.Running() {
			if err := r.outlive(clone); err != nil {
				return err
			}
		}
		r.mark("a2 restarts on its own data directory")
		for range again {
			if err := r.refused(n); err != nil {
				return err
			}
		}
		return r.startOver(n, r.twins.id, clone)
	}
}

func (r *run) twinsOf(n *rig.Node) (*twins, error) {
	s, err := n.Status(r.ctx)
	if err != nil {
		return nil, err
	}
	anchor, err := r.idOf(n)
	return &twins{id: s.Node, anchor: anchor, original: uint32(s.Boot)}, err
}

// snapshot copies the directory of a node that runs, in no time as far as that node
// is concerned: of files from different moments a copy might be one that no start
// takes, and there would be no twins.
func (r *run) snapshot(n *rig.Node, to string) error {
	return errors.Join(n.Pause(), n.Copy(to), n.Resume())
}

// laterGoesOn starts the copy, and sees that the original stops by itself and the
// copy does not.
func (r *run) laterGoesOn(n, clone *rig.Node) error {
	began := time.Now()
	if err := clone.Start(); err != nil {
		return err
	}
	for n.Running() && clone.Running() && time.Since(began) < 20*time.Second {
		if err := r.sleep(20 * time.Millisecond); err != nil {
			return err
		}
	}
	took := time.Since(began)
	if !clone.Running() && strings.Contains(clone.Log(), "whose data directory knows of") {
		return r.bothStop(n, clone)
	}
	switch {
	case n.Running() && clone.Running():
		return fmt.Errorf("both go on %v after the start of the clone", took)
	case n.Running():
		return fmt.Errorf("the clone stopped after %v, though it is the later start: %s", took, clone.Tail(1))
	case n.Code() <= 0 || !strings.Contains(n.Log(), "another process runs"):
		return fmt.Errorf("the original ended with code %d, and not for its clone: %s", n.Code(), n.Tail(1))
	case took > twinsWithin:
		return fmt.Errorf("it took %v until one of the two stopped, want %v", took, twinsWithin)
	}
	r.note("the original stopped after %.1f s, beside the clone", took.Seconds())
	return clone.Await(r.ctx, twinsWithin, "is ready, as the only one", func(s node.Status) bool { return s.Ready })
}

// bothStop sees that the original stops as well: the copy is older than what it has
// given away since, and the number of its start is spent.
func (r *run) bothStop(n, clone *rig.Node) error {
	r.note("the clone refused too: a2 had given rights away since the copy was made")
	if !n.Ended(twinsWithin) {
		return fmt.Errorf("the original goes on for %v after its clone was refused: %s", twinsWithin, n.Tail(1))
	}
	t := r.twins
	t.alone = record.Now()
	t.over = t.alone
	return r.sleep(r.afterlife())
}

// outlive has the copy go on as the node until tickets rest on it, and all of its site
// have heard of that again and again; then it is killed, and nothing rests on it.
func (r *run) outlive(clone *rig.Node) error {
	t := r.twins
	t.alone = record.Now()
	for deadline := time.Now().Add(time.Minute); ; {
		if err := r.sleep(healed); err != nil {
			return err
		}
		so := *t
		if err := r.readTwins(&so); err != nil {
			return err
		}
		if so.given > 0 {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the clone gives no ticket")
		}
	}
	r.mark("a9 is killed")
	if err := clone.Kill(); err != nil {
		return err
	}
	t.over = record.Now()
	return r.sleep(r.afterlife())
}

// refused starts a node on a directory of which others know more, and sees that it
// ends by itself and says what to do. That it has given nothing until then is for
// checkTwins to find.
func (r *run) refused(n *rig.Node) error {
	began := time.Now()
	if err := n.Start(); err != nil {
		return err
	}
	switch ended := n.Ended(refusedWithin); {
	case !ended:
		return fmt.Errorf("%s goes on for %v, although others know more of it than its directory does: %s", n.Name, refusedWithin, n.Tail(1))
	case n.Code() <= 0:
		return fmt.Errorf("%s ended with code %d, as if it were not refused: %s", n.Name, n.Code(), n.Tail(1))
	}
	for _, what := range []string{"copied or rolled back", "move the directory away"} {
		if !strings.Contains(n.Log(), what) {
			return fmt.Errorf("%s is refused, but not told %q: %s", n.Name, what, n.Tail(1))
		}
	}
	ready := ""
	if strings.Contains(n.Log(), "msg=ready") {
		ready = ", after it had taken itself for ready"
	}
	r.note("%s refused after %.1f s%s", n.Name, time.Since(began).Seconds(), ready)
	return nil
}

// refusedWithin is how long a node may need to hear that others know more of it, and
// to end; it looks for the twin that is gone first.
const refusedWithin = 20 * time.Second

// startOver does what the refusal says: all directories are moved away, and a new
// node declares the old one dead, so that its rights come back.
func (r *run) startOver(n *rig.Node, old string, clones ...*rig.Node) error {
	r.mark("a2 starts as a new node, and declares the old one dead")
	for _, x := range append(clones, n) {
		if err := x.Wipe(); err != nil {
			return err
		}
	}
	n.Args = []string{"--declare-dead=" + old}
	if err := r.restart(n); err != nil {
		return err
	}
	began := time.Now()
	err := n.Await(r.ctx, 30*time.Second, "has declared the old one dead", func(s node.Status) bool {
		return s.Node != old && strings.Contains(n.Log(), "declared dead: its rights")
	})
	if err != nil {
		return err
	}
	r.note("the old node declared dead %.1f s after the new one was ready", time.Since(began).Seconds())
	return r.sleep(healed)
}

// checkTwins finds grants that rest on a directory that nobody may use any more. The
// numbers, places and rights of both processes are checked as those of any run.
func checkTwins(r *run) error {
	t := r.twins
	if t == nil || t.over == 0 {
		return errors.New("there were never two processes of which one went on")
	}
	if err := r.readTwins(t); err != nil {
		return err
	}
	if t.given > 0 {
		r.note("%d tickets of the clone, the first %.1f s after the original had stopped", t.given, time.Duration(t.first-t.alone).Seconds())
	}
	var errs []error
	if t.late > 0 {
		errs = append(errs, fmt.Errorf("%d tickets rest on the original, from after it had stopped beside its clone", t.late))
	}
	if t.posthumous > 0 {
		errs = append(errs, fmt.Errorf("%d grants rest on the old node, from after both of its processes had ended", t.posthumous))
	}
	return errors.Join(errs...)
}

// readTwins gives twins what is on record so far.
func (r *run) readTwins(t *twins) error {
	for e, err := range record.NewMerge(r.mesh.Sources()).All() {
		if err != nil {
			return err
		}
		t.add(e, int64(r.afterlife()))
	}
	return nil
}

// add takes one event. After both have ended a later end of a session and a gift of
// rights rest on them as much as a ticket does. Before, the copy may go on with
// sessions of the original.
func (t *twins) add(e record.Located, afterlife int64) {
	if e.Anchor != t.anchor || e.Kind == record.Ended || e.Kind == record.Received {
		return
	}
	ticket := e.Kind == record.Entered || e.Kind == record.Reanchored
	switch {
	case t.over > 0 && e.Called() > t.over+afterlife:
		t.posthumous++
	case ticket && e.Boot == t.original && e.Called() > t.alone+afterlife:
		t.late++
	case ticket && e.Boot > t.original:
		if t.given == 0 || e.At < t.first {
			t.first = e.At
		}
		t.given++
	}
}
