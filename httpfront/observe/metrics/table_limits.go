package metrics

import "github.com/ropeline/ropeline/node"

// ofLimits is a number of each rate limit that counts, and that the front follows.
func ofLimits(name, unit, help string, of func(*node.LimitStatus) float64) Metric {
	return Metric{name, Gauge, unit, []string{"limit"}, help, func(s *Sample, out emit) {
		for l := range s.limits {
			out(of(l), l.Name)
		}
	}}
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
	ofLimits("ropeline_limit_keys", "keys", "keys that were asked about at this node within two periods",
		func(l *node.LimitStatus) float64 { return float64(l.Keys) }),
	ofLimits("ropeline_limit_limited_keys", "keys", "keys that are limited", func(l *node.LimitStatus) float64 { return float64(l.Limited) }),
	ofLimits("ropeline_limit_delay_seconds", "seconds", "the requests of so many seconds may come beyond the limit, until all nodes have heard of them",
		func(l *node.LimitStatus) float64 { return l.Bound.DelaySeconds }),
	ofLimits("ropeline_limit_excess_requests", "requests", "by so many requests within a period a key can exceed the limit at most, at whatever rate they come",
		func(l *node.LimitStatus) float64 { return float64(l.Bound.Most) }),
	one("ropeline_limit_keys_room", Gauge, "keys", "keys that there is room for", func(s *Sample) int { return s.Node.Limits.Keys }),
	one("ropeline_limit_memory_bytes", Gauge, "bytes", "what counting for rate limits may take",
		func(s *Sample) int { return s.Node.Limits.MemoryBytes }),
	one("ropeline_limit_keys_replaced_total", Counter, "keys", "keys that were forgotten too early, to make room for others",
		func(s *Sample) uint64 { return s.Node.Limits.Replaced }),
	one("ropeline_limit_lost_requests_total", Counter, "requests", "requests counted at this node of which others have not heard",
		func(s *Sample) uint64 { return s.Node.Limits.Lost }),
	one("ropeline_limit_messages_refused_total", Counter, "messages", "messages of other nodes about counts that made no sense",
		func(s *Sample) uint64 { return s.Node.Limits.Refused }),
}
