// Package signals has no code: its tests check deploy/alerts and deploy/grafana with
// Prometheus' own parser and promtool. It is a module of its own, so that nobody who
// builds ropeline needs Prometheus.
//
// What metrics there are it reads from metrics.json, which the tests of httpfront/observe/metrics
// hold to the code.
package signals
