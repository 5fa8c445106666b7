package input

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Bounds on what is accepted. They are far above what a simulation can be
// waited for, and keep a slip of the finger from filling the memory.
const (
	MaxVisitors = 100_000_000
	MaxTime     = 30 * 24 * time.Hour
)

// Traffic says how many visitors come in which span of time. The zero value is
// nobody.
type Traffic struct {
	spans []span // oldest first; they do not overlap
}

// span is a piece of time at whose every moment visitors are equally likely.
type span struct {
	from, length time.Duration
	visitors     int
}

// Len returns how many visitors come in all.
func (t *Traffic) Len() int {
	sum := 0
	for _, s := range t.spans {
		sum += s.visitors
	}
	return sum
}

// Span returns the end of the last span: nobody comes at or after it.
func (t *Traffic) Span() time.Duration {
	if len(t.spans) == 0 {
		return 0
	}
	last := t.spans[len(t.spans)-1]
	return last.from + last.length
}

// Scaled returns x times as many visitors at the same times. What a span lacks
// to a whole visitor is carried over to the next, so the sum is right to one
// visitor even where most spans hold less than one. It fails if nobody is left,
// or more than MaxVisitors.
func (t *Traffic) Scaled(x float64) (*Traffic, error) {
	total := float64(t.Len())
	switch n := math.Round(total * x); {
	case !(n >= 1):
		return nil, fmt.Errorf("a scale of %g leaves nobody of %.0f: it must be at least %.2g", x, total, math.Nextafter(0.5/total, 1))
	case n > MaxVisitors:
		return nil, fmt.Errorf("a scale of %g makes %.0f visitors of %.0f: it may be at most %.2g, for %d visitors", x, n, total, MaxVisitors/total, MaxVisitors)
	}
	scaled := *t
	scaled.spans = make([]span, 0, len(t.spans))
	sum, before := 0, 0
	for _, s := range t.spans {
		sum += s.visitors
		upTo := int(math.Round(float64(sum) * x))
		s.visitors, before = upTo-before, upTo
		scaled.spans = append(scaled.spans, s)
	}
	return &scaled, nil
}

// From returns who comes from at on, as if time began there. It fails if nobody
// does.
func (t *Traffic) From(at time.Duration) (*Traffic, error) {
	later := *t
	later.spans = nil
	for _, s := range t.spans {
		if past := at - s.from; past > 0 {
			past = min(past, s.length)
			s.visitors -= int(float64(s.visitors) * (float64(past) / float64(s.length)))
			s.from, s.length = at, s.length-past
		}
		if s.length > 0 {
			s.from -= at
			later.spans = append(later.spans, s)
		}
	}
	if later.Len() == 0 {
		return nil, fmt.Errorf("nobody comes after %v; the last ones do before %v", at, t.Span())
	}
	return &later, nil
}

// maxDrawn bounds the moments that are held at a time. A span with more visitors
// is cut into equal parts; with so many in it nobody can tell the difference.
const maxDrawn = 1 << 16

// Times yields the moment of each visitor after the start, in order. All chance
// comes from rng.
func (t *Traffic) Times(rng *rand.Rand) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		var moments []time.Duration
		for _, s := range t.spans {
			for parts := (s.visitors + maxDrawn - 1) / maxDrawn; parts > 0; parts-- {
				part := span{from: s.from, length: s.length / time.Duration(parts), visitors: s.visitors / parts}
				s.from, s.length, s.visitors = s.from+part.length, s.length-part.length, s.visitors-part.visitors
				moments = part.draw(rng, moments[:0])
				for _, at := range moments {
					if !yield(at) {
						return
					}
				}
			}
		}
	}
}

// draw appends the moments of s to dst, in order.
func (s span) draw(rng *rand.Rand, dst []time.Duration) []time.Duration {
	for range s.visitors {
		dst = append(dst, s.from+time.Duration(rng.Int64N(int64(max(s.length, 1)))))
	}
	slices.Sort(dst)
	return dst
}
