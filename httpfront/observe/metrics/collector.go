package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector reads a sample into series.
type collector struct {
	of    *Metrics
	table []described
}

type described struct {
	Metric
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newCollector(m *Metrics) *collector {
	c := &collector{of: m}
	for _, metric := range Table() {
		if metric.read == nil && metric.Name != leftOutName {
			continue // has a collector of its own
		}
		kind := prometheus.GaugeValue
		if metric.Type == Counter {
			kind = prometheus.CounterValue
		}
		c.table = append(c.table, described{metric, prometheus.NewDesc(metric.Name, metric.Help, metric.Labels, nil), kind})
	}
	return c
}

// Describe is of prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.table {
		out <- d.desc
	}
}

// Collect is of prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.of.cfg.Sample()
	left := float64(s.bound(c.of.cfg.MaxRooms))
	for _, d := range c.table {
		if d.Name == leftOutName {
			out <- prometheus.MustNewConstMetric(d.desc, d.kind, left)
			continue
		}
		d.read(&s, func(value float64, labels ...string) {
			for i := range labels {
				labels[i] = label(labels[i])
			}
			out <- prometheus.MustNewConstMetric(d.desc, d.kind, value, labels...)
		})
	}
}

// bound leaves out what would be too many series, or two of the same name, of which
// Prometheus would take neither. It returns how many.
func (s *Sample) bound(rooms int) int {
	before := len(s.Rooms) + len(s.Origins) + len(s.Certificates)
	s.Rooms = firstOf(s.Rooms, rooms, func(r Room) [2]string { return [2]string{label(r.Zone), label(r.Name)} })
	s.Origins = firstOf(s.Origins, maxOthers, func(o Origin) [2]string { return [2]string{label(o.Room), label(o.URL)} })
	s.Certificates = firstOf(s.Certificates, maxOthers, func(c Certificate) [2]string { return [2]string{label(c.Name)} })
	return before - len(s.Rooms) - len(s.Origins) - len(s.Certificates)
}

// firstOf returns the first of each name, at most so many, in a slice of its own.
func firstOf[T any](all []T, most int, name func(T) [2]string) []T {
	seen := make(map[[2]string]bool, min(len(all), most))
	var first []T
	for _, v := range all {
		if n := name(v); len(first) < most && !seen[n] {
			seen[n] = true
			first = append(first, v)
		}
	}
	return first
}
