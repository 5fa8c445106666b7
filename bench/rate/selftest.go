package rate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// SelfTest says how [Sustain] is done.
type SelfTest struct {
	// Server is the command, with its arguments, that starts a server with as little in it as can be. The
	// first line that it prints ends with the address where it listens. It is killed in the end.
	Server []string
	// Run is what is sent in each try, of which there are some fifty. Address, Requests and Rate are filled in.
	Run Config
}

// Sustained is what the generator sustains on a machine. Its JSON form is one object with these keys.
type Sustained struct {
	// Sustains is the highest rate found in the open model that was held in time, as [Result.Behind] has it;
	// one a twentieth above it was not. 0 if there is none: then Why says what was seen instead.
	Sustains float64 `json:"sustains"`
	// Why says why no rate was held, by the lowest one that was tried. Empty: one was.
	Why string `json:"why,omitempty"`
	// CPUMicros is the generator's own processor time for a request in the closed model. 0: not known.
	CPUMicros float64 `json:"cpu_us"`
	// CPUWaited is the part of the time of all tries at constant rates in which other programs had the
	// generator's CPU. Where that is much, a quiet machine may have a higher figure.
	CPUWaited float64 `json:"cpu_waited"`
	// Closed is how many it can be at most, the best of a few tries; Open are all tries at constant rates, in
	// their order. A rate may be tried several times, and holds if one of them does.
	Closed Result   `json:"closed"`
	Open   []Result `json:"open"`
}

const (
	leastTried  = 1000 // the least rate per second that is tried
	closedTries = 6    // of the closed model
	mostStarved = 30   // of them, where none was answered: the server may get no processor for the length of a try
	fine        = 1.05
)

// searchBelow returns the search of the self-test, by what the closed model has found. It is no bound:
// it may have been disturbed as well.
func searchBelow(closed float64) search {
	return search{from: closed / 2, least: leastTried, most: mostRate, fine: fine, tries: 6, rates: 40}
}

// Sustain finds out how much the generator sustains: against a server with nothing in it, first as fast as
// can be, and then at constant rates, by halving the distance between one that is held and one that is not.
func Sustain(ctx context.Context, t SelfTest) (Sustained, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	address, ended, err := startServer(ctx, t.Server)
	if err != nil {
		return Sustained{}, err
	}
	defer func() { stop(); <-ended }()
	cfg := t.Run
	cfg.Address, cfg.Rate = address, 0
	cfg.Requests = [][]byte{[]byte("GET / HTTP/1.1\r\nHost: " + address + "\r\n\r\n")}
	var s Sustained
	for n := 0; n < closedTries || s.Closed.Answered == 0 && n < mostStarved; n++ {
		r, err := Run(ctx, cfg)
		if err != nil {
			return s, err
		}
		if s.Closed.Answered == 0 || r.Rate > s.Closed.Rate {
			s.Closed = r
		}
	}
	if s.Closed.Answered == 0 {
		return s, errors.New("the server has answered nothing")
	}
	if s.Closed.Rate > 0 { // on a machine that stood still, answers came later
		s.CPUMicros = rounded(s.Closed.CPUShare/s.Closed.Rate*1e6, 1e3)
	}
	s.Sustains, err = searchBelow(s.Closed.Rate).run(func(wanted float64) (bool, error) {
		cfg.Rate = wanted
		r, err := Run(ctx, cfg)
		if err != nil {
			return false, err
		}
		s.Open = append(s.Open, r)
		return r.Behind() == "", nil
	})
	for _, r := range s.Open {
		s.CPUWaited += r.CPUWaited / float64(len(s.Open))
	}
	s.CPUWaited, s.Why = rounded(s.CPUWaited, 1e4), s.why()
	return s, err
}

// why says why no rate was held; empty: one was.
func (s *Sustained) why() string {
	if s.Sustains > 0 || len(s.Open) == 0 {
		return ""
	}
	best := s.Open[0]
	for _, r := range s.Open {
		if r.RateWanted < best.RateWanted || r.RateWanted == best.RateWanted && r.Late.P99 < best.Late.P99 {
			best = r
		}
	}
	return fmt.Sprintf("at %.0f/s, the lowest that was tried, %s (late: p99 %.0f µs, longest %.0f µs); the generator waited for its CPU %.0f %% of the time",
		best.RateWanted, best.Behind(), best.Late.P99, best.Late.Max, 100*best.CPUWaited)
}

// startServer starts the command until ctx ends, and returns where it listens and what is closed when it
// has ended.
func startServer(ctx context.Context, command []string) (address string, ended <-chan struct{}, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the server: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}()
	if words := strings.Fields(line); err == nil && len(words) > 0 {
		return words[len(words)-1], done, nil
	}
	<-done
	return "", nil, fmt.Errorf("the server did not say where it listens: %q %s", line, strings.TrimSpace(said.String()))
}
