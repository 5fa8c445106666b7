//go:build linux

package faults

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// rollBack has a node start from a copy of its data directory that was made so many
// starts before its last one. In the meantime it has given rights away, which others
// have noted, so that the copy has rights that are not the node's any more.
func rollBack(starts int) func(*run) error {
	return func(r *run) error {
		n := r.mesh.Node("a2")
		old := r.scratch("a2-before")
		if err := r.snapshot(n, old); err != nil {
			return err
		}
		copied := record.Now()
		for range starts {
			if err := n.Kill(); err != nil {
				return err
			}
			if err := r.restart(n); err != nil {
				return err
			}
		}
		t, err := r.twinsOf(n)
		if err != nil {
			return err
		}
		if err := r.awaitGift(t.anchor, copied); err != nil {
			return err
		}
		r.mark("a2 is killed, and restarts from an older copy of its data directory")
		if err := errors.Join(n.Kill(), n.Wipe(), os.CopyFS(n.Data, os.DirFS(old))); err != nil {
			return err
		}
		t.alone = record.Now()
		t.over, r.twins = t.alone, t
		if err := r.refused(n); err != nil {
			return err
		}
		if err := r.sleep(r.afterlife()); err != nil {
			return err
		}
		return r.startOver(n, t.id)
	}
}

// awaitGift waits until a node has given rights since then, and whoever got them has
// noted it.
func (r *run) awaitGift(giver uint64, since int64) error {
	for deadline := time.Now().Add(time.Minute); ; {
		if err := r.sleep(time.Second); err != nil {
			return err
		}
		given, err := r.gifts(giver, since)
		if err != nil {
			return err
		}
		if given > 0 {
			r.note("a2 has given rights away %d times since the copy was made", given)
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("a2 gives no rights away")
		}
	}
}

// gifts counts receipts of more than a node had given by then.
func (r *run) gifts(giver uint64, since int64) (n int, err error) {
	most := map[uint64]record.Move{}
	for e, err := range record.NewMerge(r.mesh.Sources()).All() {
		if err != nil {
			return 0, err
		}
		if e.Anchor != giver || e.Kind != record.Gave && e.Kind != record.Received {
			continue
		}
		m := e.Moved()
		is := most[m.To]
		if m.Places <= is.Places && m.Rate <= is.Rate {
			continue
		}
		if e.At > since {
			if e.Kind == record.Received {
				n++
			}
			continue
		}
		most[m.To] = record.Move{Places: max(is.Places, m.Places), Rate: max(is.Rate, m.Rate)}
	}
	return n, nil
}

// checkRolledBack finds tickets and gifts that rest on the older directory.
func checkRolledBack(r *run) error {
	t := r.twins
	if t == nil || t.over == 0 {
		return errors.New("no directory was rolled back")
	}
	if err := r.readTwins(t); err != nil {
		return err
	}
	if t.given > 0 || t.late > 0 || t.posthumous > 0 {
		return fmt.Errorf("%d tickets rest on the older directory, and %d grants on the node, from after it had ended", t.given+t.late, t.posthumous)
	}
	return nil
}
