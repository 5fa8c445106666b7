//go:build linux

// Package tickets holds the decisions about new visitors that three nodes of a site take with
// tickets beside those of a central room, which asks Redis with one call for each: in one
// run, by turns, on the same two processors.
//
// The load is in the process of what it loads, and shares its processors: for the nodes
// because that is where requests meet them, for Redis because its clients do. What the load
// takes by itself is measured with decisions that do nothing.
package tickets

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// options are what a run is to do.
type options struct {
	rounds  int           // how often each is measured
	lasts   time.Duration // how long each time
	session time.Duration // how long visitors stay inside
}

// Entry is the measurement.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "tickets", Page: "measurements.md",
		Question: "How many decisions do three nodes take with tickets, beside one call of Redis for each?",
		Method: "New visitors, each of whom needs a decision. A central room asks Redis once for each, on 64 connections; three nodes of one site give a ticket to each, under escrow, with QUIC over loopback. " +
			"Both by turns on the same processors, with the load in the same process. Without redis-server only the nodes are measured. " +
			"Cases: redis makes one call after the other on each connection, redis-script one of a script that checks a limit, and redis-half has visitors come at half of the rate of redis; " +
			"same-as-redis-half and same-as-redis are nodes at these rates, also with a goroutine for each who waits; most is the highest rate that nodes sustain, half is half of it, " +
			"saturated has as many visitors under way as nodes let wait, and load is decisions that do nothing.",
		Units: []measurement.Unit{
			{Name: "decisions/s", Meaning: "decisions that were given a second", Better: "higher"},
			{Name: "p50-sec", Meaning: "time until a decision, from when the visitor was due: half are faster", Better: "lower"},
			{Name: "p99-sec", Meaning: "the same, 99 of 100 are faster", Better: "lower"},
			{Name: "cpu-sec/decision", Meaning: "processor time of all for one decision", Better: "lower"},
			{Name: ratioUnit, Meaning: "nodes by Redis, within a round"},
		},
		Bounds: []measurement.Bound{
			{Row: byRate, Unit: ratioUnit, Least: 10, Text: "the highest rate that nodes sustain, by that of Redis"},
			{Row: byP99, Unit: ratioUnit, Most: 1, Text: "p99 of nodes by that of Redis, at the same rate"},
		},
		Programs: map[string][]string{"Redis": {"redis-server", "--version"}},
		Needs:    []string{"taskset"}, Cores: []int{0, 1}, Quick: []string{"rounds=1", "for=500ms", "session=1s"},
		New: func(f *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			var o options
			f.IntVar(&o.rounds, "rounds", 6, "how often each is measured; an interval takes six")
			f.DurationVar(&o.lasts, "for", 3*time.Second, "how long each time")
			f.DurationVar(&o.session, "session", 3*time.Second, "how long visitors stay inside; as many leave as come after that time and half a second")
			return func(ctx context.Context, r *measurement.Run) error {
				if o.rounds < 1 || o.lasts <= 0 || o.session <= 0 {
					return errors.New("rounds, for and session are above 0")
				}
				return rig.Try(func() { measure(ctx, o, r) })
			}
		},
	}
}
