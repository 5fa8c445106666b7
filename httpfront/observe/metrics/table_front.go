package metrics

// Names of what is counted as it happens.
const (
	requestsName = "ropeline_requests_total"
	durationName = "ropeline_request_duration_seconds"
	leftOutName  = "ropeline_series_left_out"
)

var originLabels = []string{"room", "origin"}

// ofOrigins is a number of each origin.
func ofOrigins(name string, t Type, unit, help string, of func(*origin) float64) Metric {
	return Metric{name, t, unit, originLabels, help, func(s *Sample, out emit) {
		for i := range s.origins {
			out(of(&s.origins[i]), s.origins[i].room, s.origins[i].URL)
		}
	}}
}

var frontTable = []Metric{
	{requestsName, Counter, "requests", []string{"zone", "room", "outcome"}, "finished requests at this node by what became of them; without a room where none is meant", nil},
	{durationName, Histogram, "seconds", []string{"outcome"}, "how long requests took, from the whole head to the end of the answer", nil},
	one("ropeline_requests_in_flight", Gauge, "requests", "requests that are being answered", func(s *Sample) int { return s.Front.RequestsInFlight }),
	one("ropeline_connections", Gauge, "connections", "open connections of clients", func(s *Sample) int { return s.Front.Connections }),
	one("ropeline_connections_max", Gauge, "connections", "of these the node takes so many: max-connections, or fewer where the limit of open files is too low",
		func(s *Sample) int { return s.Front.ConnectionsMax }),
	ofOrigins("ropeline_origin_up", Gauge, bit, "the origin is healthy: it is neither ejected, on trial nor down",
		func(o *origin) float64 { return bitOf(o.State == "in") }),
	ofOrigins("ropeline_origin_recent_requests", Gauge, "requests", "requests to the origin that ended in the last 6 s, or as many more, up to half a minute, as 20 requests take, and those that wait for 5 s and more",
		func(o *origin) float64 { return float64(o.RecentRequests) }),
	ofOrigins("ropeline_origin_error_ratio", Gauge, "ratio", "the part of these that were not answered, or with a status from 500 on",
		func(o *origin) float64 { return o.ErrorRate }),
	ofOrigins("ropeline_origin_p50_seconds", Gauge, "seconds", "what half of these answers took to begin, at most",
		func(o *origin) float64 { return o.P50.Seconds() }),
	ofOrigins("ropeline_origin_p99_seconds", Gauge, "seconds", "what 99 of 100 of these answers took to begin, at most",
		func(o *origin) float64 { return o.P99.Seconds() }),
	{"ropeline_origin_last_failure_timestamp_seconds", Gauge, "seconds since 1970", originLabels, "when the origin failed a request for the last time", func(s *Sample, out emit) {
		for i := range s.origins {
			if f := s.origins[i].LastFailure; f != nil {
				out(float64(f.At.UnixNano())/1e9, s.origins[i].room, s.origins[i].URL)
			}
		}
	}},
	ofOrigins("ropeline_origin_active_requests", Gauge, "requests", "requests that are with the origin",
		func(o *origin) float64 { return float64(o.Active) }),
	ofOrigins("ropeline_origin_idle_connections", Gauge, "connections", "connections to the origin kept for later",
		func(o *origin) float64 { return float64(o.Idle) }),
	ofOrigins("ropeline_origin_tunnels", Gauge, "connections", "upgraded connections to the origin",
		func(o *origin) float64 { return float64(o.Tunnels) }),
	ofOrigins("ropeline_origin_requests_total", Counter, "requests", "requests sent to the origin, upgrades included",
		func(o *origin) float64 { return float64(o.Requests) }),
	ofOrigins("ropeline_origin_failures_total", Counter, "requests", "of those, not answered", func(o *origin) float64 { return float64(o.Failures) }),
	{"ropeline_certificate_expiry_timestamp_seconds", Gauge, "seconds since 1970", []string{"name"}, "when a certificate shown to visitors runs out", func(s *Sample, out emit) {
		for i := range s.certificates {
			if c := &s.certificates[i]; !c.NotAfter.IsZero() {
				out(float64(c.NotAfter.Unix()), certificateName(c))
			}
		}
	}},
	{"ropeline_certificate_ok", Gauge, bit, []string{"name"}, "the certificate that should be shown to visitors is", func(s *Sample, out emit) {
		for i := range s.certificates {
			c := &s.certificates[i]
			out(bitOf(c.Error == ""), certificateName(c))
		}
	}},
	one("ropeline_access_log_lines_total", Counter, "lines", "lines of the access log that were written",
		func(s *Sample) uint64 { return s.Front.AccessLines }),
	one("ropeline_access_log_dropped_lines_total", Counter, "lines", "lines of the access log that were not, since the disk did not keep up or failed",
		func(s *Sample) uint64 { return s.Front.AccessDropped }),
	one("ropeline_access_log_errors_total", Counter, "errors", "times that the access log could not be written or opened",
		func(s *Sample) uint64 { return s.Front.AccessErrors }),
	{leftOutName, Gauge, "names", nil, "rooms, origins and certificates without series, because there are too many or two have one name", nil},
}
