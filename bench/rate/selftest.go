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
	// Run is what is sent. Address, Requests and Rate are filled in.
	Run Config
}

// Sustained is what the generator sustains on a machine. Its JSON form is one object with these keys.
type Sustained struct {
	// Sustains is the highest rate tried in the open model at which the generator had nothing to warn of,
	// and the server answered as fast as it was asked; 0 if there is none.
	Sustains float64 `json:"sustains"`
	// CPUMicros is the generator's own processor time for a request in the closed model. 0: not known.
	CPUMicros float64 `json:"cpu_us"`
	// Closed is how many it can be at most; Open are the rates that were tried, from above until one held.
	Closed Result   `json:"closed"`
	Open   []Result `json:"open"`
}

// parts of the highest rate of the closed model are tried in the open one, where the generator has to have
// some time of its CPU left for what is due to be in time.
var parts = [...]float64{0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5}

// leastTried is the least rate per second that is tried.
const leastTried = 1000

// Sustain finds out how much the generator sustains: against a server with nothing in it, first as fast as
// can be, and then at constant rates below that.
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
	if s.Closed, err = Run(ctx, cfg); err != nil {
		return s, err
	}
	if s.Closed.Answered == 0 {
		return s, errors.New("the server has answered nothing")
	}
	if s.Closed.Rate > 0 { // on a machine that stood still, answers came later
		s.CPUMicros = rounded(s.Closed.CPUShare/s.Closed.Rate*1e6, 1e3)
	}
	for _, part := range parts {
		cfg.Rate = max(rounded(part*s.Closed.Rate/1000, 1)*1000, leastTried)
		r, err := Run(ctx, cfg)
		if err != nil {
			return s, err
		}
		s.Open = append(s.Open, r)
		if r.Warning == "" && r.Failed() == 0 && r.Rate > 0.99*r.RateWanted {
			s.Sustains = r.RateWanted
			break
		}
	}
	return s, nil
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
