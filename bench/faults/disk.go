//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

func storeIsWell(s node.Status) bool { return s.Store == "ok" }

func storeHasFailed(s node.Status) bool { return s.Store != "ok" }

func fillDisk(r *run) {
	for _, site := range []string{"a", "b"} {
		n := r.counter(site)
		r.mark("the disk of %s, the counter of site %s, is full", n.Name, site)
		r.fill(n)
		r.sleep(healed)
	}
}

// fill fills the disk of a node for a while, says when the node noticed, has it checked that it gave
// nothing meanwhile, and frees it.
func (r *run) fill(n *rig.Node) {
	id := r.idOf(n)
	rig.Must(n.Disk.Fill())
	began, from := time.Now(), record.Now()+int64(silenceWithin)
	noticed := n.Await(r.ctx, healed, "says that its store has failed", storeHasFailed)
	took := time.Since(began)
	switch {
	case !n.Running():
		rig.Must(fmt.Errorf("%s ended with code %d, and lets nobody in any more who was in: %s", n.Name, n.Code(), n.Tail(1)))
	case noticed != nil:
		rig.Must(fmt.Errorf("%s went on for %v as if nothing had happened", n.Name, healed))
	case took > silenceWithin:
		rig.Must(fmt.Errorf("%s noticed after %v only, want %v", n.Name, took.Round(time.Millisecond), silenceWithin))
	}
	r.note("%s noticed after %.1f s", n.Name, took.Seconds())
	r.sleep(healed - took)
	// Up to just before the cure: from then on it may be well.
	r.silent = append(r.silent, silence{n.Name, id, from, record.Now()})
	cured := time.Now()
	rig.Must(n.Disk.Free())
	r.await(n, wellWithin, "has a store again", storeIsWell)
	r.note("%s is well %.1f s after the cure", n.Name, time.Since(cured).Seconds())
}

const (
	// silenceWithin is how long after the disk has failed a node may go on. A full one
	// has failed when it is full, although the file could go on for long: it uses its
	// own pages again, and a node looks for what is free by itself.
	silenceWithin = time.Second

	wellWithin = 5 * time.Second // once there is room again
)

// silence is a span in which a node must give no ticket of its own: it could not
// write down what these rest on.
type silence struct {
	node        string
	anchor      uint64
	from, until int64
}

// checkSilence finds tickets that were given without a disk.
func checkSilence(r *run) []string {
	if len(r.silent) == 0 {
		return []string{"no disk was ever without room"}
	}
	given := map[string]int{}
	for e := range r.events() {
		for _, s := range r.silent {
			if e.Kind == record.Entered && e.Anchor == s.anchor && e.Called() > s.from && e.At < s.until {
				given[s.node]++
			}
		}
	}
	if len(given) > 0 {
		return []string{fmt.Sprintf("tickets were given without a disk to write to: %v", given)}
	}
	return nil
}

func loseDisk(r *run) {
	for _, name := range []string{"a2", "b1"} {
		n := r.mesh.Node(name)
		before := r.status(n).Node
		r.mark("%s is killed, and its data directory lost", name)
		r.lose(n)
		r.start(n)
		if r.status(n).Node == before {
			rig.Must(fmt.Errorf("%s has the id %s that it had before its directory was lost", name, before))
		}
		r.sleep(healed)
	}
}
