//go:build linux

package tickets

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
	Waiting   spell // the same, where each visitor keeps a goroutine waiting
	Load      spell // decisions that do nothing, at the rate of Most
}

// under is how many visitors are under way where the nodes are to be busy: less than they
// let wait.
const under = meshNodes << 13

// slower are the parts of what saturates the nodes that are tried, until one is sustained.
var slower = []float64{0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2}

func measure(ctx context.Context, o options) (all results, err error) {
	all = results{Processors: runtime.GOMAXPROCS(0), Session: o.session.String(), Lasts: o.lasts.String()}
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
	t := trial{options: o}
	defer func() { err = errors.Join(err, t.end()) }()
	if r.Saturated, err = t.saturated(ctx); err != nil {
		return err
	}
	for _, part := range slower {
		if r.Most, err = t.at(ctx, part*r.Saturated.Rate()); err != nil {
			return err
		}
		if r.Most.sustained(o.lasts) {
			break
		}
	}
	if !r.Most.sustained(o.lasts) {
		return fmt.Errorf("the nodes sustain no rate; is the machine busy? At the lowest: %v", r.Most)
	}
	if r.Half, err = t.at(ctx, r.Most.Wanted/2); err != nil {
		return err
	}
	if r.RedisMost.Came > 0 {
		if r.AtMost, err = t.at(ctx, r.RedisMost.Rate()); err != nil {
			return err
		}
		if r.AtHalf, err = t.at(ctx, r.RedisHalf.Wanted); err != nil {
			return err
		}
		t.goroutines = true
		if r.Waiting, err = t.at(ctx, r.RedisMost.Rate()); err != nil {
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

// trial measures a site of nodes at one rate after the other. A site that had to tell
// visitors to wait is replaced by a new one: they are waiting there.
type trial struct {
	options
	m          *mesh // nil: the next one is to be started
	goroutines bool  // as mesh.lanes has it
}

// at has visitors come at a rate until as many leave as come, and then measures.
func (t *trial) at(ctx context.Context, perSecond float64) (spell, error) {
	return t.measure(ctx, func(part float64, lasts time.Duration) (spell, error) {
		return t.m.room.open(ctx, t.m.lanes(t.goroutines), part*perSecond, lasts)
	})
}

// saturated is at as high a rate as there can be.
func (t *trial) saturated(ctx context.Context) (spell, error) {
	return t.measure(ctx, func(part float64, lasts time.Duration) (spell, error) {
		return t.m.room.closed(ctx, t.m.lanes(t.goroutines), int64(part*under), lasts)
	})
}

// rises is how long the load takes at each part of what it is to be: what a node has on
// disk ahead of its visitors follows them.
const rises = 300 * time.Millisecond

func (t *trial) measure(ctx context.Context, come func(part float64, lasts time.Duration) (spell, error)) (s spell, err error) {
	if t.m == nil {
		if t.m, err = startMesh(ctx, t.session); err != nil {
			return s, err
		}
	}
	refused := int64(0)
	for _, warm := range []struct {
		part  float64
		lasts time.Duration
	}{{0.1, rises}, {0.3, rises}, {0.6, rises}, {1, t.m.settles()}} {
		if s, err = come(warm.part, warm.lasts); err != nil {
			return s, err
		}
		refused += s.Refused
	}
	s, err = come(1, t.lasts)
	if refused+s.Refused > 0 && err == nil {
		err = t.end()
	}
	return s, err
}

func (t *trial) end() error {
	m := t.m
	if t.m = nil; m == nil {
		return nil
	}
	return m.stop()
}
