package crdt

import (
	"iter"
	"maps"

	"github.com/ropeline/ropeline/node/packed"
)

// How writers are forgotten. A map has room for the writers of a large mesh, not for all that a mesh has in its life,
// nor for all that somebody makes up. So what is left of a node that is gone is told of by another one in its place,
// with the stamp that it was written with: it wins and loses against other writes as before. Once nothing is left that
// a writer tells of, there is nothing to be told, and what is known of it can be dropped. Whoever hears of it once
// more takes it up again, and drops it again.

// Writers returns of how many nodes something is known, or was dropped.
func (m *LWW) Writers() int { return len(m.known) }

// MaxWriters is of how many nodes an LWW takes writes at most.
const MaxWriters = maxWriters

// TellerOf returns the stamp with which others are told of the newest write of key, and whose it is: that of the
// write, or of whoever has adopted it. ok is false for a key that was never written.
func (m *LWW) TellerOf(key string) (at Stamp, ok bool) {
	e, ok := m.entries.get(key)
	return e.stamp, ok
}

// Idle yields the nodes of which no write is left to be told of, in no order.
func (m *LWW) Idle() iter.Seq[NodeID] {
	covered := map[NodeID]bool{}
	for _, all := range m.beneath {
		for _, e := range all {
			covered[e.stamp.Node] = true
		}
	}
	return func(yield func(NodeID) bool) {
		for writer := range m.known {
			if writer != nobody && !covered[writer] && !m.entries.writes(writer) && !yield(writer) {
				return
			}
		}
	}
}

// Tellers yields the nodes that tell of a write, in no order.
func (m *LWW) Tellers() iter.Seq[NodeID] { return maps.Keys(m.entries.writer) }

// ToldBy yields the keys, deleted ones included, that a node tells of, in no order. Nothing may be written meanwhile.
func (m *LWW) ToldBy(writer NodeID) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m.entries.newer(writer, 0) {
			if !yield(m.entries.key(k)) {
				return
			}
		}
	}
}

// Adopt has the node of the stamps tell of the newest write to each key, in place of who does now. The stamps are as
// those of Set.
func (m *LWW) Adopt(keys []string, next func() Stamp) {
	for _, key := range keys {
		e, ok := m.entries.get(key)
		if !ok {
			continue
		}
		at := next()
		e.first, e.stamp = e.written(), at
		m.learn(at.Node, at.packed())
		m.put(key, e)
		m.changes++
	}
}

// Drop forgets that there are writers that are Idle, and returns what is to be stored of that, as Forget does. That
// deletions of theirs may be forgotten is from then on said of nobody.
func (m *LWW) Drop(writers []NodeID) (parts []Part) {
	for _, writer := range writers {
		parts = append(parts, Part{Name: PartOfWriter(writer)})
		if h, ok := m.forgot[writer]; ok {
			parts = append(parts, Part{Name: h.part(writer).Name})
			m.forgetUpTo(nobody, h.upTo)
			m.learn(nobody, h.upTo)
		}
		packed.Delete(&m.known, writer)
		packed.Delete(&m.learned, writer)
		packed.Delete(&m.hides, writer)
		packed.Delete(&m.forgot, writer)
		m.tells++
	}
	if h, ok := m.forgot[nobody]; ok && len(parts) > 0 {
		parts = append(parts, h.part(nobody), m.partKnown(nobody))
	}
	return parts
}

// Heard returns the newest stamp of a write of others than a node that m has ever known of, dropped ones included:
// deletions up to there it has heard of, unless somebody who was gone for them by then wrote them.
func (m *LWW) Heard(but NodeID) (newest uint64) {
	for writer, n := range m.known {
		if writer != but {
			newest = max(newest, n)
		}
	}
	return newest
}

// Without returns what is left of what all had at a time once writers were dropped.
func (s Settling) Without(writers []NodeID) Settling {
	s = Settling{maps.Clone(s.All), maps.Clone(s.Any)}
	for _, w := range writers {
		delete(s.All, w)
		delete(s.Any, w)
	}
	return s
}
