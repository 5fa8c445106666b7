package node

import (
	"log/slog"
	"slices"
	"time"

	"github.com/ropeline/ropeline/transport"
)

const (
	// maxOffset is how far the clocks of nodes may be apart: how long loans and
	// passes hold is judged by the wall clock of whoever looks at them, and guards
	// of this size keep the sides apart.
	maxOffset = 400 * time.Millisecond
	// fineOffset is below maxOffset by more than a measurement errs, so that a clock
	// at the edge does not come and go.
	fineOffset    = 300 * time.Millisecond
	clockInterval = time.Second
)

// clock is the time that a node lives by: the wall clock at the start, and from
// there the monotonic clock. A wall clock that is set, or jumps, while the node runs
// changes nothing.
type clock struct {
	wall  time.Time // at the start, without a monotonic reading
	since time.Time // the same moment, for its monotonic reading
}

func newClock(wall time.Time) clock { return clock{wall: wall.Round(0), since: time.Now()} }

// now returns the time. It has no monotonic reading and needs none: what it returns
// grows as the monotonic clock does.
func (c clock) now() time.Time { return c.wall.Add(time.Since(c.since)) }

// clockWatch compares the clock with those of the peers. The zero value takes it to
// be right.
type clockWatch struct {
	looked time.Time
	off    bool
}

// look compares once a second, and reports whether the node's clock is right and
// whether that is news.
func (w *clockWatch) look(mesh Mesh, members []transport.Peer, now time.Time, log *slog.Logger) (right, news bool) {
	if now.Sub(w.looked) < clockInterval {
		return !w.off, false
	}
	w.looked = now
	var offsets []time.Duration
	for _, p := range members {
		if offset, ok := mesh.Offset(p.ID); ok && p.State == transport.Alive {
			offsets = append(offsets, offset)
		}
	}
	ahead := -middle(offsets)
	switch {
	case !w.off && ahead.Abs() > maxOffset:
		log.Error("this node's clock differs from those of its peers: it gives no tickets until they agree; visitors who are in go on. "+
			"Set the clock of the machine that is wrong (chronyc tracking, timedatectl) and restart ropeline there: a node takes the time at its start",
			"ahead", ahead, "limit", maxOffset, "peers", len(offsets))
		w.off = true
		return false, true
	case w.off && ahead.Abs() <= fineOffset:
		log.Info("this node's clock agrees with those of its peers again", "ahead", ahead, "peers", len(offsets))
		w.off = false
		return true, true
	}
	return !w.off, false
}

// middle returns the median. Of two in the middle it takes the one nearer to zero:
// this node's own clock then decides, so that the clocks of a majority stand. With a
// single peer that differs, nobody knows which of the two is right, and both stop.
func middle(offsets []time.Duration) time.Duration {
	if len(offsets) == 0 {
		return 0
	}
	slices.Sort(offsets)
	low, high := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]
	if low.Abs() <= high.Abs() {
		return low
	}
	return high
}
