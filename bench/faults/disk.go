//go:build linux

package faults

import (
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/node"
)

func fillDisk(r *run) error {
	for _, site := range []string{"a", "b"} {
		n, err := r.counter(site)
		if err != nil {
			return err
		}
		r.mark("the disk of %s, the counter of site %s, is full", n.Name, site)
		if err := r.failing(n, healed, n.Disk.Fill, n.Disk.Free); err != nil {
			return err
		}
		if err := r.sleep(healed); err != nil {
			return err
		}
	}
	return nil
}

// fillStore has a node run with a store that has room for so many bytes only, and
// sees it come to the end of them: that a commit fails there is certain.
func fillStore(r *run) error {
	n := r.mesh.Node("a2")
	if err := n.Stop(40 * time.Second); err != nil {
		return err
	}
	n.Args = []string{"--fault-store=full@2000"}
	defer func() { n.Args = nil }()
	r.mark("%s restarts with a store for 2,000 bytes", n.Name)
	if err := r.restart(n); err != nil {
		return err
	}
	id, err := r.idOf(n)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := n.Await(r.ctx, time.Minute, "has a store that is full", func(s node.Status) bool { return s.Store != "ok" }); err != nil {
		return err
	}
	r.mark("the store of %s is full", n.Name)
	from := record.Now() + int64(silenceWithin)
	r.note("%s: full %.1f s after its start", n.Name, time.Since(began).Seconds())
	if err := r.sleep(healed); err != nil {
		return err
	}
	r.silent = append(r.silent, silence{n.Name, id, from, record.Now()})
	n.Args = nil
	r.mark("%s restarts with a store that has room", n.Name)
	if err := n.Kill(); err != nil {
		return err
	}
	if err := r.restart(n); err != nil {
		return err
	}
	return r.sleep(healed)
}

func slowDisk(r *run) error {
	for _, d := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 5 * time.Second} {
		if err := r.sickStore("a2", "slow="+d.String()); err != nil {
			return err
		}
	}
	return nil
}

func failDisk(r *run) error {
	n := r.mesh.Node("a2")
	for _, nth := range []int{20, 200} {
		how := fmt.Sprintf("fail@%d", nth)
		n.Args = []string{"--fault-store=" + how}
		r.mark("%s restarts with a store that is %s", n.Name, how)
		if err := n.Stop(40 * time.Second); err != nil {
			return err
		}
		if err := r.restart(n); err != nil {
			return err
		}
		// The node makes itself a new store within seconds of the failure.
		began := time.Now()
		failed := n.Await(r.ctx, time.Minute, "has had a failure", func(s node.Status) bool { return s.StoreFailures > 0 })
		if failed != nil {
			r.note("no write was the %dth within a minute", nth)
		} else {
			r.mark("%s has had a failed write, %.1f s after its start", n.Name, time.Since(began).Seconds())
			began = time.Now()
			if err := n.Await(r.ctx, 20*time.Second, "has a store again", func(s node.Status) bool { return s.Store == "ok" }); err != nil {
				return err
			}
			r.note("%s: the %dth write failed, a new store %.1f s later", n.Name, nth, time.Since(began).Seconds())
		}
		if err := r.sleep(healed); err != nil {
			return err
		}
	}
	n.Args = nil
	r.mark("%s restarts with a store that is well", n.Name)
	if err := n.Kill(); err != nil {
		return err
	}
	return r.restart(n)
}

// sickStore restarts a node with a store that misbehaves, and again with one
// that does not.
func (r *run) sickStore(name, how string) error {
	n := r.mesh.Node(name)
	defer func() { n.Args = nil }()
	n.Args = []string{"--fault-store=" + how}
	r.mark("%s restarts with a store that is %s", name, how)
	if err := n.Stop(40 * time.Second); err != nil {
		return err
	}
	if err := r.restart(n); err != nil {
		return err
	}
	if err := r.sleep(healed); err != nil {
		return err
	}
	n.Args = nil
	r.mark("%s restarts with a store that is well", name)
	if err := n.Kill(); err != nil {
		return err
	}
	return r.restart(n)
}

func loseDisk(r *run) error {
	for _, name := range []string{"a2", "b1"} {
		n := r.mesh.Node(name)
		before, err := n.Status(r.ctx)
		if err != nil {
			return err
		}
		r.mark("%s is killed, and its data directory lost", name)
		if err := errors.Join(n.Kill(), n.Wipe()); err != nil {
			return err
		}
		if err := r.restart(n); err != nil {
			return err
		}
		after, err := n.Status(r.ctx)
		if err != nil {
			return err
		}
		if after.Node == before.Node {
			return fmt.Errorf("%s has the id %s that it had before its directory was lost", name, after.Node)
		}
		if err := r.sleep(healed); err != nil {
			return err
		}
	}
	return nil
}

// declareDead loses a disk and has the others share out what was on it.
func declareDead(r *run) error {
	lost := r.mesh.Node("a2")
	before, err := lost.Status(r.ctx)
	if err != nil {
		return err
	}
	if len(before.Rooms) > 0 && before.Rooms[0].Rights != nil {
		r.note("a2 held %d places", before.Rooms[0].Rights.Held.Places)
	}
	r.mark("a2 is killed, and its data directory lost")
	if err := errors.Join(lost.Kill(), lost.Wipe()); err != nil {
		return err
	}
	if err := r.restart(lost); err != nil {
		return err
	}
	if err := r.mesh.Await(r.ctx, 40*time.Second); err != nil {
		return err
	}
	teller := r.mesh.Node("b2")
	teller.Args = []string{"--declare-dead=" + before.Node}
	r.mark("b2 restarts, and is told that the old a2 is dead")
	if err := teller.Stop(40 * time.Second); err != nil {
		return err
	}
	if err := r.restart(teller); err != nil {
		return err
	}
	return r.sleep(healed)
}

func leaveForGood(r *run) error {
	n := r.mesh.Node("a2")
	n.Args = []string{"--on-stop=leave"}
	r.say("a2 restarts, to leave when it is stopped")
	if err := n.Stop(40 * time.Second); err != nil {
		return err
	}
	if err := r.restart(n); err != nil {
		return err
	}
	if err := r.sleep(healed); err != nil {
		return err
	}
	r.mark("a2 is stopped, and leaves")
	began := time.Now()
	if err := n.Stop(40 * time.Second); err != nil {
		return err
	}
	r.note("a2 ended with code %d, %.1f s after the signal", n.Code(), time.Since(began).Seconds())
	return r.sleep(healed)
}
