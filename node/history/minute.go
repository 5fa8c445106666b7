package history

import (
	"cmp"
	"time"
)

// Seen is what a node sees of a whole room at one moment, over all nodes. Negative numbers
// count as 0.
type Seen struct {
	Active  int64 // visitors inside
	Waiting int64 // visitors in line

	// The limits that hold, an event's included.
	TotalActiveUsers  int64
	NewUsersPerMinute int64
}

// Counts is what a node itself did since it last said so.
type Counts struct {
	New      uint64 // visitors who came without a place, whether they were let in or queued
	Admitted uint64 // visitors who were let in
	Ended    uint64 // sessions that ended at this node, as their anchor
	Revoked  uint64 // of those, ended by the site
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.New + o.New, c.Admitted + o.Admitted, c.Ended + o.Ended, c.Revoked + o.Revoked}
}

// Gauges is what one node saw of a whole room in a minute.
type Gauges struct {
	Samples                int64 // how often it looked; 0: not at all, and the rest is 0
	ActiveSum, ActiveMax   int64 // the sum is over all samples
	WaitingSum, WaitingMax int64
	TotalActiveUsers       int64 // when it last looked
	NewUsersPerMinute      int64 // the same
}

func (g *Gauges) see(s Seen) {
	active, waiting := clamp(s.Active), clamp(s.Waiting)
	if g.Samples >= maxSamples {
		return
	}
	g.Samples++
	g.ActiveSum, g.ActiveMax = g.ActiveSum+active, max(g.ActiveMax, active)
	g.WaitingSum, g.WaitingMax = g.WaitingSum+waiting, max(g.WaitingMax, waiting)
	g.TotalActiveUsers, g.NewUsersPerMinute = clamp(s.TotalActiveUsers), clamp(s.NewUsersPerMinute)
}

func clamp(n int64) int64 { return min(max(n, 0), maxGauge) }

// then joins two parts of a minute that the same node saw, o after g.
func (g Gauges) then(o Gauges) Gauges {
	if o.Samples == 0 || g.Samples+o.Samples > maxSamples {
		return g
	}
	o.Samples += g.Samples
	o.ActiveSum, o.ActiveMax = o.ActiveSum+g.ActiveSum, max(o.ActiveMax, g.ActiveMax)
	o.WaitingSum, o.WaitingMax = o.WaitingSum+g.WaitingSum, max(o.WaitingMax, g.WaitingMax)
	return o
}

// compare orders gauges of different nodes by how much they are worth. It is a total order,
// so that which one is taken does not depend on the order of merging.
func (g Gauges) compare(o Gauges) int {
	return cmp.Or(cmp.Compare(g.Samples, o.Samples),
		cmp.Compare(g.ActiveSum, o.ActiveSum), cmp.Compare(g.ActiveMax, o.ActiveMax),
		cmp.Compare(g.WaitingSum, o.WaitingSum), cmp.Compare(g.WaitingMax, o.WaitingMax),
		cmp.Compare(g.TotalActiveUsers, o.TotalActiveUsers), cmp.Compare(g.NewUsersPerMinute, o.NewUsersPerMinute))
}

// Minute is what happened in a room in one minute.
type Minute struct {
	At     int64 // minutes since 1970, UTC
	Nodes  int64 // how many nodes recorded it
	Gauges Gauges
	Counts Counts
	Waits  Histogram // of visitors who were let in and had waited: from arrival to admission
	Stays  Histogram // of sessions that ended: from admission to the last request
}

// Time returns when the minute began.
func (m *Minute) Time() time.Time { return time.Unix(m.At*60, 0).UTC() }

// minuteOf returns the minute of a time. Times before 1970 are in the first one.
func minuteOf(t time.Time) int64 { return min(max(t.Unix()/60, 0), maxMinute) }

// then joins two parts of a minute that the same node recorded, o after m.
func (m Minute) then(o Minute) Minute {
	return Minute{m.At, m.Nodes, m.Gauges.then(o.Gauges), m.Counts.plus(o.Counts), m.Waits.merge(o.Waits), m.Stays.merge(o.Stays)}
}

// merge joins what different nodes recorded of the same minute.
func (m Minute) merge(o Minute) Minute {
	g := m.Gauges
	if o.Gauges.compare(g) > 0 {
		g = o.Gauges
	}
	return Minute{m.At, min(m.Nodes+o.Nodes, maxNodes), g, m.Counts.plus(o.Counts), m.Waits.merge(o.Waits), m.Stays.merge(o.Stays)}
}
