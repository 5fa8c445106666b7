package upstream

import (
	"slices"
	"time"
)

// Status is a group as operators see it.
type Status struct {
	Name    string         `json:"name"` // the room's, "" for the origins of all other requests
	Origins []OriginStatus `json:"origins"`
}

// OriginStatus is one origin as operators see it.
type OriginStatus struct {
	URL    string `json:"url"`
	Weight int    `json:"weight"`

	// State is "in"; "ejected", because requests failed; "trial", when the next
	// request finds out whether it is back; or "down", because checks failed.
	State  string     `json:"state"`
	Reason string     `json:"reason,omitempty"`        // why it went out
	Until  *time.Time `json:"ejected_until,omitempty"` // when it is tried again, if nothing says sooner that it is back

	Active   int    `json:"active"`   // requests that are with it
	Idle     int    `json:"idle"`     // connections kept for later
	Tunnels  int    `json:"tunnels"`  // upgraded connections
	Requests uint64 `json:"requests"` // sent to it since the start, upgrades included
	Failures uint64 `json:"failures"` // of those, not answered

	// Of the last 6 s, or of as many more, up to half a minute, as 20 requests take: requests that have ended, or wait for
	// 5 s and more, the part of them that were not answered or with a status from 500 on, and what half and 99 of 100
	// answers took to begin, at most.
	RecentRequests uint64        `json:"recent_requests"`
	ErrorRate      float64       `json:"error_rate"`
	P50            time.Duration `json:"p50_ns"`
	P99            time.Duration `json:"p99_ns"`

	// LastFailure is the last of these errors since the start; nil: there was none.
	LastFailure *Failure `json:"last_failure,omitempty"`
}

// Failure is a request that an origin failed.
type Failure struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// IsHealthy reports whether an origin of the group is in.
func (s *Status) IsHealthy() bool {
	return slices.ContainsFunc(s.Origins, func(o OriginStatus) bool { return o.State == "in" })
}

// Status returns what is known of the origins now.
func (g *Group) Status() Status {
	now := time.Now()
	s := Status{Name: g.cfg.Name, Origins: make([]OriginStatus, len(g.pools))}
	g.mu.Lock()
	for i := range g.members {
		m := &g.members[i]
		o := &s.Origins[i]
		o.State, o.Reason = m.state(now), g.reasons[i]
		if !m.until.IsZero() {
			until := m.until.UTC().Round(0)
			o.Until = &until
		}
	}
	g.mu.Unlock()
	for i, p := range g.pools {
		o := &s.Origins[i]
		o.URL, o.Weight = p.origin.url, p.origin.weight
		o.Requests, o.Failures = p.requests.Load(), p.failures.Load()
		o.Active = len(p.slots)
		o.LastFailure = p.lastFailure.Load()
		f := p.recent.figures(now, p.late(now))
		o.RecentRequests, o.P50, o.P99 = f.requests, f.p50, f.p99
		if f.requests > 0 {
			o.ErrorRate = float64(f.errors) / float64(f.requests)
		}
		p.mu.Lock()
		o.Idle, o.Tunnels = len(p.idle), p.tunnels
		p.mu.Unlock()
	}
	return s
}

func (h *health) state(now time.Time) string {
	switch {
	case h.down:
		return "down"
	case h.isDue(now) || h.trying:
		return "trial"
	case h.isOut():
		return "ejected"
	}
	return "in"
}
