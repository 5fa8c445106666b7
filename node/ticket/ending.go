package ticket

import (
	"slices"
	"time"
)

// MaxEndings bounds the ends that are on their way at once. Beyond it, ends are
// dropped: such a session stays counted until its lease runs out.
const MaxEndings = 1 << 16

// Endings carries the news that the origin has ended sessions to their anchors,
// each until the anchor has acknowledged it or nobody can use the session any
// more. The zero value is ready; a nil one has none, and takes none. It is not safe for
// concurrent use.
type Endings struct {
	entries map[Ticket]*ending
	wake    timers[Ticket]
	dropped uint64
}

// ending is one end on its way. Times are Unix ms.
type ending struct {
	next  int64 // next send
	until int64 // of no use from then on
	tries int
}

// Len returns how many ends are on their way.
func (e *Endings) Len() int {
	if e == nil {
		return 0
	}
	return len(e.entries)
}

// Dropped returns how many ends were not taken because of MaxEndings.
func (e *Endings) Dropped() uint64 {
	if e == nil {
		return 0
	}
	return e.dropped
}

// Add takes the end of a session, to be told to its anchor until until: the
// moment at which the lease ends by itself. Adding it again changes nothing. It
// reports whether there was room.
func (e *Endings) Add(t Ticket, until, now time.Time) bool {
	if e.entries[t] != nil {
		return true
	}
	if len(e.entries) >= MaxEndings {
		e.dropped++
		return false
	}
	if e.entries == nil {
		e.entries = make(map[Ticket]*ending)
	}
	ms := now.UnixMilli()
	e.entries[t] = &ending{next: ms, until: until.UnixMilli()}
	e.wake.push(ms, t)
	return true
}

// Due returns what shall be sent now, ordered by anchor and ticket. An end that
// stays unacknowledged is sent ever more seldom.
func (e *Endings) Due(now time.Time) []Ends {
	ms := now.UnixMilli()
	var due []Ticket
	for {
		w, ok := e.wake.pop(ms)
		if !ok {
			break
		}
		switch x := e.entries[w.key]; {
		case x == nil || x.next != w.at: // acknowledged, or added again since
		case ms > x.until+guardMS:
			delete(e.entries, w.key)
		default:
			wait := min(resendFirst<<min(x.tries, 8), resendLast)
			x.tries++
			x.next = ms + wait.Milliseconds()
			e.wake.push(x.next, w.key)
			due = append(due, w.key)
		}
	}
	slices.SortFunc(due, compare)
	return byAnchor(due)
}

func byAnchor(due []Ticket) []Ends {
	var out []Ends
	for i, t := range due {
		last := len(out) - 1
		if i == 0 || out[last].Anchor != t.Anchor || len(out[last].Items) == MaxBatch {
			out = append(out, Ends{Anchor: t.Anchor})
			last++
		}
		out[last].Items = append(out[last].Items, t)
	}
	return out
}

// Acked takes the anchor's word that a session has ended.
func (e *Endings) Acked(t Ticket) {
	if e != nil {
		delete(e.entries, t)
	}
}
