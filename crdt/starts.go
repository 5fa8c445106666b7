package crdt

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A node takes the time at each start, and keeps to that. So each start has a clock of its own, and the stamps of two starts may
// differ by more than the time between the writes. What is of a time to come is put back start by start.

// maxStarts bounds how many starts are kept. If a node starts more often without hearing from others what time it is, those
// between which its clock went on most evenly are taken for one.
const maxStarts = 16

// lwwStart is a start of the node whose map this is.
type lwwStart struct {
	boot  uint64
	upTo  uint64 // packed: the latest stamp that was known before it wrote anything; its own are later
	ended int64  // Unix ms by the clock of the start before: when that ended, as far as is known
	began int64  // Unix ms by its own clock
}

// runsOn reports whether its stamps may follow those of the start before and not its clock, which was behind them.
func (s *lwwStart) runsOn() bool { return s.began < int64(s.upTo>>16) }

// NoteStart notes a start of a node, before that writes anything. upTo is the latest stamp that its Clock knows. began is what the
// clock of this start shows, and ended what that of the LastStart showed last; zero if that is not known.
func (m *LWW) NoteStart(self Incarnation, upTo Stamp, ended, began time.Time) {
	s := lwwStart{boot: self.Boot, upTo: upTo.packed(), ended: max(0, ended.UnixMilli()), began: max(0, began.UnixMilli())}
	if n := len(m.starts); n > 0 && m.starts[n-1].runsOn() {
		s.ended = max(s.ended, m.starts[n-1].began)
	} else {
		s.ended = max(s.ended, int64(m.known[self.Node]>>16))
	}
	if m.starts = append(m.starts, s); len(m.starts) > maxStarts {
		least := 1 // the first one has what was known before all of them
		for i := least; i < maxStarts; i++ {
			if m.starts[i].jump() < m.starts[least].jump() {
				least = i
			}
		}
		m.starts = slices.Delete(m.starts, least, least+1)
	}
	m.started = m.changes + 1
}

// jump is by how much the clock went on, or back, between a start and the one before.
func (s *lwwStart) jump() int64 { return max(s.began-s.ended, s.ended-s.began) }

// LastStart returns the boot number of the last start that was noted; 0: none was.
func (m *LWW) LastStart() uint64 {
	if len(m.starts) == 0 {
		return 0
	}
	return m.starts[len(m.starts)-1].boot
}

// TrustStarts says that what was written so far, up to a stamp, is of no time to come now that the clock of the last start, which was
// noted, shows clock. Starts before that one do not matter any more.
func (m *LWW) TrustStarts(upTo Stamp, clock, now time.Time) {
	m.starts = []lwwStart{{boot: m.LastStart(), upTo: upTo.packed(), ended: max(0, now.UnixMilli()), began: max(0, clock.UnixMilli())}}
	m.changes++
	m.started = m.changes
}

// lwwSpan is what a node wrote at one start.
type lwwSpan struct {
	after uint64 // packed: what has later stamps, and not those of the next span
	back  uint64 // packed: by how much it is put back
	end   uint64 // packed: when it ended at the latest
}

// spans returns what was written at each start, the last one first, while the clock of that shows another time than now.
// None is put back by more than it takes to end before the next one begins: for how long the node was down nobody knows.
func (m *LWW) spans(clock, now time.Time) []lwwSpan {
	back, end := max(0, clock.Sub(now).Milliseconds()), now.UnixMilli()
	var all []lwwSpan
	for _, s := range slices.Backward(m.starts) {
		all = append(all, lwwSpan{s.upTo, uint64(back) << 16, uint64(end) << 16})
		end = min(end, max(0, s.began-back))
		back = max(0, s.ended-end)
	}
	return append(all, lwwSpan{0, uint64(back) << 16, uint64(end) << 16})
}

// backTo returns when what has a packed stamp was written.
func backTo(at uint64, spans []lwwSpan) uint64 {
	i := slices.IndexFunc(spans, func(s lwwSpan) bool { return at > s.after })
	s := spans[max(0, i)]
	return min(at-min(at, s.back), s.end)
}

// knewBy returns the latest packed stamp, but none after latest, that was known before any of what is put back was written.
func (m *LWW) knewBy(latest uint64) (n uint64) {
	for _, s := range m.starts {
		if s.upTo <= latest {
			n = max(n, s.upTo)
		}
	}
	return n
}

func (m *LWW) partStarts() Part {
	w := newWriter(nil)
	w.array(len(m.starts))
	for _, s := range m.starts {
		w.uint(s.boot)
		w.uint(s.upTo)
		w.uint(uint64(s.ended))
		w.uint(uint64(s.began))
	}
	return Part{partStarts, w.must()}
}

// setStarts is SetPart of starts.
func (m *LWW) setStarts(p Part, r *reader) error {
	var all []lwwStart
	for range r.array(4) {
		s := lwwStart{boot: r.uint(math.MaxUint64), upTo: r.uint(math.MaxInt64)}
		s.ended, s.began = int64(r.uint(math.MaxInt64>>16)), int64(r.uint(math.MaxInt64>>16))
		all = append(all, s)
	}
	if err := r.end(); err != nil {
		return fmt.Errorf("part %q: %w", p.Name, err)
	}
	m.starts, m.started = all, m.changes+1
	return nil
}
