//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
)

func (r *run) anyNode() *rig.Node { return r.mesh.Nodes[r.rng.IntN(len(r.mesh.Nodes))] }

func (r *run) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(r.rng.Int64N(int64(hi-lo)))
}

func killAny(r *run) {
	for range 8 {
		n := r.anyNode()
		r.mark("%s is killed", n.Name)
		r.kill(n)
		r.sleep(r.between(0, 3*time.Second))
		r.start(n)
		r.sleep(r.between(0, 3*time.Second))
	}
	r.sleep(healed)
}

func killAll(r *run) {
	r.mark("all nodes are killed")
	for _, n := range r.mesh.Nodes {
		r.kill(n)
	}
	began := time.Now()
	for _, n := range r.mesh.Nodes {
		rig.Must(n.Start())
	}
	r.whole()
	r.note("all nodes are back %.1f s after the kill", time.Since(began).Seconds())
	r.sleep(80 * time.Second) // whatever was used in the minute before it is used for a minute more
}

func pauseCounter(spans ...time.Duration) func(*run) {
	return func(r *run) {
		for _, d := range spans {
			r.pause(r.counter("a"), d)
			r.mark("it is woken")
			r.whole()
			r.sleep(healed)
		}
	}
}

// pause stops a node for a while.
func (r *run) pause(n *rig.Node, d time.Duration) {
	r.mark("%s is stopped for %v", n.Name, d.Round(time.Millisecond))
	rig.Must(n.Pause())
	defer func() { rig.Must(n.Resume()) }()
	r.sleep(d)
}

func pauseAny(r *run) {
	for range 12 {
		r.pause(r.anyNode(), r.between(200*time.Millisecond, 3*time.Second))
		r.sleep(500 * time.Millisecond)
	}
	r.sleep(healed)
}

func crashLoop(d time.Duration) func(*run) {
	return func(r *run) {
		n, seer := r.mesh.Node("a2"), r.mesh.Node("a1")
		r.mark("%s is killed every 2 s", n.Name)
		flaps, last := 0, ""
		for end := time.Now().Add(d); time.Now().Before(end); {
			r.kill(n)
			rig.Must(n.Start())
			r.sleep(2 * time.Second)
			if s, err := seer.Status(r.ctx); err == nil && len(s.Rooms) > 0 && s.Rooms[0].SiteCounter != last {
				flaps, last = flaps+1, s.Rooms[0].SiteCounter
			}
		}
		r.note("the counter that a1 knows changed %d times in %v", max(flaps-1, 0), d)
		r.whole()
		if got, most := len(r.status(seer).Peers), len(r.mesh.Nodes)+10; got > most {
			rig.Must(fmt.Errorf("a1 knows %d peers after the loop, want at most %d", got, most))
		}
		r.sleep(healed)
	}
}

func shiftClock(by ...time.Duration) func(*run) {
	return func(r *run) {
		for i, d := range by {
			n := r.mesh.Nodes[1+i]
			r.mark("%s restarts with a clock that is off by %v", n.Name, d)
			r.stop(n)
			n.Args = []string{"--fault-clock-skew=" + d.String()}
			rig.Must(n.Start()) // and may refuse visitors
			r.sleep(healed)
			r.mark("%s restarts with the right time", n.Name)
			r.restart(n)
		}
		r.sleep(healed)
	}
}
