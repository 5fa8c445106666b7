package metrics

import "time"

// Limits is what a node counts for rate limits.
type Limits struct {
	Rules []Limit

	Memory         int // bytes that counting may take
	Keys           int // for which there is room
	Replaced, Lost uint64
	Refused        uint64
}

// Limit is one rate limit that counts.
type Limit struct {
	Name, Action      string
	Limited           uint64 // requests at this node
	Keys, LimitedKeys int
	Delay             time.Duration // by what comes in so much time it can be exceeded
	Most              int           // requests: by no more, at whatever rate they come
}

func ofLimits(of func(*Limit) float64) func(*Sample, emit) {
	return func(s *Sample, out emit) {
		for i := range s.Limits.Rules {
			out(of(&s.Limits.Rules[i]), s.Limits.Rules[i].Name)
		}
	}
}

var limitTable = []Metric{
	{"ropeline_limit_requests_total", Counter, "requests", []string{"limit", "action"}, "requests at this node beyond a rate limit", func(s *Sample, out emit) {
		for i := range s.Limits.Rules {
			l := &s.Limits.Rules[i]
			out(float64(l.Limited), l.Name, l.Action)
		}
	}},
	{"ropeline_limit_keys", Gauge, "keys", []string{"limit"}, "keys that were asked about at this node within two periods", ofLimits(func(l *Limit) float64 { return float64(l.Keys) })},
	{"ropeline_limit_limited_keys", Gauge, "keys", []string{"limit"}, "keys that are limited", ofLimits(func(l *Limit) float64 { return float64(l.LimitedKeys) })},
	{"ropeline_limit_delay_seconds", Gauge, "seconds", []string{"limit"}, "the requests of so many seconds may come beyond the limit, until all nodes have heard of them", ofLimits(func(l *Limit) float64 { return l.Delay.Seconds() })},
	{"ropeline_limit_excess_requests", Gauge, "requests", []string{"limit"}, "by so many requests within a period a key can exceed the limit at most, at whatever rate they come", ofLimits(func(l *Limit) float64 { return float64(l.Most) })},
	{"ropeline_limit_keys_room", Gauge, "keys", nil, "keys that there is room for", one(func(s *Sample) int { return s.Limits.Keys })},
	{"ropeline_limit_memory_bytes", Gauge, "bytes", nil, "what counting for rate limits may take", one(func(s *Sample) int { return s.Limits.Memory })},
	{"ropeline_limit_keys_replaced_total", Counter, "keys", nil, "keys that were forgotten too early, to make room for others", one(func(s *Sample) uint64 { return s.Limits.Replaced })},
	{"ropeline_limit_lost_requests_total", Counter, "requests", nil, "requests counted at this node of which others have not heard", one(func(s *Sample) uint64 { return s.Limits.Lost })},
	{"ropeline_limit_messages_refused_total", Counter, "messages", nil, "messages of other nodes about counts that made no sense", one(func(s *Sample) uint64 { return s.Limits.Refused })},
}
