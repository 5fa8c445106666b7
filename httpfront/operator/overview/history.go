package overview

import (
	"math"
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node/history"
)

// historyOf puts points, each of so much time, where they are between two moments. What is
// not known is NaN. Where steps are shorter than points, several have the same figures.
func historyOf(points []history.Point, each time.Duration, from, to time.Time, step time.Duration) dashboard.History {
	n := int((to.Sub(from) + step - 1) / step)
	h := dashboard.History{From: from, Step: step.Seconds()}
	all := [...]struct {
		series *dashboard.Series
		of     func(p *history.Point) float64
	}{
		{&h.Active, func(p *history.Point) float64 { return p.ActiveAvg }},
		{&h.Waiting, func(p *history.Point) float64 { return p.WaitingAvg }},
		{&h.AdmittedPerMinute, func(p *history.Point) float64 { return float64(p.Counts.Admitted) / float64(max(1, p.Minutes)) }},
		{&h.TotalActiveUsers, func(p *history.Point) float64 { return float64(p.TotalActiveUsers) }},
		{&h.NewUsersPerMinute, func(p *history.Point) float64 { return float64(p.NewUsersPerMinute) }},
	}
	for k := range all {
		*all[k].series = make(dashboard.Series, n)
	}
	for i := range n {
		begin := from.Add(time.Duration(i) * step)
		for len(points) > 0 && !points[0].At.Add(each).After(begin) {
			points = points[1:]
		}
		known := len(points) > 0 && points[0].Seen && points[0].At.Before(begin.Add(step))
		for k := range all {
			(*all[k].series)[i] = math.NaN()
			if known {
				(*all[k].series)[i] = all[k].of(&points[0])
			}
		}
	}
	return h
}
