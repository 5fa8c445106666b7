package node

import (
	"iter"
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// perNode is a map by node. Rooms are many, and of most only a node or two say anything:
// for so few it is a list, which takes a tenth of a map's memory. The zero value is empty.
type perNode[V any] struct {
	few  []ofNode[V]       // in the order in which they came; nil once there are many
	many map[crdt.NodeID]V // nil while there are few
}

type ofNode[V any] struct {
	node crdt.NodeID
	is   V
}

// fewNodes is how many entries are few.
const fewNodes = 8

// get returns what is kept of a node.
func (m *perNode[V]) get(id crdt.NodeID) (is V, known bool) {
	if m.many != nil {
		is, known = m.many[id]
		return is, known
	}
	for i := range m.few {
		if m.few[i].node == id {
			return m.few[i].is, true
		}
	}
	return is, false
}

// of is get where what is not known is as good as zero.
func (m *perNode[V]) of(id crdt.NodeID) V {
	is, _ := m.get(id)
	return is
}

// has reports whether something is kept of a node.
func (m *perNode[V]) has(id crdt.NodeID) bool {
	_, known := m.get(id)
	return known
}

// any reports whether something is kept of any node.
func (m *perNode[V]) any() bool { return len(m.few)+len(m.many) > 0 }

// set keeps something of a node in place of what was kept before.
func (m *perNode[V]) set(id crdt.NodeID, is V) {
	if m.many != nil {
		m.many[id] = is
		return
	}
	for i := range m.few {
		if m.few[i].node == id {
			m.few[i].is = is
			return
		}
	}
	if m.few = append(m.few, ofNode[V]{id, is}); len(m.few) > fewNodes {
		m.many = maps.Collect(m.all())
		m.few = nil
	}
}

// keep has something be kept of a node, or nothing.
func (m *perNode[V]) keep(id crdt.NodeID, is V, there bool) {
	if there {
		m.set(id, is)
		return
	}
	packed.Delete(&m.many, id)
	m.few = slices.DeleteFunc(m.few, func(x ofNode[V]) bool { return x.node == id })
	if n := len(m.many); m.many != nil && n <= fewNodes/2 {
		few := make([]ofNode[V], 0, n)
		for _, id := range slices.SortedFunc(maps.Keys(m.many), compareNodes) {
			few = append(few, ofNode[V]{id, m.many[id]})
		}
		m.few, m.many = few, nil
	}
}

// all yields everything, in no order.
func (m *perNode[V]) all() iter.Seq2[crdt.NodeID, V] {
	return func(yield func(crdt.NodeID, V) bool) {
		for _, x := range m.few {
			if !yield(x.node, x.is) {
				return
			}
		}
		for id, is := range m.many {
			if !yield(id, is) {
				return
			}
		}
	}
}
