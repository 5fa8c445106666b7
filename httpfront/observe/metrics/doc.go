// Package metrics shows what a node does in the text format of Prometheus.
//
// All metrics stand in one table, which [Table] returns: names, types, units, labels and
// what they mean. Most are read from a [Sample] that is taken when somebody asks, so that
// they cost nothing in between. Requests alone are counted as they happen, by [Requests],
// which allocates nothing.
//
// What a request says makes no series. Labels are names from the configuration, of which
// there are so many as maxRooms at most; requests to anything else are counted
// together.
//
// It is built on prometheus/client_golang, which makes the binary 2 % larger.
// VictoriaMetrics/metrics is a twentieth of that, but writes no help texts, and its usual
// histograms are in ranges that Prometheus' own functions do not read. Client_golang also
// brings a check of names against Prometheus' conventions, which a test runs over the table.
//
// Everything may be used from many goroutines at once.
package metrics
