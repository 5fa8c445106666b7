//go:build linux

package faults

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/bench/faults/check"
	"github.com/ropeline/ropeline/bench/faults/record"
)

// spans searches histories of calls, one for the span after each mark. A history
// is searched as soon as its span is over, so that few are in memory at a time.
type spans struct {
	to      *findings
	marks   []int64 // that are still to come
	session time.Duration
	open    []*check.History
}

// newSpans takes the times of marks, in order. Without any there is one history: of
// the whole run, as far as a search goes.
func newSpans(to *findings, marks []int64, session time.Duration) *spans {
	s := &spans{to: to, marks: spread(marks, maxHistories), session: session}
	if len(marks) == 0 {
		s.open = []*check.History{check.NewHistory(0, 1<<62)}
	}
	return s
}

// maxHistories bounds how many spans are searched: each costs a second, and more
// where many calls are under way at a time.
const maxHistories = 1200

// spread returns at most n of a list, evenly from all of it.
func spread(marks []int64, n int) []int64 {
	if len(marks) <= n {
		return marks
	}
	some := make([]int64, n)
	for i := range some {
		some[i] = marks[i*len(marks)/n]
	}
	return some
}

// add takes one event; first says whether it is the first to tell of its ticket.
func (s *spans) add(e record.Located, first bool) {
	// Who is inside when a span begins has got the pass within a session before, and by
	// a clock that may have been ahead by the guard.
	for len(s.marks) > 0 && e.At >= s.marks[0]-int64(s.session+guard) {
		s.open = append(s.open, check.NewHistory(s.marks[0], s.marks[0]+int64(historySpan)))
		s.marks = s.marks[1:]
	}
	for _, h := range s.open {
		h.Add(e, first)
	}
	s.open = slices.DeleteFunc(s.open, func(h *check.History) bool {
		over := h.Over(e.At)
		if over {
			s.search(h)
		}
		return over
	})
}

// finish searches what is still open.
func (s *spans) finish() {
	for _, h := range s.open {
		s.search(h)
	}
	s.open = nil
}

func (s *spans) search(h *check.History) {
	f := s.to
	f.Histories++
	f.Calls += h.Calls()
	if v := h.Numbers(); !v.OK {
		f.Broken = append(f.Broken, v.Why)
	}
	if v := h.Places(f.Limit); !v.OK {
		f.crowded = append(f.crowded, v.Why)
	}
}
