//go:build linux

package faults

import (
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// restart starts a node that has ended, and waits until it takes visitors.
func (r *run) restart(n *rig.Node) error {
	if err := n.Start(); err != nil {
		return err
	}
	return n.Await(r.ctx, 30*time.Second, "is ready", func(s node.Status) bool { return s.Ready })
}

func killAny(r *run) error {
	for range r.times(8) {
		n := r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))]
		r.mark("%s is killed", n.Name)
		if err := n.Kill(); err != nil {
			return err
		}
		if err := r.sleep(time.Duration(r.rng.Int64N(int64(3 * time.Second)))); err != nil {
			return err
		}
		if err := r.restart(n); err != nil {
			return err
		}
		if err := r.sleep(time.Duration(r.rng.Int64N(int64(3 * time.Second)))); err != nil {
			return err
		}
	}
	return r.sleep(healed)
}

// times returns how often a fault is repeated: n, unless more trials are asked
// for.
func (r *run) times(n int) int { return max(n, r.trials) }

func killAll(r *run) error {
	r.mark("all nodes are killed")
	for _, n := range r.mesh.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	began := time.Now()
	for _, n := range r.mesh.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	if err := r.mesh.Await(r.ctx, 40*time.Second); err != nil {
		return err
	}
	r.note("all nodes are back %.1f s after the kill", time.Since(began).Seconds())
	// Whatever was used in the minute before it is used for a minute more.
	return r.sleep(80 * time.Second)
}

func pauseCounter(spans ...time.Duration) func(*run) error {
	return func(r *run) error {
		for _, d := range spans {
			c, err := r.counter("a")
			if err != nil {
				return err
			}
			if err := pauseFor(r, c, d); err != nil {
				return err
			}
			if err := r.sleep(healed); err != nil {
				return err
			}
		}
		return nil
	}
}

// pauseFor stops a node for a while, and waits until all see all again.
func pauseFor(r *run, n *rig.Node, d time.Duration) error {
	r.mark("%s is stopped for %v", n.Name, d)
	if err := n.Pause(); err != nil {
		return err
	}
	err := r.sleep(d)
	r.mark("%s is woken", n.Name)
	if err = errors.Join(err, n.Resume()); err != nil {
		return err
	}
	return r.mesh.Await(r.ctx, 40*time.Second)
}

func pauseAny(r *run) error {
	for range r.times(12) {
		n := r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))]
		d := 200*time.Millisecond + time.Duration(r.rng.Int64N(int64(2800*time.Millisecond)))
		r.mark("%s is stopped for %v", n.Name, d.Round(time.Millisecond))
		if err := n.Pause(); err != nil {
			return err
		}
		err := r.sleep(d)
		if err = errors.Join(err, n.Resume()); err != nil {
			return err
		}
		if err := r.sleep(500 * time.Millisecond); err != nil {
			return err
		}
	}
	return r.sleep(healed)
}

func crashLoop(d time.Duration) func(*run) error {
	return func(r *run) error {
		n := r.mesh.Node("a2")
		r.mark("%s is killed every 2 s", n.Name)
		flaps, last := 0, ""
		for end := time.Now().Add(d); time.Now().Before(end); {
			if err := n.Kill(); err != nil {
				return err
			}
			if err := n.Start(); err != nil {
				return err
			}
			if err := r.sleep(2 * time.Second); err != nil {
				return err
			}
			if s, err := r.mesh.Node("a1").Status(r.ctx); err == nil && len(s.Rooms) > 0 {
				if c := s.Rooms[0].SiteCounter; c != last {
					flaps, last = flaps+1, c
				}
			}
		}
		r.note("the counter that a1 knows changed %d times in %v", max(flaps-1, 0), d)
		if err := r.mesh.Await(r.ctx, 40*time.Second); err != nil {
			return err
		}
		s, err := r.mesh.Node("a1").Status(r.ctx)
		if err != nil {
			return err
		}
		if got, most := len(s.Peers), len(r.mesh.Nodes)+10; got > most {
			return fmt.Errorf("a1 knows %d peers after the loop, want at most %d", got, most)
		}
		return r.sleep(healed)
	}
}

func shiftClock(by ...time.Duration) func(*run) error {
	return func(r *run) error {
		for i, d := range by {
			n := r.mesh.Nodes[1+i]
			r.mark("%s restarts with a clock that is off by %v", n.Name, d)
			if err := n.Stop(40 * time.Second); err != nil {
				return err
			}
			n.Args = []string{"--fault-clock-skew=" + d.String()}
			if err := n.Start(); err != nil {
				return err
			}
			if err := r.sleep(healed); err != nil {
				return err
			}
			r.mark("%s restarts with the right time", n.Name)
			if err := n.Stop(40 * time.Second); err != nil {
				return err
			}
			n.Args = nil
			if err := r.restart(n); err != nil {
				return err
			}
		}
		return r.sleep(healed)
	}
}
