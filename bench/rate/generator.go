package rate

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
)

// Entry is the measurement of the generator itself.
func Entry() measurement.Entry {
	return measurement.Entry{
		Name: "generator", Page: "benchmarks.md",
		Question: "What does the load generator sustain, which measures the others?",
		Method: "A server with nothing in it, on a core of its own, is asked first as fast as can be (closed model), the best of six tries; then at constant rates (open model), of parts of that from twice as much downwards " +
			"until one is held in time. Held is a rate if in one of six short tries every request was answered, 99 of 100 were sent within 1 ms of when they were due or a connection was free, " +
			"and half of the answers came within 1 ms of when they were due.",
		Units: []measurement.Unit{
			{Name: "req/s", Meaning: "whole answers a second", Better: "higher"},
			{Name: "cpu-sec/req", Meaning: "processor time of the generator for each request", Better: "lower"},
			{Name: "waited-%", Meaning: "part of the time in which other programs had the generator's core; a quiet machine may have better figures", Better: "lower"},
		},
		Needs: []string{"taskset"}, Cores: []int{rig.OfLoad.Number()}, Quick: []string{"rounds=1", "try=50ms"},
		New: func(o *pflag.FlagSet) func(context.Context, *measurement.Run) error {
			rounds := o.Int("rounds", 6, "how often; an interval takes six")
			try := o.Duration("try", 100*time.Millisecond, "how long each try takes, of which there are some fifty; short ones find a moment in which no other program has the core")
			return func(ctx context.Context, r *measurement.Run) error {
				if *rounds < 1 || *try <= 0 {
					return errors.New("rounds are at least 1, and a try is longer than nothing")
				}
				return measureItself(ctx, Config{Warm: *try / 4, Lasts: *try, Drain: *try}, *rounds, r)
			}
		},
	}
}

func measureItself(ctx context.Context, cfg Config, rounds int, r *measurement.Run) (err error) {
	if cfg.Address, err = rig.Free(); err != nil {
		return err
	}
	server, err := rig.Start(ctx, rig.Command{Core: rig.OfServer, Name: r.Self, Args: []string{"serve", "bare", "--listen", cfg.Address}})
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := server.AwaitListener(ctx, cfg.Address); err != nil {
		return err
	}
	cfg.Requests = [][]byte{[]byte("GET / HTTP/1.1\r\nHost: " + cfg.Address + "\r\n\r\n")}
	for range rounds {
		s, err := sustain(ctx, cfg)
		if err != nil {
			return err
		}
		r.Tell("%.0f/s at most; %.0f/s held", s.closed.Rate, s.held)
		r.Add("model=closed", measurement.Values{"req/s": s.closed.Rate, "cpu-sec/req": s.closed.CPUShare / s.closed.Rate, "waited-%": 100 * s.closed.CPUWaited})
		r.Add("model=open", measurement.Values{"req/s": s.held, "waited-%": 100 * s.waited})
		if s.held == 0 {
			last := s.tries[len(s.tries)-1]
			r.Note("No rate was held in time: at %.0f/s, the lowest that was tried, %s (late: p99 %.0f µs, longest %.0f µs); the generator waited for its CPU %.0f %% of the time.",
				last.RateWanted, last.Behind(), last.Late.P99, last.Late.Max, 100*last.CPUWaited)
		}
	}
	return nil
}

// sustained is what the generator sustains.
type sustained struct {
	held   float64  // the highest rate tried that is held in time, as [Result.Behind] has it; 0: none
	waited float64  // part of the time of all tries at constant rates in which other programs had its core
	closed Result   // the best try of the closed model
	tries  []Result // at constant rates, in their order
}

const (
	closedTries = 6  // of the closed model
	mostStarved = 30 // of them, where none was answered: the server may get no processor for the length of a try
	openTries   = 6  // of one rate, which holds if one of them does: other programs can make a try fail that would hold, and hardly the reverse
)

// parts of the highest rate of the closed model are tried, which is no bound: it may have been disturbed as well.
var parts = []float64{2, 1.7, 1.5, 1.3, 1.2, 1.1, 1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05}

// sustain finds out how much the generator sustains against the server of cfg.
func sustain(ctx context.Context, cfg Config) (s sustained, err error) {
	for n := 0; n < closedTries || s.closed.Rate == 0 && n < mostStarved; n++ {
		r, err := Run(ctx, cfg)
		if err != nil {
			return s, err
		}
		if r.Rate >= s.closed.Rate {
			s.closed = r
		}
	}
	if s.closed.Rate == 0 {
		return s, errors.New("the server has answered nothing in time")
	}
	for try := 0; s.held == 0 && try < openTries*len(parts); try++ {
		cfg.Rate = parts[try/openTries] * s.closed.Rate
		r, err := Run(ctx, cfg)
		if err != nil {
			return s, err
		}
		if s.tries = append(s.tries, r); r.Behind() == "" {
			s.held = cfg.Rate
		}
	}
	for _, r := range s.tries {
		s.waited += r.CPUWaited / float64(len(s.tries))
	}
	return s, nil
}
