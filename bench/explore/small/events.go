package small

import (
	"fmt"
	"slices"
)

// costs is the part of the budget that an event takes, if it takes any.
var costs = map[action]int{
	limits: Limits, leaves: Leaves, stops: Stops, stopsAt: Stops, loses: Losses, gives: Gifts, ends: Ends, admits: Crowds,
}

// spend takes an event out of the budget, and reports whether there is enough left.
func (m *model) spend(w *world, do action) bool {
	part, costs := costs[do]
	if !costs {
		return true
	}
	w.used[part]++
	return w.used[part] <= m.cfg.Budget[part]
}

// each calls yield for every world that follows from one, until it returns false. Events
// that change nothing are left out.
func (m *model) each(w world, yield func(e move, next world, broken string) bool) {
	for i := range m.numbers {
		for _, e := range m.events(w, i) {
			next := w
			if !m.spend(&next, e.do) {
				continue
			}
			spent := next
			o := m.do(w.nodes[i], e)
			next.nodes[i] = o.to
			next.messages = m.with(w.messages, o.sent)
			if next == spent {
				continue
			}
			if e.do == limits {
				next.greatest = max(w.greatest, e.value)
			}
			broken := ""
			if sum := m.owned(next); sum > int64(next.greatest) {
				broken = fmt.Sprintf("the nodes that run own %d rights, and no limit was ever more than %d", sum, next.greatest)
			}
			if !yield(move{int8(i), e}, next, broken) {
				return
			}
		}
	}
	for _, do := range []action{ends, admits} {
		next, in, broken := w, int32(0), ""
		if !m.spend(&next, do) {
			continue
		}
		if do == ends {
			next.inside = crowds{}
		}
		for i := range m.numbers {
			if s := m.states.All[w.nodes[i]]; do == admits && (s.rights == nil || s.heir[0] != 0) {
				continue
			}
			o := m.do(w.nodes[i], event{do: do})
			next.nodes[i] = o.to
			in += int32(o.in)
			next.messages = m.with(next.messages, o.sent)
		}
		if sum := next.inside.enter(in); sum > next.greatest {
			broken = fmt.Sprintf("%d are inside, and no limit was ever more than %d", sum, next.greatest)
		}
		if !yield(move{-1, event{do: do}}, next, broken) {
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

// owned returns how many places the nodes own that run.
func (m *model) owned(w world) (sum int64) {
	for i := range m.numbers {
		sum += m.states.All[w.nodes[i]].held
	}
	return sum
}

// events returns what may happen to a node, as far as the budget goes.
func (m *model) events(w world, i int) (all []event) {
	s := m.states.All[w.nodes[i]]
	switch {
	case s.gone:
		return nil
	case s.rights == nil:
		return []event{{do: starts}, {do: loses}}
	}
	if !m.cfg.Coarse {
		all = append(all, event{do: steps})
	}
	if s.writes {
		all = append(all, event{do: saves}, event{do: stopsAt})
	}
	all = append(all, event{do: stops}, event{do: loses})
	for _, x := range m.sets.All[w.messages] {
		if m.messages.All[x].to == s.number {
			all = append(all, event{do: receives, value: x})
		}
	}
	for k, number := range m.numbers {
		if k == i {
			continue
		}
		o := m.states.All[w.nodes[k]]
		if o.rights != nil {
			all = append(all, event{do: hears, with: number, value: o.says}, event{do: gives, with: number})
			if o.heir[0] == 0 && s.heir[0] == 0 { // who leaves agrees to nothing
				all = append(all, event{do: leaves, with: number})
			}
		}
		if o.gone {
			all = append(all, event{do: declares, with: number})
		}
	}
	if s.heir[0] == 0 {
		all = append(all, event{do: limits, value: int32(m.firstLimit() + 1)}, event{do: limits, value: int32(m.firstLimit() - 1)})
	}
	return all
}
