package small

import (
	"fmt"
	"slices"
)

// each calls yield for every world that follows from one, until it returns false. Events
// that change nothing are left out.
func (m *model) each(w world, yield func(e move, next world, broken string) bool) {
	for i := range m.numbers {
		for _, x := range m.events(w, i) {
			o := m.do(w.nodes[i], x.event)
			next := w
			next.nodes[i] = o.to
			if len(o.sent) > 0 {
				next.messages = m.with(w.messages, o.sent)
			}
			if next == w {
				continue
			}
			if x.part >= 0 {
				next.used[x.part]++
			}
			if x.do == limits {
				next.greatest = max(w.greatest, x.value)
			}
			broken := ""
			if sum := m.owned(next); sum > int64(next.greatest) {
				broken = fmt.Sprintf("the nodes that run own %d rights, and no limit was ever more than %d", sum, next.greatest)
			}
			if !yield(move{int8(i), x.event}, next, broken) {
				return
			}
		}
	}
	for _, t := range []possible{{event{do: ends}, Ends}, {event{do: admits}, Crowds}} {
		if !m.may(w, t.part) {
			continue
		}
		next, in, broken := w, int32(0), ""
		if t.do == ends {
			next.inside = crowds{}
		}
		for i := range m.numbers {
			if s := m.states.All[w.nodes[i]]; t.do == admits && (s.rights == nil || s.heir[0] != 0) {
				continue
			}
			o := m.do(w.nodes[i], t.event)
			next.nodes[i] = o.to
			in += int32(o.in)
			next.messages = m.with(next.messages, o.sent)
		}
		next.used[t.part]++
		if sum := next.inside.enter(in); sum > next.greatest {
			broken = fmt.Sprintf("%d are inside, and no limit was ever more than %d", sum, next.greatest)
		}
		if !yield(move{-1, t.event}, next, broken) {
			return
		}
	}
}

// enter has some more be inside, and returns how many are.
func (c *crowds) enter(n int32) (sum int32) {
	c[0] += n // the least, and so of nobody as long as there is another
	slices.Sort(c[:])
	return c[0] + c[1]
}

func (m *model) may(w world, part int) bool { return w.used[part] < m.cfg.Budget[part] }

// owned returns how many places the nodes own that run.
func (m *model) owned(w world) (sum int64) {
	for i := range m.numbers {
		sum += m.states.All[w.nodes[i]].held
	}
	return sum
}

// possible is an event that may happen, and the part of the budget that it takes; -1: none.
type possible struct {
	event
	part int
}

// events returns what may happen to a node.
func (m *model) events(w world, i int) (all []possible) {
	s := m.states.All[w.nodes[i]]
	add := func(part int, e event) {
		if part < 0 || m.may(w, part) {
			all = append(all, possible{e, part})
		}
	}
	switch {
	case s.gone:
		return nil
	case s.rights == nil:
		add(-1, event{do: starts})
		add(Losses, event{do: loses})
		return all
	}
	if !m.cfg.Coarse {
		add(-1, event{do: steps})
	}
	if s.writes {
		add(-1, event{do: saves})
		add(Stops, event{do: stopsAt})
	}
	add(Stops, event{do: stops})
	add(Losses, event{do: loses})
	for _, x := range m.sets.All[w.messages] {
		if m.messages.All[x].to == s.number {
			add(-1, event{do: receives, value: x})
		}
	}
	for k, number := range m.numbers {
		if k == i {
			continue
		}
		o := m.states.All[w.nodes[k]]
		if o.rights != nil {
			add(-1, event{do: hears, with: number, value: o.says})
			add(Gifts, event{do: gives, with: number})
			if o.heir[0] == 0 && s.heir[0] == 0 && !m.older(number) { // who leaves, or could not read the ledger, agrees to nothing
				add(Leaves, event{do: leaves, with: number})
			}
		}
		if o.gone {
			add(-1, event{do: declares, with: number})
		}
	}
	if s.heir[0] == 0 {
		add(Limits, event{do: limits, value: int32(m.firstLimit() + 1)})
		add(Limits, event{do: limits, value: int32(m.firstLimit() - 1)})
	}
	return all
}
