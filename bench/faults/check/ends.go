package check

import (
	"cmp"
	"iter"
	"slices"
)

// holders is who holds something, and until when.
type holders[K comparable] struct {
	until map[K]int64
	ends  []ending[K] // in order
}

// ending is a moment at which somebody may hold nothing any more: the last one of each does.
type ending[K comparable] struct {
	at int64
	of K
}

func (h *holders[K]) set(k K, until int64) {
	if h.until == nil {
		h.until = map[K]int64{}
	}
	h.until[k] = until
	i, _ := slices.BinarySearchFunc(h.ends, until, func(e ending[K], at int64) int { return cmp.Compare(e.at, at) })
	h.ends = slices.Insert(h.ends, i, ending[K]{until, k})
}

// over yields who holds nothing any more by now, in the order in which that came, and since when. Whoever is yielded
// is one of the holders until the next one is asked for.
func (h *holders[K]) over(now int64) iter.Seq2[K, int64] {
	return func(yield func(K, int64) bool) {
		for len(h.ends) > 0 && h.ends[0].at <= now {
			next := h.ends[0]
			h.ends = h.ends[1:]
			if until, is := h.until[next.of]; is && until <= next.at {
				if !yield(next.of, next.at) {
					return
				}
				delete(h.until, next.of)
			}
		}
	}
}
