package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Series is a part of a room's past: minutes in the order of time, each once. Minutes that
// nobody recorded are not in it.
type Series []Minute

// Read returns what this node, and nodes that have left to it, recorded of a room from the minute of from up to,
// and without, the minute of to. The open minute is not in it. A room that is not known gives an empty
// series.
func (r *Recorder) Read(room crdt.RoomID, from, to time.Time) (Series, error) {
	first, end := minuteOf(from), minuteOf(to)
	if first >= end || end-first > spanMinutes {
		return nil, fmt.Errorf("history: range from %s to %s, allowed are 1 minute to %s",
			from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339), Span)
	}
	l := r.rooms[room]
	if l == nil {
		return nil, nil
	}
	var s Series
	for _, c := range l.chunks {
		for rest := c.data; len(rest) > 0; {
			var record []byte
			var at int64
			var err error
			if record, rest, at, err = cutRecord(rest); err != nil {
				panic("history: a record of our own: " + err.Error())
			}
			if at < first || at >= end {
				continue
			}
			m, err := readRecord(record)
			if err != nil {
				panic("history: a record of our own: " + err.Error())
			}
			s = append(s, m)
		}
	}
	s = s.sorted(Minute.then)
	if l.inherited.records == 0 {
		return s, nil
	}
	others := l.others().since(first)
	for len(others) > 0 && others[len(others)-1].At >= end {
		others = others[:len(others)-1]
	}
	return Merge(s, others), nil
}

// Merge adds up what different nodes recorded of the same room; see the package comment.
// It is commutative and associative. None of the series is changed.
func Merge(of ...Series) Series { return slices.Concat(of...).sorted(Minute.merge) }

// sorted puts s into the order of time, in place, and joins minutes that come twice.
func (s Series) sorted(join func(a, b Minute) Minute) Series {
	slices.SortStableFunc(s, func(a, b Minute) int { return cmp.Compare(a.At, b.At) })
	out := s[:0]
	for _, m := range s {
		if last := len(out) - 1; last >= 0 && out[last].At == m.At {
			out[last] = join(out[last], m)
			continue
		}
		out = append(out, m)
	}
	return out
}

// Point is what happened in one step of time.
type Point struct {
	At      time.Time // when it began, UTC
	Minutes int       // how many of it were recorded, by whichever node
	Nodes   int64     // how many nodes recorded them, in the minute with the fewest

	// Averages and largest numbers over the step. Seen is false if nobody looked; then
	// these and the limits are 0.
	Seen                  bool
	ActiveAvg, WaitingAvg float64
	ActiveMax, WaitingMax int64

	// The limits at the end of the step.
	TotalActiveUsers, NewUsersPerMinute int64

	Counts Counts
	Waits  Histogram
	Stays  Histogram
}

// Steps divides s into steps of equal length, a number of whole minutes, which begin at
// multiples of it since 1970. Steps in which nothing was recorded are left out. An average
// is over minutes; each counts the same, however often a node looked.
func (s Series) Steps(step time.Duration) ([]Point, error) {
	if step < time.Minute || step > Span || step%time.Minute != 0 {
		return nil, fmt.Errorf("history: step is %s, allowed are whole minutes from 1m to %s", step, Span)
	}
	width := int64(step / time.Minute)
	var points []Point
	for rest := s; len(rest) > 0; {
		begin := rest[0].At - rest[0].At%width
		n := 1
		for n < len(rest) && rest[n].At < begin+width {
			n++
		}
		points, rest = append(points, pointOf(begin, rest[:n])), rest[n:]
	}
	return points, nil
}

func pointOf(begin int64, s Series) Point {
	p := Point{At: time.Unix(begin*60, 0).UTC(), Minutes: len(s), Nodes: math.MaxInt64}
	seen := 0.0
	for _, m := range s {
		p.Nodes = min(p.Nodes, m.Nodes)
		p.Counts = p.Counts.plus(m.Counts)
		p.Waits, p.Stays = p.Waits.merge(m.Waits), p.Stays.merge(m.Stays)
		g := m.Gauges
		if g.Samples == 0 {
			continue
		}
		seen++
		p.Seen = true
		p.ActiveAvg += float64(g.ActiveSum) / float64(g.Samples)
		p.WaitingAvg += float64(g.WaitingSum) / float64(g.Samples)
		p.ActiveMax, p.WaitingMax = max(p.ActiveMax, g.ActiveMax), max(p.WaitingMax, g.WaitingMax)
		p.TotalActiveUsers, p.NewUsersPerMinute = g.TotalActiveUsers, g.NewUsersPerMinute
	}
	if p.Seen {
		p.ActiveAvg, p.WaitingAvg = p.ActiveAvg/seen, p.WaitingAvg/seen
	}
	return p
}
