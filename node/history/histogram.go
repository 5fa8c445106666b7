package history

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

const (
	unit     = 100 * time.Millisecond
	subBits  = 4 // cells per octave are 1<<subBits
	longest  = 7 * 24 * time.Hour
	maxLevel = subBits // one cell per octave
	cells    = 312     // cellOf(longest) + 1
)

// cellOf returns the cell of a duration at level 0. Negative ones count as 0, and what is
// longer than a week as a week.
//
//	units   0  1 … 15 │ 16 17 … 31 │ 32 34 … 62 │ 64 68 …
//	cell    0  1 … 15 │ 16 17 … 31 │ 32 33 … 47 │ 48 49 …
func cellOf(d time.Duration) int {
	v := uint64(min(max(d, 0), longest) / unit)
	if v < 1<<subBits {
		return int(v)
	}
	octave := bits.Len64(v) - 1 - subBits
	return octave<<subBits + int(v>>octave)
}

// lowOf returns the least number of units in a cell of level 0.
func lowOf(cell int) uint64 {
	if cell < 1<<subBits {
		return uint64(cell)
	}
	octave := cell>>subBits - 1
	return uint64(cell-octave<<subBits) << octave
}

// Histogram counts durations. The zero value is empty. It is a value: nobody changes the
// cells of one that was handed out.
type Histogram struct {
	level uint8  // cells of level 0 are taken together in groups of 1<<level
	cells []cell // ascending, none with a count of 0
}

type cell struct {
	at    int
	count uint64
}

// Of returns a histogram of durations.
func Of(durations ...time.Duration) Histogram {
	var l live
	for _, d := range durations {
		l.add(d)
	}
	return l.histogram()
}

// Count returns how many durations were counted.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.cells {
		n += c.count
	}
	return n
}

// Percentile returns the least duration that a part p of all, from 0 to 1, does not exceed
// (nearest rank), as exactly as Error says. It reports whether there is any.
func (h Histogram) Percentile(p float64) (time.Duration, bool) {
	n := h.Count()
	if n == 0 {
		return 0, false
	}
	rank := uint64(min(max(math.Ceil(p*float64(n)), 1), float64(n)))
	for _, c := range h.cells {
		if c.count >= rank {
			low, high := lowOf(c.at<<h.level), lowOf((c.at+1)<<h.level)
			return time.Duration(low+high) * unit / 2, true
		}
		rank -= c.count
	}
	panic("history: a histogram has fewer durations than it counted")
}

// Error returns how far a percentile may be from the true one: by part of the true one,
// or by least if that is more. Durations above a week count as a week.
func (h Histogram) Error() (part float64, least time.Duration) {
	return math.Ldexp(1, int(h.level)-subBits-1), unit / 2 << h.level
}

// coarsened returns h at a level that is not lower than its own.
func (h Histogram) coarsened(level uint8) Histogram {
	if level == h.level || len(h.cells) == 0 {
		return h
	}
	by := level - h.level
	out := make([]cell, 0, len(h.cells))
	for _, c := range h.cells {
		at := c.at >> by
		if last := len(out) - 1; last >= 0 && out[last].at == at {
			out[last].count += c.count
			continue
		}
		out = append(out, cell{at, c.count})
	}
	return Histogram{level, out}
}

// merge adds two up, at the level of the coarser one. Coarsening and adding commute, so
// the order in which many are merged does not show.
func (h Histogram) merge(o Histogram) Histogram {
	switch {
	case len(h.cells) == 0:
		return o
	case len(o.cells) == 0:
		return h
	}
	level := max(h.level, o.level)
	a, b := h.coarsened(level).cells, o.coarsened(level).cells
	out := make([]cell, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].at < b[0].at:
			out, a = append(out, a[0]), a[1:]
		case b[0].at < a[0].at:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, cell{a[0].at, a[0].count + b[0].count}), a[1:], b[1:]
		}
	}
	return Histogram{level, slices.Clip(append(append(out, a...), b...))}
}

// live is a histogram that is being filled. The zero value is empty.
type live struct {
	count *[cells]uint32 // nil: nothing was added; most rooms have nothing to add in most minutes
}

func (l *live) add(d time.Duration) {
	if l.count == nil {
		l.count = new([cells]uint32)
	}
	if c := &l.count[cellOf(d)]; *c < math.MaxUint32 {
		*c++
	}
}

// histogram returns what l holds at level 0.
func (l *live) histogram() Histogram {
	if l.count == nil {
		return Histogram{}
	}
	var h Histogram
	for i, n := range l.count {
		if n > 0 {
			h.cells = append(h.cells, cell{i, uint64(n)})
		}
	}
	return h
}
