// Package check finds out from the records of a run whether what was granted was
// allowed: no ticket number twice, never more visitors than the limit, never
// more new ones in any 60 seconds, and numbers in an order of calls that one counter
// could have had.
//
// Checkers take events in the order of true time, as record.Merge yields them,
// and hold no more memory than they say. Their zero value is ready. They belong
// to one goroutine.
package check

import (
	"fmt"

	"github.com/ropeline/ropeline/bench/faults/record"
)

// Tickets checks that no ticket number was given to two visitors. Block or not,
// numbers of one start of an anchor are one sequence. Some four bytes per ticket
// are kept for as long as the run lasts.
type Tickets struct {
	Given      int      // tickets, each counted once
	Repeated   int      // answers that told a visitor the ticket that it had
	Duplicates []string // what was given twice, the first of them
	Doubles    int      // how many there were

	pages map[pageKey]*page
}

// start is one start of one anchor in one room.
type start struct {
	room   uint32
	anchor uint64
	boot   uint32
}

// page remembers who has each of some numbers of one start that follow each other. Numbers
// are dense, so that pages are full.
type page [pageSize]uint32

type pageKey struct {
	start
	number uint64
}

const (
	pageSize     = 1 << 10
	maxDescribed = 20 // of what is wrong; more of the same help nobody
)

// Add takes one event, and reports whether it is the first to tell of its ticket.
func (t *Tickets) Add(at record.Located) (first bool) {
	e := at.Event
	if e.Kind != record.Entered && e.Kind != record.Reanchored && e.Kind != record.Borrowed {
		return false
	}
	k := pageKey{start{e.Room, e.Anchor, e.Boot}, e.Seq / pageSize}
	p := t.pages[k]
	if p == nil {
		if t.pages == nil {
			t.pages = map[pageKey]*page{}
		}
		p = new(page)
		t.pages[k] = p
	}
	// Ids are random, so that a part of them tells visitors apart but for one
	// pair in two thousand million.
	who := uint32(e.Visitor>>32) | 1
	switch had := &p[e.Seq%pageSize]; *had {
	case 0:
		*had = who
		t.Given++
		return true
	case who:
		t.Repeated++
	default:
		t.Doubles++
		if len(t.Duplicates) < maxDescribed {
			t.Duplicates = append(t.Duplicates, fmt.Sprintf("ticket %016x/%d/%d/%d of room %08x was given twice, the second time by %s to visitor %016x",
				e.Anchor, e.Boot, e.Block, e.Seq, e.Room, at.Node, e.Visitor))
		}
	}
	return false
}

// Moves checks that nobody received rights that nobody had given: of any two
// nodes, what the one says it received from the other is at no time more than
// what that one said before it gave. It keeps one entry per pair of nodes.
type Moves struct {
	Count int      // transfers that moved something
	Wrong []string // what was received before it was given, the first of them

	pairs map[pair]moved
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
	side := &p.received
	if e.Kind == record.Gave {
		side = &p.gave
		if so.Places > side.Places || so.Rate > side.Rate {
			m.Count++
		}
	}
	side.Places, side.Rate = max(side.Places, so.Places), max(side.Rate, so.Rate)
	if m.pairs == nil {
		m.pairs = map[pair]moved{}
	}
	m.pairs[k] = p
	if over := p.received; (over.Places > p.gave.Places || over.Rate > p.gave.Rate) && len(m.Wrong) < maxDescribed {
		m.Wrong = append(m.Wrong, fmt.Sprintf("%s says that %016x received %d places and %d rate rights from %016x, which gave %d and %d",
			at.Node, so.To, over.Places, over.Rate, so.From, p.gave.Places, p.gave.Rate))
	}
}
