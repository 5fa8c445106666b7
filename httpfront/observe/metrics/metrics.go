package metrics

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxRooms is how many rooms have series, some forty each. The rest are left out, which
// ropeline_series_left_out tells.
const maxRooms = 500

// As many origins and certificates have series; nobody has more of them than of rooms.
const maxOthers = 500

// Metrics answers Prometheus.
type Metrics struct {
	sample   func() Sample
	requests *Requests
	handler  http.Handler
	registry *prometheus.Registry
}

// New returns Metrics of a node. It keeps nothing outside of itself. sample returns what the node is
// now: it is called for each answer, by any goroutine, and should not wait. outcomes are the words
// for what may become of a request, by the numbers with which requests are recorded.
func New(sample func() Sample, outcomes []string) (*Metrics, error) {
	m := &Metrics{sample: sample, requests: newRequests(outcomes), registry: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		newCollector(m), m.requests.counts, m.requests.durations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		// No Timeout: who is late would go on with a request that is not there any more.
		// Nothing that is read here waits.
		MaxRequestsInFlight: 4, // an answer of thousands of series takes some megabytes
		EnableOpenMetrics:   true,
	})
	return m, nil
}

// Requests returns what counts requests.
func (m *Metrics) Requests() *Requests { return m.requests }

// ServeHTTP answers with all metrics in the text format, or OpenMetrics where that is
// asked for. Who may ask is the caller's business.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// maxLabel bounds the values of labels, in bytes.
const maxLabel = 200

// label makes a text fit to be the value of a label.
func label(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func metricNamed(name string) Metric {
	for _, m := range frontTable {
		if m.Name == name {
			return m
		}
	}
	panic("metrics: no metric is named " + name)
}
