//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// results are all figures of a run.
type results struct {
	Processors int     // that this process may use
	Machine    string  // as the system names its processor; "": it does not
	NoRedis    string  // why Redis was not measured; "": it was
	Session    string  // how long visitors stayed inside
	Lasts      string  // how long each was measured
	Rounds     []round // in order
}

// round is what was measured by turns.
type round struct {
	Benchmarked float64 // calls a second of redis-benchmark; 0: it is missing
	RedisMost   spell   // INCR, one call after the other on each connection
	RedisScript spell   // the same with a limit that is checked
	RedisHalf   spell   // at half of RedisMost

	Saturated spell // the nodes, with as many visitors under way as they may have
	Most      spell // the highest rate that the nodes sustained
	Half      spell // half of that
	AtHalf    spell // at the rate of RedisHalf
	AtMost    spell // at the rate of RedisMost
	Load      spell // decisions that do nothing, at the rate of Most
}

// under is how many visitors are under way where the nodes are to be busy: less than they
// let wait.
const under = meshNodes << 13

// slower are the parts of what saturates the nodes that are tried, until one is sustained.
var slower = []float64{0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}

func measure(ctx context.Context, o options) (all results, err error) {
	all = results{Processors: runtime.GOMAXPROCS(0), Machine: processorName(), Session: o.session.String(), Lasts: o.lasts.String()}
	central, err := startRedis(ctx)
	switch {
	case errors.Is(err, errNoRedis):
		all.NoRedis = err.Error()
	case err != nil:
		return all, err
	default:
		defer func() { err = errors.Join(err, central.stop()) }()
	}
	for range o.rounds {
		var r round
		if all.NoRedis == "" {
			if err := r.ofRedis(ctx, central, o.lasts); err != nil {
				return all, fmt.Errorf("redis: %w", err)
			}
		}
		if err := r.ofNodes(ctx, o); err != nil {
			return all, err
		}
		all.Rounds = append(all.Rounds, r)
	}
	return all, nil
}

func (r *round) ofRedis(ctx context.Context, central *redis, lasts time.Duration) (err error) {
	if r.RedisMost, err = central.most(ctx, incr, lasts); err != nil {
		return err
	}
	if r.RedisScript, err = central.most(ctx, limited, lasts); err != nil {
		return err
	}
	r.Benchmarked, _ = central.benchmarked(ctx, int(r.RedisMost.Rate()*lasts.Seconds()))
	r.RedisHalf, err = central.open(ctx, incr, r.RedisMost.Rate()/2, lasts)
	return err
}

// ofNodes measures a site that is new each time, so that no round finds what one before has
// left.
func (r *round) ofNodes(ctx context.Context, o options) (err error) {
	m, err := startMesh(ctx, o.session)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	if _, err = m.room.closed(ctx, m.lanes(), under, m.settles()); err != nil {
		return err
	}
	if r.Saturated, err = m.room.closed(ctx, m.lanes(), under, o.lasts); err != nil {
		return err
	}
	for _, part := range slower {
		if r.Most, err = m.at(ctx, part*r.Saturated.Rate(), o.lasts); err != nil {
			return err
		}
		if r.Most.sustained(o.lasts) {
			break
		}
	}
	if !r.Most.sustained(o.lasts) {
		return fmt.Errorf("the nodes sustain no rate; is the machine busy? At the lowest: %v", r.Most)
	}
	if r.Half, err = m.at(ctx, r.Most.Wanted/2, o.lasts); err != nil {
		return err
	}
	if r.RedisMost.Came > 0 {
		if r.AtMost, err = m.at(ctx, r.RedisMost.Rate(), o.lasts); err != nil {
			return err
		}
		if r.AtHalf, err = m.at(ctx, r.RedisHalf.Wanted, o.lasts); err != nil {
			return err
		}
	}
	var idle []*lane
	for range meshNodes {
		idle = append(idle, &lane{decider: nothing{}})
	}
	r.Load, err = newLoad().open(ctx, idle, r.Most.Wanted, o.lasts)
	return err
}

// at has visitors come at a rate until as many leave as come, and then measures.
func (m *mesh) at(ctx context.Context, perSecond float64, lasts time.Duration) (spell, error) {
	if s, err := m.room.open(ctx, m.lanes(), perSecond, m.settles()); err != nil {
		return s, err
	}
	return m.room.open(ctx, m.lanes(), perSecond, lasts)
}
