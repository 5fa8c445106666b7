package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront/server"
)

// serveNode runs a node in this process, as `ropeline run` would with these arguments, until the
// test ends, and returns once it is ready.
func serveNode(t *testing.T, name, site string, args ...string) *running {
	t.Helper()
	p := &running{t: t, name: name, site: site, args: args, served: true, http: freeAddress(t), admin: freeAddress(t)}
	p.start()
	p.endWithTest()
	s := p.runner.(*inProcess)
	select {
	case <-s.Server.Ready():
	case <-s.ended:
		t.Fatalf("%s ended at its start: %v", name, s.err)
	case <-time.After(20 * time.Second):
		t.Fatalf("%s is not ready: %+v", name, s.Status())
	}
	return p
}

// inProcess is a node in this process.
type inProcess struct {
	*server.Server
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned
	err    error         // what it returned; set before
	log    lockedBuffer
}

// serve makes the node and has it run.
func (p *running) serve(args []string) {
	p.t.Helper()
	cfg := defaultConfig()
	var file string
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.StringVar(&file, "config", "", "")
	nodeFlags(flags, &cfg)
	roomFlags(flags, &cfg.Room)
	if err := flags.Parse(args); err != nil {
		p.t.Fatal(err)
	}
	s := &inProcess{ended: make(chan struct{})}
	to, err := cfg.prepare(file, flags, &s.log)
	if p.ahead != 0 {
		to.Seams.Clock = func() time.Time { return time.Now().Add(p.ahead) }
	}
	if err == nil {
		s.Server, err = server.New(to)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.runner = s
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(p.t.Context()))
	go func() {
		s.err = s.Run(ctx)
		close(s.ended)
	}()
}

func (s *inProcess) Ended() <-chan struct{} { return s.ended }

func (s *inProcess) Running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *inProcess) Log() string { return s.log.String() }

// Code returns the exit code that the command would have.
func (s *inProcess) Code() int {
	if s.err == nil {
		return 0
	}
	return exitCode(s.err)
}

// StopWithin has the node end in order.
func (s *inProcess) StopWithin(limit time.Duration) error {
	s.cancel()
	select {
	case <-s.ended:
		return s.err
	case <-time.After(limit):
		return fmt.Errorf("the node has not ended within %v", limit)
	}
}

var errNoProcess = errors.New("the node has no process of its own; use startNode")

// Kill refuses: it would end the test.
func (s *inProcess) Kill() error { return errNoProcess }

// Signal refuses: the test would get it.
func (s *inProcess) Signal(syscall.Signal) error { return errNoProcess }
