package metrics

import "github.com/ropeline/ropeline/node"

// ofLimits returns how a number of each rate limit is read that counts, and that the front follows.
func ofLimits(of func(*node.LimitStatus) float64) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		for l := range s.limits {
			out(of(l), l.Name)
		}
	}
}

// limits yields them, each with what it has done.
func (s *Sample) limits(yield func(*node.LimitStatus, *LimitTally) bool) {
	for i := range s.Node.Limits.Rules {
		for k := range s.Limits {
			if l := &s.Node.Limits.Rules[i]; l.ID == s.Limits[k].ID && !yield(l, &s.Limits[k]) {
				return
			}
		}
	}
}

var limitTable = []Metric{
	{"ropeline_limit_requests_total", Counter, "requests", []string{"limit", "action"}, "requests at this node beyond a rate limit", func(s *Sample, out emit) {
		for l, has := range s.limits {
			out(float64(has.Requests), l.Name, has.Action)
		}
	}},
	{"ropeline_limit_keys", Gauge, "keys", []string{"limit"}, "keys that were asked about at this node within two periods", ofLimits(func(l *node.LimitStatus) float64 { return float64(l.Keys) })},
	{"ropeline_limit_limited_keys", Gauge, "keys", []string{"limit"}, "keys that are limited", ofLimits(func(l *node.LimitStatus) float64 { return float64(l.Limited) })},
	{"ropeline_limit_delay_seconds", Gauge, "seconds", []string{"limit"}, "the requests of so many seconds may come beyond the limit, until all nodes have heard of them", ofLimits(func(l *node.LimitStatus) float64 { return l.Bound.DelaySeconds })},
	{"ropeline_limit_excess_requests", Gauge, "requests", []string{"limit"}, "by so many requests within a period a key can exceed the limit at most, at whatever rate they come", ofLimits(func(l *node.LimitStatus) float64 { return float64(l.Bound.Most) })},
	{"ropeline_limit_keys_room", Gauge, "keys", nil, "keys that there is room for", one(func(s *Sample) int { return s.Node.Limits.Keys })},
	{"ropeline_limit_memory_bytes", Gauge, "bytes", nil, "what counting for rate limits may take", one(func(s *Sample) int { return s.Node.Limits.MemoryBytes })},
	{"ropeline_limit_keys_replaced_total", Counter, "keys", nil, "keys that were forgotten too early, to make room for others", one(func(s *Sample) uint64 { return s.Node.Limits.Replaced })},
	{"ropeline_limit_lost_requests_total", Counter, "requests", nil, "requests counted at this node of which others have not heard", one(func(s *Sample) uint64 { return s.Node.Limits.Lost })},
	{"ropeline_limit_messages_refused_total", Counter, "messages", nil, "messages of other nodes about counts that made no sense", one(func(s *Sample) uint64 { return s.Node.Limits.Refused })},
}
