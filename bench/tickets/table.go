//go:build linux

package tickets

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/bench/measurement"
)

// row is one line of the table.
type row struct {
	key  string // in results
	name string
	of   func(*round) spell
	wait bool // it was measured from when visitors were due
}

// rows are what is measured, in their order.
var rows = []row{
	{"redis", "Redis `INCR`, one call after the other on each of 64 connections", func(r *round) spell { return r.RedisMost }, false},
	{"redis-script", "the same with a script that checks a limit", func(r *round) spell { return r.RedisScript }, false},
	{"redis-half", "Redis `INCR`, visitors who come at half of that rate", func(r *round) spell { return r.RedisHalf }, true},
	{"same-as-redis-half", "three nodes at that same rate", func(r *round) spell { return r.AtHalf }, true},
	{"same-as-redis", "three nodes at the highest rate of Redis", func(r *round) spell { return r.AtMost }, true},
	{"same-as-redis-goroutines", "the same, where each visitor keeps a goroutine waiting", func(r *round) spell { return r.Waiting }, true},
	{"half", "three nodes at half of their own highest rate", func(r *round) spell { return r.Half }, true},
	{"most", "three nodes at the highest rate that they sustain", func(r *round) spell { return r.Most }, true},
	{"saturated", "three nodes with 24,576 visitors always under way", func(r *round) spell { return r.Saturated }, false},
	{"load", "load alone: decisions that do nothing", func(r *round) spell { return r.Load }, true},
}

// table returns the figures as a table of the documentation.
func (all results) table() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| | decisions a second | p50, ms | p99, ms | µs of processor time for each |\n|---|---|---|---|---|")
	for _, w := range rows {
		if all.NoRedis != "" && w.of(&all.Rounds[0]).Came == 0 {
			continue
		}
		p50, p99 := "", ""
		if w.wait {
			p50 = all.figure("%.2f", func(r *round) float64 { return w.of(r).P50 })
			p99 = all.figure("%.2f", func(r *round) float64 { return w.of(r).P99 })
		}
		cpu := all.figure("%.2f", func(r *round) float64 { s := w.of(r); return float64(s.CPU+s.Server) / 1e3 })
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", w.name, all.figure("%.0f", func(r *round) float64 { return w.of(r).Rate() }), p50, p99, cpu)
	}
	b.WriteString("\n" + all.says())
	return b.String()
}

// says returns what the table comes to.
func (all results) says() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d rounds of %s, with the least and the most; %d processors, all of them.", len(all.Rounds), all.Lasts, all.Processors)
	if all.NoRedis != "" {
		fmt.Fprintf(&b, "\n**Redis was not measured: %s.**\n", all.NoRedis)
		return b.String()
	}
	fmt.Fprintf(&b, " Within each round, the highest rate that the nodes sustain is × %s of that of Redis, and with as many under way as there may be, as Redis has its own measured, × %s; its processor time for a decision is × %s of theirs, × %s of it without what the load takes by itself; p99 of the nodes at half of their highest rate is × %s of that of Redis at half of its own, and at the same rate × %s.\n",
		all.figure("%.1f", func(r *round) float64 { return r.Most.Rate() / r.RedisMost.Rate() }),
		all.figure("%.1f", func(r *round) float64 { return r.Saturated.Rate() / r.RedisMost.Rate() }),
		all.figure("%.1f", func(r *round) float64 {
			return float64(r.RedisMost.CPU+r.RedisMost.Server) / float64(r.Most.CPU)
		}),
		all.figure("%.1f", func(r *round) float64 {
			return float64(r.RedisMost.CPU+r.RedisMost.Server) / float64(max(1, r.Most.CPU-r.Load.CPU))
		}),
		all.figure("%.2f", func(r *round) float64 { return r.Half.P99 / r.RedisHalf.P99 }),
		all.figure("%.2f", func(r *round) float64 { return r.AtHalf.P99 / r.RedisHalf.P99 }))
	if all.Rounds[0].Benchmarked > 0 {
		fmt.Fprintf(&b, "`redis-benchmark`, a client in C, makes %s calls a second on as many connections.\n", all.figure("%.0f", func(r *round) float64 { return r.Benchmarked }))
	} else {
		fmt.Fprintf(&b, "`redis-benchmark` is missing.\n")
	}
	return b.String()
}

// figure returns the median of a figure, and its range.
func (all results) figure(format string, of func(*round) float64) string {
	var values []float64
	for i := range all.Rounds {
		values = append(values, of(&all.Rounds[i]))
	}
	text := fmt.Sprintf(format, measurement.Median(values))
	if len(values) == 1 {
		return text
	}
	return fmt.Sprintf("%s ("+format+" to "+format+")", text, slices.Min(values), slices.Max(values))
}
