package node

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// The last-writer map has room for the writers of a large mesh at one time. Nodes come and go, and somebody with the
// secret can make up any number. So what is left of a writer that is no node of the mesh is told of by one that is,
// and a writer of which nothing is left is dropped; see crdt.LWW.Adopt.

// adoptMost is how many keys a node adopts in one step.
const adoptMost = 500

// writers is how far this node is with that.
type writers struct {
	absent map[crdt.NodeID]bool // at the last look they were no nodes of the mesh
	adopt  []crdt.NodeID        // of whom this node tells from now on
}

// lookForWriters finds writers that were no nodes of the mesh at the last look either, drops those of which nothing is
// left, and notes those of which this node is to tell.
func (c *Core) lookForWriters(now time.Time) {
	w, absent, exist := &c.forgetting.writers, map[crdt.NodeID]bool{}, c.existing()
	note := func(id crdt.NodeID) (again bool) {
		if _, ok := exist[id]; ok {
			return false
		}
		absent[id] = true
		return w.absent[id]
	}
	w.adopt = nil
	for id := range c.replica.Tellers() {
		if note(id) && c.adopts(id, now) {
			w.adopt = append(w.adopt, id)
		}
	}
	var gone []crdt.NodeID
	for id := range c.replica.IdleWriters() {
		if note(id) {
			gone = append(gone, id)
		}
	}
	w.absent = absent
	slices.SortFunc(w.adopt, compareNodes)
	slices.SortFunc(gone, compareNodes)
	c.drop(gone)
}

func (c *Core) drop(gone []crdt.NodeID) {
	if len(gone) == 0 {
		return
	}
	c.storing.forgotten = append(c.storing.forgotten, c.replica.DropWriters(gone)...)
	for i := range c.forgetting.seen {
		s := &c.forgetting.seen[i]
		s.is = s.is.Without(gone)
	}
}

// adopts reports whether it is this node's turn to tell of a writer. All that know of it mostly agree on that. With
// every look it is the turn of another one: what only one knows, that one adopts in the end.
func (c *Core) adopts(writer crdt.NodeID, now time.Time) bool {
	if c.leave.on || !c.health.clockOK.Load() {
		return false
	}
	ready := []crdt.NodeID{c.self.Node}
	for _, p := range c.peers {
		if p.Ready && p.ID != c.self.Node && !c.facts.gone(p.ID) {
			ready = append(ready, p.ID)
		}
	}
	slices.SortFunc(ready, compareNodes)
	look := uint64(now.Unix()) / uint64(surveyEvery/time.Second)
	return ready[(binary.BigEndian.Uint64(writer[:8])+look)%uint64(len(ready))] == c.self.Node
}

// adoptSome has this node tell of some keys of those of which it is to.
func (c *Core) adoptSome(now time.Time) {
	w := &c.forgetting.writers
	var keys []string
	for len(w.adopt) > 0 && len(keys) < adoptMost {
		for key := range c.replica.ToldBy(w.adopt[0]) {
			if isAdoptable(key) {
				if keys = append(keys, key); len(keys) == adoptMost {
					break
				}
			}
		}
		if len(keys) < adoptMost {
			w.adopt = w.adopt[1:]
		}
	}
	slices.Sort(keys)
	c.replica.Adopt(keys, now)
}

// isAdoptable reports whether another node may tell of a key than wrote it. What nodes say of rights and of themselves
// counts as said by them, and goes when they are forgotten.
func isAdoptable(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	switch kind {
	case factMinted, factTold, factRests, factFinal, factKnew, factWord, factRecovered, factNode, factName, factLeft, factOver, factDead, factStart:
		return false
	}
	return true
}
