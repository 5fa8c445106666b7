package overview

import (
	"time"

	"github.com/ropeline/ropeline/httpfront/operator/dashboard"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/catalog"
)

// reportLocked returns what this node says of itself.
func (o *Overview) reportLocked(s *node.Status) *Report {
	r := ReportOf(s, o.cfg.Address)
	r.Down = o.cfg.Local.Down()
	if o.cfg.Origins != nil {
		r.Origins = o.cfg.Origins()
	}
	if now := r.Limits.Replaced; len(o.replaced) > 0 && now > o.replaced[0] {
		r.Limits.ReplacedLately = now - o.replaced[0]
	}
	return r
}

// limits returns the rate limits in the order in which they are asked, as operators have
// set them, with what the nodes that are alive count.
func (s *seen) limits() []dashboard.Limit {
	all := []dashboard.Limit{}
	at := map[string]int{} // in all, by id
	put := func(l dashboard.Limit) {
		at[l.ID] = len(all)
		l.Order = len(all) + 1
		all = append(all, l)
	}
	if s.set != nil {
		for _, l := range s.set.RateLimits() {
			put(limitOf(&l))
		}
	}
	for i := range s.self.Rules {
		own := &s.self.Rules[i]
		if _, set := at[own.ID]; !set {
			put(dashboard.Limit{ID: own.ID, Name: own.Name, Scope: own.Scope})
		}
		all[at[own.ID]].State = dashboard.LimitCounts
	}
	for _, r := range s.alive() {
		for i := range r.Rules {
			if k, known := at[r.Rules[i].ID]; known {
				merge(&all[k], &r.Rules[i])
			}
		}
	}
	return all
}

// limitOf returns a rate limit as it was set; until it is known that a node counts for it,
// it is one that does not hold.
func limitOf(l *catalog.RateLimit) dashboard.Limit {
	state := dashboard.LimitLeftOut
	if l.Disabled {
		state = dashboard.LimitDisabled
	}
	return dashboard.Limit{
		ID: l.ID.String(), Name: l.Name, Scope: string(l.Scope), State: state,
		Expression: l.Expression, Characteristics: l.Characteristics,
		Period: int64(l.Period / time.Second), RequestsPerPeriod: int64(l.RequestsPerPeriod),
		MitigationTimeout: int64(l.MitigationTimeout / time.Second), Action: string(l.Action),
	}
}

// merge adds what one node counts.
func merge(l *dashboard.Limit, r *node.LimitStatus) {
	l.Nodes++
	spread(&l.Keys, r.Keys)
	spread(&l.Limited, r.Limited)
	l.DelaySeconds = max(l.DelaySeconds, r.Bound.DelaySeconds)
	l.Most = max(l.Most, int64(r.Bound.Most))
}

func spread(over *dashboard.OverNodes, n int) {
	over.Most = max(over.Most, int64(n))
	over.Sum += int64(n)
}

// alive returns the reports of the nodes that are alive and have told of themselves since
// their start, this one's first.
func (s *seen) alive() []*Report {
	all := []*Report{s.self}
	for _, p := range s.status.Peers {
		if r := s.report(&p); r != nil && p.State == "alive" {
			all = append(all, r)
		}
	}
	return all
}
