package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config says what is shown. Sample is required.
type Config struct {
	// Sample returns what the node is now. It is called for each answer, by any goroutine,
	// and should not wait.
	Sample func() Sample
	// MaxRooms is how many rooms have series, some forty each. The rest are left out, which
	// ropeline_series_left_out tells. Default 500, at most 10,000.
	MaxRooms int
}

// As many origins and certificates have series; nobody has more of them than of rooms.
const maxOthers = 500

// Metrics answers Prometheus.
type Metrics struct {
	cfg      Config
	requests *Requests
	handler  http.Handler
	registry *prometheus.Registry
}

// New returns Metrics of a node. It keeps nothing outside of itself.
func New(cfg Config) (*Metrics, error) {
	if cfg.Sample == nil {
		return nil, errors.New("metrics: no sample given")
	}
	if cfg.MaxRooms == 0 {
		cfg.MaxRooms = 500
	}
	if cfg.MaxRooms < 1 || cfg.MaxRooms > 10_000 {
		return nil, fmt.Errorf("metrics: rooms is %d, allowed are 1 to 10000", cfg.MaxRooms)
	}
	m := &Metrics{cfg: cfg, requests: newRequests(cfg.MaxRooms), registry: prometheus.NewRegistry()}
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
