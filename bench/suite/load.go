package suite

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/bench/rate"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/bench/rig/serve"
)

// shot is what is to be sent.
type shot struct {
	address string
	heads   [][]byte // in turn
	turn    rate.Turn
	conns   int
	rate    float64 // requests a second that are due; 0: as many as can be
	lasts   time.Duration
	code    int // that answers have to have
}

// answers is what came of it.
type answers struct {
	rate           float64
	p50, p99, p999 time.Duration
	answered       int64
	bad            int64 // another code
	failed         int64 // no answer
	generator      float64
	late           time.Duration // p99, by the generator's own fault; 0 where nothing was due at a time
	sender         time.Duration // processor time of the sender for each request; 0: it is no part of what is measured
	warning        string
}

// errUnanswered is what comes of a server that got no processor for as long as it was asked.
var errUnanswered = errors.New("nothing was answered")

// send sends with the generator of bench/rate, from the core of the load.
func send(ctx context.Context, s shot) (a answers, err error) {
	cpu := rig.OfLoad.Number()
	r, err := rate.Run(ctx, rate.Config{Address: s.address, Requests: s.heads, Turn: s.turn, Conns: s.conns, Rate: s.rate, Lasts: s.lasts, CPU: &cpu})
	if err != nil {
		return a, err
	}
	if r.Answered == 0 {
		return a, fmt.Errorf("%w: %s", errUnanswered, r.LastError)
	}
	micros := func(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }
	return answers{
		rate: r.Rate, p50: micros(r.Latency.P50), p99: micros(r.Latency.P99), p999: micros(r.Latency.P999),
		answered: r.Answered, bad: r.Answered - r.Status[s.code], failed: r.Failed(), generator: r.CPUShare, late: micros(r.Late.P99), warning: r.Warning,
	}, nil
}

// SelfTest is what the generator sustained against a server with nothing in it, before the run.
type SelfTest struct {
	Sustains float64 `json:"sustains"` // requests a second in the open model, held in time as rate.Result.Behind has it; 0: none, and Why says why
	Why      string  `json:"why,omitempty"`
	Closed   float64 `json:"closed"` // requests a second in the closed model
	CPU      float64 `json:"cpu_us"` // of the generator for each request
}

// testItself finds out what the generator sustains here.
func testItself(ctx context.Context, c Config) (SelfTest, error) {
	if c.SelfTest == 0 {
		return SelfTest{}, nil
	}
	cpu := rig.OfLoad.Number()
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return SelfTest{}, err
	}
	listen, err := rig.Free()
	if err != nil {
		return SelfTest{}, err
	}
	s, err := rate.Sustain(ctx, rate.SelfTest{
		Server: []string{taskset, "-c", strconv.Itoa(rig.OfServer.Number()), c.Self, "serve", string(serve.Bare), "--listen", listen, "--body", "6"},
		Run:    rate.Config{Warm: c.SelfTest / 5, Lasts: c.SelfTest, Drain: c.SelfTest, Conns: usualConns, CPU: &cpu},
	})
	if err != nil {
		return SelfTest{}, errors.Join(errors.New("the generator does not pass its self-test"), err)
	}
	return SelfTest{Sustains: s.Sustains, Why: s.Why, Closed: rounded(s.Closed.Rate, 1), CPU: s.CPUMicros}, nil
}
