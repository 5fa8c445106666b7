package small

import (
	"fmt"
	"slices"
)

// settledEvery is of how many worlds one is brought to rest, to see whether all rights are
// there: it costs as much as thousands of events.
const settledEvery = 499

// rounds is in how many turns everything comes to rest, each of which takes wait: within
// them all locks are over.
const rounds = 40

// settle has all that is due be done until nothing is, and all messages arrive.
func (m *model) settle(now []*state, mail []int32) {
	mail = slices.Clone(mail)
	m.settling = true
	defer func() { m.settling = false }()
	do := func(i int, e event) {
		f := m.apply(now[i], e)
		now[i] = f.to
		for _, x := range f.sent {
			if id := m.message(x); !slices.Contains(mail, id) {
				mail = append(mail, id)
			}
		}
	}
	for range rounds {
		for i := range now {
			if now[i].gone {
				continue
			}
			do(i, event{do: steps})
			for _, x := range mail {
				if m.messages.All[x].to == now[i].number {
					do(i, event{do: receives, value: x})
				}
			}
			for now[i].writes {
				do(i, event{do: saves})
			}
		}
		for i := range now {
			for _, o := range now {
				if !now[i].gone && !o.gone {
					do(i, event{do: hears, value: m.facts(o.facts)})
				}
			}
			do(i, event{do: waits})
		}
	}
}

// unsettled says what does not add up once all that can has come back from a world, and
// whoever is lost is known to be; "" if all does.
func (m *model) unsettled(w world) string {
	now := make([]*state, len(m.numbers))
	for i := range now {
		now[i] = m.states.All[w.nodes[i]]
		if now[i].rights == nil && !now[i].gone {
			now[i] = m.apply(now[i], event{do: starts}).to
		}
	}
	mail := m.sets.All[w.messages]
	m.settle(now, mail)
	buried := false
	for i := range now {
		for _, o := range now {
			if o.gone && !now[i].gone {
				now[i], buried = m.apply(now[i], event{do: declares, with: o.number}).to, true
			}
		}
	}
	if buried {
		m.settle(now, mail)
	}
	return m.adds(now)
}

// adds compares what nodes own with the limit as each knows it. It is nobody's where no
// node is left that stays.
func (m *model) adds(now []*state) string {
	sum, limit, known, stays := int64(0), int64(0), false, false
	for _, s := range now {
		if s.gone {
			continue
		}
		sum += s.rights.Held().Places
		stays = stays || s.heir[0] == 0
		is := m.bareOf(s, nil).Limits().Places
		if known && is != limit {
			return fmt.Sprintf("when all is well again, one node knows a limit of %d, and another of %d", limit, is)
		}
		limit, known = is, true
	}
	if stays && sum != limit {
		return fmt.Sprintf("when all is well again, %d rights are owned, and the limit is %d", sum, limit)
	}
	return ""
}
