//go:build linux

package faults

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
)

// Steps of scripts. One that cannot be done ends the script: see [rig.Try].

const (
	// healed is how long after the last fault a run goes on, so that what came of it
	// shows: a session and what is kept aside for one, and more.
	healed = 12 * time.Second

	stopsWithin = 40 * time.Second // a node that is told to
)

// say tells whoever watches.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%-4s %6.1fs  %s\n", r.Name, time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// mark says what is done to the mesh, and when.
func (r *run) mark(format string, args ...any) {
	r.marks = append(r.marks, record.Now())
	r.say(format, args...)
}

// note keeps a figure for the table.
func (r *run) note(format string, args ...any) {
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
	r.say("%s", r.seen[len(r.seen)-1])
}

func (r *run) sleep(d time.Duration) { rig.Must(rig.Sleep(r.ctx, d)) }

func (r *run) until(limit, every time.Duration, is func() bool) bool {
	return rig.Until(r.ctx, limit, every, is)
}

func (r *run) kill(n *rig.Node) { rig.Must(n.Kill()) }

// stop has a node end in good order.
func (r *run) stop(n *rig.Node) {
	rig.Must(n.StopWithin(stopsWithin))
	if n.Code() != 0 {
		rig.Must(fmt.Errorf("%s, told to stop, ended with %s; it said last:\n%s", n.Name, n.State(), n.Tail(8)))
	}
}

// start starts a node that has ended, and waits until it takes visitors.
func (r *run) start(n *rig.Node) {
	rig.Must(n.Start())
	r.await(n, 30*time.Second, "is ready", func(s node.Status) bool { return s.Ready })
}

// restart has a node end in good order, and start with these flags besides those of the mesh.
func (r *run) restart(n *rig.Node, args ...string) {
	r.stop(n)
	n.Args = args
	r.start(n)
}

// lose kills a node, and loses its data directory.
func (r *run) lose(n *rig.Node) {
	r.kill(n)
	rig.Must(n.Wipe())
}

// renew starts a node whose data directory is lost as a new one, which declares the old one dead, so that its rights
// come back.
func (r *run) renew(n *rig.Node, old string) {
	args := n.Args
	n.Args = append(slices.Clone(args), "--declare-dead="+old)
	r.start(n)
	n.Args = args
	r.await(n, 30*time.Second, "has declared the old one dead", func(s node.Status) bool {
		return s.Node != old && strings.Contains(n.Log(), "declared dead: its rights")
	})
}

func (r *run) await(n *rig.Node, limit time.Duration, what string, is func(node.Status) bool) {
	rig.Must(n.Await(r.ctx, limit, what, is))
}

// whole waits until all nodes that run see all others.
func (r *run) whole() { rig.Must(r.mesh.Await(r.ctx, 40*time.Second)) }

func (r *run) status(n *rig.Node) node.Status { return rig.Got(n.Status(r.ctx)) }

// rights returns what a node says of its rights; nil if it does not answer, or has none.
func (r *run) rights(n *rig.Node) *node.RightsStatus {
	s, err := n.Status(r.ctx)
	if err != nil || len(s.Rooms) == 0 {
		return nil
	}
	return s.Rooms[0].Rights
}

// idOf returns the first bytes of a node's id, by which records name it.
func (r *run) idOf(n *rig.Node) uint64 {
	id := rig.Got(crdt.ParseNodeID(r.status(n).Node))
	return binary.BigEndian.Uint64(id[:])
}

// counter returns the node that hands out tickets in a site, once it says so
// itself and so does everybody else there.
func (r *run) counter(site string) (n *rig.Node) {
	if !r.until(15*time.Second, 50*time.Millisecond, func() bool { n = r.agreed(site); return n != nil }) {
		rig.Must(fmt.Errorf("the nodes of site %s do not agree on a counter", site))
	}
	return n
}

// agreed returns the node that all nodes of a site that answer name as its
// counter, or nil.
func (r *run) agreed(site string) *rig.Node {
	named, ids := "", map[string]*rig.Node{}
	for _, n := range r.mesh.Nodes {
		if n.Site != site || !n.Running() {
			continue
		}
		s, err := n.Status(r.ctx)
		if err != nil || len(s.Rooms) == 0 {
			continue
		}
		ids[s.Node] = n
		if c := s.Rooms[0].SiteCounter; named != "" && c != named {
			return nil
		}
		named = s.Rooms[0].SiteCounter
	}
	return ids[named]
}

// events yields what is on record so far, of some nodes or of all.
func (r *run) events(nodes ...string) iter.Seq[record.Located] {
	sources := slices.DeleteFunc(r.mesh.Sources(), func(s record.Source) bool { return len(nodes) > 0 && !slices.Contains(nodes, s.Node) })
	return func(yield func(record.Located) bool) {
		for e, err := range record.Merge(sources) {
			rig.Must(err)
			if !yield(e) {
				return
			}
		}
	}
}
