//go:build linux

// Package tickets holds the decisions about new visitors that three nodes of a site take with
// tickets beside those of a central room, which asks Redis with one call for each: in one
// run, by turns, on the same two processors.
//
// The load is in the process of what it loads, and shares its processors: for the nodes
// because that is where requests meet them, for Redis because its clients do.
package tickets

import (
	"context"
	"errors"
	"fmt"
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
			"Cases: redis makes one call after the other on each connection, and redis-half has visitors come at half of that rate; " +
			"same-as-redis-half is nodes at that rate, most is the highest rate that nodes sustain, and saturated has as many visitors under way as nodes let wait.",
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

// What is measured by turns in a round, in the order of its rows.
const (
	redisMost = "redis"              // one call after the other on each connection
	redisHalf = "redis-half"         // visitors who come at half of the rate of redisMost
	atHalf    = "same-as-redis-half" // nodes at that same rate
	most      = "most"               // nodes at the highest rate that they sustain
	saturated = "saturated"          // nodes with as many visitors under way as they may have
)

var rows = []string{redisMost, redisHalf, atHalf, most, saturated}

// Rows of what nodes come to beside Redis.
const (
	ratioUnit = "ratio"
	byRate    = "by-redis/of=rate"
	byP99     = "by-redis/of=p99"
)

// round is what was measured by turns; of Redis only where it is there.
type round map[string]spell

// record adds all rows.
func (r round) record(run *measurement.Run) {
	for _, key := range rows {
		s, ok := r[key]
		if !ok {
			continue
		}
		values := measurement.Values{"decisions/s": s.Rate(), "cpu-sec/decision": s.cpu().Seconds()}
		if s.Wanted > 0 {
			values["p50-sec"], values["p99-sec"] = s.P50/1e3, s.P99/1e3
		}
		run.Add(measurement.Row("case", key), values)
	}
	if redis, ok := r[redisMost]; ok {
		run.Add(byRate, measurement.Values{ratioUnit: r[most].Rate() / redis.Rate()})
		run.Add(byP99, measurement.Values{ratioUnit: r[atHalf].P99 / r[redisHalf].P99})
	}
}

// under is how many visitors are under way where the nodes are to be busy: less than they
// let wait.
const under = meshNodes << 13

// slower are the parts of what saturates the nodes that are tried, until one is sustained.
var slower = []float64{0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}

func measure(ctx context.Context, o options, run *measurement.Run) {
	var central *central
	if missing := rig.Missing("redis-server"); len(missing) > 0 {
		run.Note("Redis was not measured: %s is missing.", missing[0])
	} else {
		central = rig.Got(startCentral(ctx))
		defer central.stop()
	}
	for range o.rounds {
		r := round{}
		if central != nil {
			r[redisMost] = central.drive(ctx, 0, 2*connections, o.lasts) // so that one is there for each connection that is free
			r[redisHalf] = central.drive(ctx, r[redisMost].Rate()/2, 0, o.lasts)
		}
		r.ofNodes(ctx, o)
		r.record(run)
	}
}

// ofNodes measures a site that is new each time, so that no round finds what one before has
// left.
func (r round) ofNodes(ctx context.Context, o options) {
	t := trial{options: o}
	defer t.end()
	r[saturated] = t.at(ctx, 0, under)
	for _, part := range slower {
		if r[most] = t.at(ctx, part*r[saturated].Rate(), 0); r[most].sustained(o.lasts) {
			break
		}
	}
	if !r[most].sustained(o.lasts) {
		rig.Must(fmt.Errorf("the nodes sustain no rate; is the machine busy? At the lowest: %v", r[most]))
	}
	if redis, ok := r[redisHalf]; ok {
		r[atHalf] = t.at(ctx, redis.Wanted, 0)
	}
}

// trial measures a site of nodes at one rate after the other. A site that had to tell
// visitors to wait is replaced by a new one: they are waiting there.
type trial struct {
	options
	m *mesh // nil: the next one is to be started
}

// rises is how long the load takes at each part of what it is to be: what a node has on
// disk ahead of its visitors follows them.
const rises = 300 * time.Millisecond

// at has so many visitors a second come, or if that is 0 so many be under way, until as many leave as come, and
// then measures.
func (t *trial) at(ctx context.Context, perSecond float64, under int64) (s spell) {
	if t.m == nil {
		t.m = rig.Got(startMesh(ctx, t.session))
	}
	refused := int64(0)
	for _, so := range []struct {
		part  float64
		lasts time.Duration
	}{{0.1, rises}, {0.3, rises}, {0.6, rises}, {1, t.m.settles()}, {1, t.lasts}} {
		s = rig.Got(t.m.room.drive(ctx, t.m.lanes(), so.part*perSecond, int64(so.part*float64(under)), so.lasts))
		refused += s.Refused
	}
	if refused > 0 {
		t.end()
	}
	return s
}

func (t *trial) end() {
	if m := t.m; m != nil {
		t.m = nil
		rig.Must(m.stop())
	}
}
