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
	s := c.of.sample()
	left := float64(s.bound())
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
