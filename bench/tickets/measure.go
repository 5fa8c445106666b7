//go:build linux

package tickets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// What is measured by turns in a round, in the order of its rows.
const (
	redisMost   = "redis"                    // one call after the other on each connection
	redisScript = "redis-script"             // the same with a script that checks a limit
	redisHalf   = "redis-half"               // visitors who come at half of the rate of redisMost
	atHalf      = "same-as-redis-half"       // nodes at that same rate
	atMost      = "same-as-redis"            // nodes at the rate of redisMost
	goroutines  = "same-as-redis-goroutines" // the same, where each visitor keeps a goroutine waiting
	half        = "half"                     // nodes at half of their own highest rate
	most        = "most"                     // nodes at the highest rate that they sustain
	saturated   = "saturated"                // nodes with as many visitors under way as they may have
	loadAlone   = "load"                     // decisions that do nothing, at the rate of most
)

var rows = []string{redisMost, redisScript, redisHalf, atHalf, atMost, goroutines, half, most, saturated, loadAlone}

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
	redis, ok := r[redisMost]
	if !ok {
		return
	}
	nodes, alone := r[most], r[loadAlone]
	for _, of := range []struct {
		row   string
		ratio float64
	}{
		{byRate, nodes.Rate() / redis.Rate()},
		{byP99, r[atHalf].P99 / r[redisHalf].P99},
		{"by-redis/of=rate,_saturated", r[saturated].Rate() / redis.Rate()},
		{"by-redis/of=p99,_each_at_half", r[half].P99 / r[redisHalf].P99},
		{"by-redis/of=cpu", float64(nodes.cpu()) / float64(redis.cpu())},
		{"by-redis/of=cpu,_without_the_load", float64(max(0, nodes.cpu()-alone.cpu())) / float64(redis.cpu())},
	} {
		run.Add(of.row, measurement.Values{ratioUnit: of.ratio})
	}
}

// under is how many visitors are under way where the nodes are to be busy: less than they
// let wait.
const under = meshNodes << 13

// slower are the parts of what saturates the nodes that are tried, until one is sustained.
var slower = []float64{0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}

func measure(ctx context.Context, o options, run *measurement.Run) {
	central, err := startCentral(ctx)
	if errors.Is(err, errNoRedis) {
		run.Note("Redis was not measured: %v.", err)
	} else {
		rig.Must(err)
		defer central.stop()
	}
	for range o.rounds {
		r := round{}
		if central != nil {
			r[redisMost] = central.most(incr, o.lasts)
			r[redisScript] = central.most(limited, o.lasts)
			r[redisHalf] = central.open(ctx, incr, r[redisMost].Rate()/2, o.lasts)
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
	r[half] = t.at(ctx, r[most].Wanted/2, 0)
	if redis, ok := r[redisMost]; ok {
		r[atMost] = t.at(ctx, redis.Rate(), 0)
		r[atHalf] = t.at(ctx, r[redisHalf].Wanted, 0)
		t.goroutines = true
		r[goroutines] = t.at(ctx, redis.Rate(), 0)
	}
	var idle []*lane
	for range meshNodes {
		idle = append(idle, &lane{decider: nothing{}})
	}
	r[loadAlone] = rig.Got(newLoad().drive(ctx, idle, r[most].Wanted, 0, o.lasts))
}

// trial measures a site of nodes at one rate after the other. A site that had to tell
// visitors to wait is replaced by a new one: they are waiting there.
type trial struct {
	options
	m          *mesh // nil: the next one is to be started
	goroutines bool  // as mesh.lanes has it
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
		s = rig.Got(t.m.room.drive(ctx, t.m.lanes(t.goroutines), so.part*perSecond, int64(so.part*float64(under)), so.lasts))
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
