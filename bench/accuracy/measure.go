package accuracy

import (
	"math"

	"github.com/ropeline/ropeline/node/limit"
)

// exact has when the requests of a source came within the last period, in order.
type exact []uint32

// count adds a request, and returns how many came within the last period, it included.
func (e *exact) count(at, period limit.Millis) int {
	for len(*e) > 0 && at-limit.Millis((*e)[0]) >= period {
		*e = (*e)[1:]
	}
	*e = append(*e, uint32(at))
	return len(*e)
}

// against is what came of one limit.
type against struct {
	Limit int

	// Of decisions about requests, where a request is to be limited if more than Limit came
	// within the last period, it included.
	Allowed, Refused uint64 // wrongly

	// Of sources.
	Over           int     // more than Limit came in some period
	Found          int     // of those, were limited at some time
	Missed         int     // of those, never were: false negatives
	WorstMissed    float64 // by which part of Limit the most of a missed one was above it
	FalsePositives int     // limited, and never above Limit
}

// accuracy is how near estimates come to what is true.
type accuracy struct {
	Requests, Sources int

	// MeanDifference is |estimate − true| / true over all requests, in parts of 1.
	MeanDifference float64
	// BySource is the same, of each source at its highest true rate, over those sources
	// that came ten times in some period at least.
	BySource float64
	Limits   []against
}

// measureAll holds the estimates of the requests that walk yields against what is true. No
// request is limited in it: each limit is one to which estimates and truth are compared, as
// in the analysis that was published of the algorithm. count counts a request and returns
// the estimate after it.
func measureAll(period limit.Millis, limits []int, sources int, walk func(each func(source int, at limit.Millis)), count func(source int, at limit.Millis) float64) accuracy {
	m := measure{period: period, exact: make([]exact, sources), peak: make([]peak, sources), found: make([]uint64, sources)}
	a := accuracy{Sources: sources, Limits: make([]against, len(limits))}
	for i, l := range limits {
		a.Limits[i].Limit = l
	}
	walk(func(source int, at limit.Millis) { m.request(&a, source, at, count(source, at)) })
	a.MeanDifference = m.difference / float64(a.Requests)
	seen := 0
	for s, p := range m.peak {
		if p.true >= 10 {
			seen++
			a.BySource += p.difference
		}
		for i := range a.Limits {
			a.Limits[i].judge(int(p.true), m.found[s]>>i&1 == 1)
		}
	}
	a.BySource /= math.Max(1, float64(seen))
	return a
}

func (l *against) judge(peak int, found bool) {
	switch over := peak > l.Limit; {
	case over && found:
		l.Over++
		l.Found++
	case over:
		l.Over++
		l.Missed++
		l.WorstMissed = max(l.WorstMissed, float64(peak-l.Limit)/float64(l.Limit))
	case found:
		l.FalsePositives++
	}
}

type measure struct {
	period     limit.Millis
	exact      []exact
	peak       []peak
	found      []uint64 // a bit for each limit by which a source was limited
	difference float64
}

// peak is a source at its highest true rate.
type peak struct {
	true       float64
	difference float64
}

func (m *measure) request(a *accuracy, source int, at limit.Millis, estimate float64) {
	a.Requests++
	n := float64(m.exact[source].count(at, m.period))
	d := math.Abs(estimate-n) / n
	m.difference += d
	if p := &m.peak[source]; n > p.true {
		*p = peak{n, d}
	}
	for i := range a.Limits {
		l := float64(a.Limits[i].Limit)
		refused, over := estimate > l, n > l
		switch {
		case refused && !over:
			a.Limits[i].Refused++
		case over && !refused:
			a.Limits[i].Allowed++
		}
		if refused {
			m.found[source] |= 1 << i
		}
	}
}
