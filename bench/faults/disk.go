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

// cureStore restarts a node with a store that is well, as after a crash.
func (r *run) cureStore(n *rig.Node) {
	n.Args = nil
	r.mark("%s restarts with a store that is well", n.Name)
	r.kill(n)
	r.start(n)
}

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

// fillStore has a node run with a store that has room for so many bytes only, and
// sees it come to the end of them: that a commit fails there is certain.
func fillStore(r *run) {
	n := r.mesh.Node("a2")
	r.mark("%s restarts with a store for 2,000 bytes", n.Name)
	r.restart(n, "--fault-store=full@2000")
	id, began := r.idOf(n), time.Now()
	r.await(n, time.Minute, "has a store that is full", storeHasFailed)
	r.mark("the store of %s is full", n.Name)
	from := record.Now() + int64(silenceWithin)
	r.note("%s: full %.1f s after its start", n.Name, time.Since(began).Seconds())
	r.sleep(healed)
	r.silent = append(r.silent, silence{n.Name, id, from, record.Now()})
	r.cureStore(n)
	r.sleep(healed)
}

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

func slowDisk(r *run) {
	n := r.mesh.Node("a2")
	for _, d := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
		r.mark("%s restarts with a store that takes %v", n.Name, d)
		r.restart(n, "--fault-store=slow="+d.String())
		r.sleep(healed)
		r.cureStore(n)
	}
}

func failDisk(r *run) {
	n := r.mesh.Node("a2")
	for _, nth := range []int{20, 200} {
		r.mark("%s restarts with a store that fails at the %dth write", n.Name, nth)
		r.restart(n, fmt.Sprintf("--fault-store=fail@%d", nth))
		// The node makes itself a new store within seconds of the failure.
		began := time.Now()
		if n.Await(r.ctx, time.Minute, "has had a failure", func(s node.Status) bool { return s.StoreFailures > 0 }) != nil {
			r.note("no write was the %dth within a minute", nth)
		} else {
			r.mark("%s has had a failed write, %.1f s after its start", n.Name, time.Since(began).Seconds())
			began = time.Now()
			r.await(n, 20*time.Second, "has a store again", storeIsWell)
			r.note("%s: the %dth write failed, a new store %.1f s later", n.Name, nth, time.Since(began).Seconds())
		}
		r.sleep(healed)
	}
	r.cureStore(n)
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

// declareDead loses a disk and has the others share out what was on it.
func declareDead(r *run) {
	lost := r.mesh.Node("a2")
	before := r.status(lost).Node
	if is := r.rights(lost); is != nil {
		r.note("a2 held %d places", is.Held.Places)
	}
	r.mark("a2 is killed, and its data directory lost")
	r.lose(lost)
	r.start(lost)
	r.whole()
	r.mark("b2 restarts, and is told that the old a2 is dead")
	r.restart(r.mesh.Node("b2"), "--declare-dead="+before)
	r.sleep(healed)
}
