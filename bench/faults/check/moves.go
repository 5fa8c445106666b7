package check

import (
	"fmt"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Moves checks that nobody received rights that nobody had given: of any two
// nodes, what the one says it received from the other is at no time more than
// what that one said before it gave. It keeps one entry per pair of nodes.
type Moves struct {
	Count int      // transfers that moved something
	Wrong []string // what was received before it was given, the first of them

	pairs map[pair]*moved
}

type pair struct {
	room     uint32
	from, to uint64
}

type moved struct{ gave, received record.Move }

// Add takes one event.
func (m *Moves) Add(at record.Located) {
	e := at.Event
	if e.Kind != record.Gave && e.Kind != record.Received {
		return
	}
	so := e.Moved()
	k := pair{e.Room, so.From, so.To}
	p := m.pairs[k]
	if p == nil {
		if m.pairs == nil {
			m.pairs = map[pair]*moved{}
		}
		p = new(moved)
		m.pairs[k] = p
	}
	side := &p.received
	if e.Kind == record.Gave {
		side = &p.gave
		if so.Places > side.Places || so.Rate > side.Rate {
			m.Count++
		}
	}
	side.Places, side.Rate = max(side.Places, so.Places), max(side.Rate, so.Rate)
	if over := p.received; (over.Places > p.gave.Places || over.Rate > p.gave.Rate) && len(m.Wrong) < maxDescribed {
		m.Wrong = append(m.Wrong, fmt.Sprintf("%s says that %016x received %d places and %d rate rights from %016x, which gave %d and %d",
			at.Node, so.To, over.Places, over.Rate, so.From, p.gave.Places, p.gave.Rate))
	}
}
