package crdt

import (
	"iter"
	"maps"
	"slices"
)

// slots is a map by slot. Most rooms have two or three cells, and there may be thousands of
// rooms: so few are a list, which takes a third of a map's memory. The zero value is empty.
type slots[V any] struct {
	few  []slotOf[V]
	many map[slot]V // nil while they are few
}

type slotOf[V any] struct {
	slot slot
	is   V
}

// fewSlots is how many are few.
const fewSlots = 6

func (m *slots[V]) len() int { return len(m.few) + len(m.many) }

func (m *slots[V]) find(s slot) int {
	return slices.IndexFunc(m.few, func(x slotOf[V]) bool { return x.slot == s })
}

func (m *slots[V]) get(s slot) (is V, known bool) {
	if m.many != nil {
		is, known = m.many[s]
	} else if i := m.find(s); i >= 0 {
		is, known = m.few[i].is, true
	}
	return is, known
}

// of is get where what is not known is as good as zero.
func (m *slots[V]) of(s slot) V {
	is, _ := m.get(s)
	return is
}

func (m *slots[V]) set(s slot, is V) {
	if m.many != nil {
		m.many[s] = is
	} else if i := m.find(s); i >= 0 {
		m.few[i].is = is
	} else if m.few = append(m.few, slotOf[V]{s, is}); len(m.few) > fewSlots {
		many := maps.Collect(m.all())
		m.few, m.many = nil, many
	}
}

// deleteFunc deletes what gone says. A map that is empty is given up, so that a busy room
// that has become quiet takes no more than others.
func (m *slots[V]) deleteFunc(gone func(slot, V) bool) {
	m.few = slices.DeleteFunc(m.few, func(x slotOf[V]) bool { return gone(x.slot, x.is) })
	maps.DeleteFunc(m.many, gone)
	if len(m.many) == 0 {
		m.many = nil
	}
}

// delete deletes one.
func (m *slots[V]) delete(s slot) {
	if i := m.find(s); i >= 0 {
		m.few = slices.Delete(m.few, i, i+1)
	}
	if delete(m.many, s); len(m.many) == 0 {
		m.many = nil
	}
}

// all yields everything, in no order.
func (m *slots[V]) all() iter.Seq2[slot, V] {
	return func(yield func(slot, V) bool) {
		for _, x := range m.few {
			if !yield(x.slot, x.is) {
				return
			}
		}
		for s, is := range m.many {
			if !yield(s, is) {
				return
			}
		}
	}
}

func (m *slots[V]) clone() slots[V] { return slots[V]{slices.Clone(m.few), maps.Clone(m.many)} }
