package crdt

import (
	"errors"
	"fmt"
	"slices"
)

// ErrHostile is wrapped by the errors about a delta that no honest peer sends.
// What such a delta carries is not applied at all.
var ErrHostile = errors.New("impossible delta")

// ErrAhead is wrapped by errors about what is of a time to come: the clock of whoever wrote it is ahead,
// or that of this node is behind.
var ErrAhead = fmt.Errorf("written by a clock that is ahead: %w", ErrHostile)

// What one replica takes in from others at most. The bounds are far above any
// honest mesh; they keep one member that has gone bad from filling the memory of
// all.
const (
	maxRows       = 1 << 13  // of a Rows
	maxRowCells   = 1 << 21  // of a row: a day of arrivals in a hundred rooms
	maxSites      = 1 << 12  // of a Summaries
	maxSiteRooms  = 1 << 14  // of a site
	maxWriters    = 1 << 13  // of an LWW
	maxLWWEntries = 1 << 18  // of an LWW
	maxLWWBytes   = 64 << 20 // of keys and values of an LWW
)

// What of an LWW a replica leaves to others: it writes nothing itself that needs it. What
// several replicas write at once into the last free places is so taken by all, and a value that
// is written again and has grown by some bytes is, too. Facts leave as much again to changes of what there
// is, and what is new leaves a part to both; see Weight.
const (
	keptLWWEntries = 1 << 12
	keptLWWBytes   = 1 << 20

	keptForChanges = 1 << 14
	keptForFacts   = 1 << 15
	keptFromLarge  = 8 << 20
)

// advance returns the knowledge after the changes (from, to] have been merged,
// and whether a hole keeps them from counting.
func advance(known, from, to uint64) (now uint64, gap bool) {
	switch {
	case to <= known:
		return known, false
	case from > known:
		return known, true
	}
	return to, false
}

// budget hands out the bytes of one message.
type budget struct{ left int }

// take reports whether n bytes are left, and takes them.
func (b *budget) take(n int) bool {
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

// coalesce brings the pieces of two deltas into order and joins those that
// overlap or touch. Pieces with a hole between them stay apart, so that the
// joined delta promises no more than its parts.
func coalesce[P any](pieces []P, order func(a, b P) int, touch func(a, b P) bool, absorb func(a *P, b P)) []P {
	slices.SortStableFunc(pieces, order)
	var out []P
	for _, p := range pieces {
		if n := len(out); n > 0 && touch(out[n-1], p) {
			absorb(&out[n-1], p)
			continue
		}
		out = append(out, p)
	}
	return out
}
