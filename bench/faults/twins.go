//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
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

func (r *run) twinsOf(n *rig.Node) *twins {
	s := r.status(n)
	return &twins{id: s.Node, anchor: r.idOf(n), original: uint32(s.Boot)}
}

// afterlife is for how long grants may rest on a node that has ended: tickets that it
// had lent to its site's counter, and ends of sessions that it had agreed to.
func (r *run) afterlife() time.Duration {
	return loanValid + takeUp + r.Room.session
}

// cloneDisk has two processes run on the data of a node until one of them stops, then
// the copy only, and at last starts the original again, so often.
func cloneDisk(again int) func(*run) {
	return func(r *run) {
		n := r.mesh.Node("a2")
		clone := rig.Got(r.mesh.Add("a9"))
		r.twins = r.twinsOf(n)
		r.snapshot(n, clone.Data)
		r.mark("a9 starts on a copy of the data directory of a2, which runs")
		r.laterGoesOn(n, clone)
		if clone.Running() {
			r.outlive(clone)
		}
		r.mark("a2 restarts on its own data directory")
		for range again {
			r.refused(n)
		}
		r.startOver(n, r.twins.id, clone)
	}
}

// snapshot copies the directory of a node that runs, in no time as far as that node
// is concerned: of files from different moments a copy might be one that no start
// takes, and there would be no twins.
func (r *run) snapshot(n *rig.Node, to string) {
	rig.Must(errors.Join(n.Pause(), n.Copy(to), n.Resume()))
}

// laterGoesOn starts the copy, and sees that the original stops by itself and the
// copy does not.
func (r *run) laterGoesOn(n, clone *rig.Node) {
	began := time.Now()
	rig.Must(clone.Start())
	r.until(20*time.Second, 20*time.Millisecond, func() bool { return !n.Running() || !clone.Running() })
	took := time.Since(began)
	if !clone.Running() && strings.Contains(clone.Log(), "whose data directory knows of") {
		r.bothStop(n)
		return
	}
	switch {
	case n.Running() && clone.Running():
		rig.Must(fmt.Errorf("both go on %v after the start of the clone", took))
	case n.Running():
		rig.Must(fmt.Errorf("the clone stopped after %v, though it is the later start: %s", took, clone.Tail(1)))
	case n.Code() <= 0 || !strings.Contains(n.Log(), "another process runs"):
		rig.Must(fmt.Errorf("the original ended with code %d, and not for its clone: %s", n.Code(), n.Tail(1)))
	case took > twinsWithin:
		rig.Must(fmt.Errorf("it took %v until one of the two stopped, want %v", took, twinsWithin))
	}
	r.note("the original stopped after %.1f s, beside the clone", took.Seconds())
	r.await(clone, twinsWithin, "is ready, as the only one", func(s node.Status) bool { return s.Ready })
}

// twinsWithin is how long two processes may go on with one identity.
const twinsWithin = 10 * time.Second

// bothStop sees that the original stops as well: the copy is older than what it has
// given away since, and the number of its start is spent.
func (r *run) bothStop(n *rig.Node) {
	r.note("the clone refused too: a2 had given rights away since the copy was made")
	if !n.EndedWithin(twinsWithin) {
		rig.Must(fmt.Errorf("the original goes on for %v after its clone was refused: %s", twinsWithin, n.Tail(1)))
	}
	r.twins.alone = record.Now()
	r.twins.over = r.twins.alone
	r.sleep(r.afterlife())
}

// outlive has the copy go on as the node until tickets rest on it, and all of its site
// have heard of that again and again; then it is killed, and nothing rests on it.
func (r *run) outlive(clone *rig.Node) {
	r.twins.alone = record.Now()
	r.sleep(healed)
	if !r.until(time.Minute, healed, func() bool {
		so := *r.twins
		r.readTwins(&so)
		return so.given > 0
	}) {
		rig.Must(errors.New("the clone gives no ticket"))
	}
	r.mark("a9 is killed")
	r.kill(clone)
	r.twins.over = record.Now()
	r.sleep(r.afterlife())
}

// refused starts a node on a directory of which others know more, and sees that it
// ends by itself and says what to do. That it has given nothing until then is for
// checkTwins to find.
func (r *run) refused(n *rig.Node) {
	began := time.Now()
	rig.Must(n.Start())
	switch ended := n.EndedWithin(refusedWithin); {
	case !ended:
		rig.Must(fmt.Errorf("%s goes on for %v, although others know more of it than its directory does: %s", n.Name, refusedWithin, n.Tail(1)))
	case n.Code() <= 0:
		rig.Must(fmt.Errorf("%s ended with code %d, as if it were not refused: %s", n.Name, n.Code(), n.Tail(1)))
	}
	for _, what := range []string{"copied or rolled back", "move the directory away"} {
		if !strings.Contains(n.Log(), what) {
			rig.Must(fmt.Errorf("%s is refused, but not told %q: %s", n.Name, what, n.Tail(1)))
		}
	}
	ready := ""
	if strings.Contains(n.Log(), "msg=ready") {
		ready = ", after it had taken itself for ready"
	}
	r.note("%s refused after %.1f s%s", n.Name, time.Since(began).Seconds(), ready)
}

// refusedWithin is how long a node may need to hear that others know more of it, and
// to end; it looks for the twin that is gone first.
const refusedWithin = 20 * time.Second

// startOver does what the refusal says: all directories are moved away, and a new
// node declares the old one dead, so that its rights come back.
func (r *run) startOver(n *rig.Node, old string, clones ...*rig.Node) {
	r.mark("a2 starts as a new node, and declares the old one dead")
	for _, x := range append(clones, n) {
		rig.Must(x.Wipe())
	}
	began := time.Now()
	r.renew(n, old)
	r.note("the old node declared dead %.1f s after the start of the new one", time.Since(began).Seconds())
	r.sleep(healed)
}

// rollBack has a node start from a copy of its data directory that was made so many
// starts before its last one. In the meantime it has given rights away, which others
// have noted, so that the copy has rights that are not the node's any more.
func rollBack(starts int) func(*run) {
	return func(r *run) {
		n := r.mesh.Node("a2")
		old := r.scratch("a2-before")
		r.snapshot(n, old)
		copied := record.Now()
		for range starts {
			r.kill(n)
			r.start(n)
		}
		r.twins = r.twinsOf(n)
		given := 0
		if !r.until(time.Minute, time.Second, func() bool { given = r.gifts(r.twins.anchor, copied); return given > 0 }) {
			rig.Must(errors.New("a2 gives no rights away"))
		}
		r.note("a2 has given rights away %d times since the copy was made", given)
		r.mark("a2 is killed, and restarts from an older copy of its data directory")
		r.lose(n)
		rig.Must(os.CopyFS(n.Data, os.DirFS(old)))
		r.twins.alone = record.Now()
		r.twins.over = r.twins.alone
		r.refused(n)
		r.sleep(r.afterlife())
		r.startOver(n, r.twins.id)
	}
}

// gifts counts receipts, since then, of more than a node had given by then.
func (r *run) gifts(giver uint64, since int64) (n int) {
	most := map[uint64]record.Move{}
	for e := range r.events() {
		if e.Anchor != giver || e.Kind != record.Gave && e.Kind != record.Received {
			continue
		}
		m := e.Moved()
		is := most[m.To]
		switch {
		case m.Places <= is.Places && m.Rate <= is.Rate:
		case e.At <= since:
			most[m.To] = record.Move{Places: max(is.Places, m.Places), Rate: max(is.Rate, m.Rate)}
		case e.Kind == record.Received:
			n++
		}
	}
	return n
}

// checkTwins finds grants that rest on a directory that nobody may use any more. The
// numbers, places and rights of both processes are checked as those of any run.
func checkTwins(r *run) (wrong []string) {
	t := r.twins
	if t == nil || t.over == 0 {
		return []string{"there was never a data directory that nobody may use any more"}
	}
	r.readTwins(t)
	if t.given > 0 {
		r.note("%d tickets of the clone, the first %.1f s after the original had stopped", t.given, time.Duration(t.first-t.alone).Seconds())
	}
	if t.late > 0 {
		wrong = append(wrong, fmt.Sprintf("%d tickets rest on the original, from after it had ended", t.late))
	}
	if t.posthumous > 0 {
		wrong = append(wrong, fmt.Sprintf("%d grants rest on the old node, from after all of its processes had ended", t.posthumous))
	}
	return wrong
}

// checkRolledBack is checkTwins where no process goes on: no ticket may rest on the older directory.
func checkRolledBack(r *run) []string {
	wrong := checkTwins(r)
	if r.twins != nil && r.twins.given > 0 {
		wrong = append(wrong, fmt.Sprintf("%d tickets rest on the older directory", r.twins.given))
	}
	return wrong
}

// readTwins gives twins what is on record so far.
func (r *run) readTwins(t *twins) {
	for e := range r.events() {
		t.add(e, int64(r.afterlife()))
	}
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
