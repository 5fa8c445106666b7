//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/faults/rig"
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

// silenceWithin is how long after its disk was full a node may go on.
const silenceWithin = time.Second

// failing hurts the disk of a node, waits for d, says when the node noticed and
// what it says of itself, and has it checked that it gave nothing meanwhile. cure
// may be nil.
func (r *run) failing(n *rig.Node, d time.Duration, hurt, cure func() error) error {
	before, err := n.Status(r.ctx)
	if err != nil {
		return err
	}
	id, err := crdt.ParseNodeID(before.Node)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := hurt(); err != nil {
		return err
	}
	from := record.Now() + int64(silenceWithin)
	noticed := n.Await(r.ctx, d, "says that its store has failed", func(s node.Status) bool { return s.Store != "ok" })
	switch {
	case !n.Running():
		r.note("%s ended with code %d: %s", n.Name, n.Code(), n.Tail(1))
		return nil
	case noticed != nil:
		return noticed
	default:
		r.note("%s noticed after %.1f s", n.Name, time.Since(began).Seconds())
		if err := r.sleep(d - time.Since(began)); err != nil {
			return err
		}
		// Up to just before the cure: from then on it may be well.
		r.silent = append(r.silent, silence{n.Name, binary.BigEndian.Uint64(id[:]), from, record.Now()})
	}
	if cure == nil {
		return nil
	}
	cured := time.Now()
	if err := cure(); err != nil {
		return err
	}
	if err := n.Await(r.ctx, 20*time.Second, "has a store again", func(s node.Status) bool { return s.Store == "ok" }); err != nil {
		return err
	}
	r.note("%s is well %.1f s after the cure", n.Name, time.Since(cured).Seconds())
	return nil
}

// checkSilence finds tickets that were given without a disk.
func checkSilence(r *run) error {
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
