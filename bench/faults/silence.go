//go:build linux

package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// silence is a span in which a node must give no ticket of its own: it could not
// write down what these rest on.
type silence struct {
	node        string
	anchor      uint64
	from, until int64
}

// silenceWithin is how long after the disk has failed a node may go on. A full one
// has failed when it is full, although the file could go on for long: it uses its
// own pages again, and a node looks for what is free by itself.
const silenceWithin = time.Second

// failing hurts the disk of a node, waits for d, says when the node noticed and
// what it says of itself, and has it checked that it gave nothing meanwhile. cure
// may be nil.
func (r *run) failing(n *rig.Node, d time.Duration, hurt, cure func() error) error {
	id, err := r.idOf(n)
	if err != nil {
		return err
	}
	if err := hurt(); err != nil {
		return err
	}
	began, from := time.Now(), record.Now()+int64(silenceWithin)
	noticed := n.Await(r.ctx, d, "says that its store has failed", func(s node.Status) bool { return s.Store != "ok" })
	switch {
	case !n.Running():
		return fmt.Errorf("%s ended with code %d, and lets nobody in any more who was in: %s", n.Name, n.Code(), n.Tail(1))
	case noticed != nil:
		return fmt.Errorf("%s went on for %v as if nothing had happened", n.Name, d)
	}
	took := time.Since(began)
	r.note("%s noticed after %.1f s", n.Name, took.Seconds())
	if took > silenceWithin {
		err = fmt.Errorf("%s noticed after %v only, want %v", n.Name, took.Round(time.Millisecond), silenceWithin)
	}
	if err = errors.Join(err, r.sleep(d-took)); err != nil {
		return err
	}
	// Up to just before the cure: from then on it may be well.
	r.silent = append(r.silent, silence{n.Name, id, from, record.Now()})
	if cure == nil {
		return nil
	}
	cured := time.Now()
	if err := cure(); err != nil {
		return err
	}
	if err := n.Await(r.ctx, wellWithin, "has a store again", func(s node.Status) bool { return s.Store == "ok" }); err != nil {
		return err
	}
	r.note("%s is well %.1f s after the cure", n.Name, time.Since(cured).Seconds())
	return nil
}

// wellWithin is how long a node may need once there is room again.
const wellWithin = 5 * time.Second

// idOf returns the first bytes of a node's id, by which records name it.
func (r *run) idOf(n *rig.Node) (uint64, error) {
	s, err := n.Status(r.ctx)
	if err != nil {
		return 0, err
	}
	id, err := crdt.ParseNodeID(s.Node)
	return binary.BigEndian.Uint64(id[:]), err
}

// checkSilence finds tickets that were given without a disk.
func checkSilence(r *run) error {
	if len(r.silent) == 0 {
		return errors.New("no disk was ever without room")
	}
	given := map[string]int{}
	merge := record.NewMerge(r.mesh.Sources())
	for e, err := range merge.All() {
		if err != nil {
			return err
		}
		for _, s := range r.silent {
			if e.Kind == record.Entered && e.Anchor == s.anchor && e.Called() > s.from && e.At < s.until {
				given[s.node]++
			}
		}
	}
	if len(given) > 0 {
		return fmt.Errorf("tickets were given without a disk to write to: %v", given)
	}
	return nil
}
