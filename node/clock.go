package node

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ropeline/ropeline/transport"
)

const (
	// MaxClockOffset is how far the clocks of nodes may be apart: how long loans and
	// passes hold is judged by the wall clock of whoever looks at them, and guards
	// of this size keep the sides apart.
	MaxClockOffset = 400 * time.Millisecond
	// fineOffset is below MaxClockOffset by more than a measurement errs, so that a clock
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
	differ map[transport.PeerID]bool // peers whose clocks were told of
}

// compared is how a clock stands to those of the peers.
type compared struct {
	right bool
	with  int           // so many peers
	ahead time.Duration // of the middle of them

	outvoted bool // it is not right, and more than half of all nodes agree on the time
}

// look compares once a second if there is a peer to compare with, and reports whether it did. served says that the node was let in
// visitors before: then nodes that only start, and are less than half of all, do not make it doubt.
func (w *clockWatch) look(mesh Mesh, members []transport.Peer, served bool, now time.Time, log *slog.Logger) (is compared, looked bool) {
	if now.Sub(w.looked) < clockInterval {
		return is, false
	}
	w.looked = now
	var all, ready []time.Duration
	for _, p := range members {
		offset, ok := mesh.Offset(p.ID)
		if !ok || p.State != transport.Alive {
			continue
		}
		all = append(all, offset)
		if p.Ready {
			ready = append(ready, offset)
		}
		w.tell(p, offset, log)
	}
	if len(all) == 0 {
		return is, false // as it was: there is nothing new to compare with
	}
	ahead := -middle(all)
	if served {
		ahead = -middle(ready)
		if of := -middle(slices.Concat(all, []time.Duration{0})); ahead == 0 || of.Abs() > ahead.Abs() {
			ahead = of
		}
	}
	limit := MaxClockOffset
	if w.off {
		limit = fineOffset
	}
	is = compared{right: ahead.Abs() <= limit, with: len(all), ahead: ahead}
	is.outvoted = !is.right && agree(all, -ahead)*2 > len(all)+1
	switch {
	case !w.off && !is.right:
		log.Error("this node's clock differs from those of its peers: until they agree it gives no tickets and takes no changes, and it is not ready if it has just started, or most of them agree; visitors who are in go on. "+
			"Set the clock of the machine that is wrong (chronyc tracking, timedatectl) and restart ropeline there: a node takes the time at its start",
			"ahead", ahead, "limit", MaxClockOffset, "peers", is.with)
	case w.off && is.right:
		log.Info("this node's clock agrees with those of its peers again", "ahead", ahead, "peers", is.with)
	}
	w.off = !is.right
	return is, true
}

// tell says, once, of a peer that its clock differs from this node's, and once that it does not any more.
func (w *clockWatch) tell(p transport.Peer, offset time.Duration, log *slog.Logger) {
	switch told := w.differ[p.ID]; {
	case !told && offset.Abs() > MaxClockOffset:
		log.Warn("a peer's clock differs from this node's: one of the two gives no tickets, and what it writes is not believed here; see clock in the status of both",
			"peer", p.ID.String(), "name", p.Name, "peer_site", p.Site, "ahead", offset, "limit", MaxClockOffset)
		if w.differ == nil {
			w.differ = map[transport.PeerID]bool{}
		}
		w.differ[p.ID] = true
	case told && offset.Abs() <= fineOffset:
		log.Info("a peer's clock agrees with this node's again", "peer", p.ID.String(), "name", p.Name, "ahead", offset)
		delete(w.differ, p.ID)
	}
}

// agree returns how many peers have a time that differs little from this node's and so much.
func agree(offsets []time.Duration, middle time.Duration) (n int) {
	for _, o := range offsets {
		if (o - middle).Abs() <= MaxClockOffset {
			n++
		}
	}
	return n
}

// clockOff is why a node is not ready whose clock is off.
type clockOff struct{ compared }

func (e clockOff) Error() string {
	if e.outvoted {
		return fmt.Sprintf("the clock of this node is %v of those of its %d peers, most of which agree: set it, then restart ropeline here", aheadOrBehind(e.ahead), e.with)
	}
	return fmt.Sprintf("the clock of this node is %v of those of its %d peers: set the clock of the machine that is wrong, then restart ropeline there", aheadOrBehind(e.ahead), e.with)
}

func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Millisecond).String() + " behind"
	}
	return d.Round(time.Millisecond).String() + " ahead"
}

// middle returns the median. Of two in the middle it takes the one nearer to zero:
// this node's own clock then decides, so that the clocks of a majority stand. With a
// single peer that differs, nobody knows which of the two is right, and both stop.
func middle(offsets []time.Duration) time.Duration {
	if len(offsets) == 0 {
		return 0
	}
	offsets = slices.Sorted(slices.Values(offsets))
	low, high := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]
	if low.Abs() <= high.Abs() {
		return low
	}
	return high
}
