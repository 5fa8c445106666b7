package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/settings"
	"github.com/ropeline/ropeline/transport"
)

// Run serves until ctx ends, an operator has the node stop, or a part of it fails. Then it
// takes visitors for Config.Proxy.DrainDelay, lets requests under way end, leaves if it is to, and
// returns nil, or what has failed. It is to be called once.
func (s *Server) Run(ctx context.Context) error {
	if s.life.began.Swap(true) {
		return errors.New("server: run: it has run before, or was closed; make another one with New")
	}
	defer context.AfterFunc(ctx, s.life.stop)()
	cfg := &s.cfg
	s.log.Info("starting", cfg.serves(s.Addresses()), "admin", s.Addresses().Admin,
		"rooms", s.rooms, "data_dir", cfg.DataDir, "version", cfg.Version)
	left, err := s.run(context.WithoutCancel(ctx))
	s.visitors.Close()
	s.ports.close()
	if left && cfg.Mesh.CertFile == "" {
		err = errors.Join(err, s.dir.Abandon())
	}
	s.log.Info("stopped")
	return errors.Join(refuseCopied(s.dir, err), s.dir.Close())
}

// refuseCopied has no start use the directory again if this one ended because others
// know better.
func refuseCopied(dir *node.DataDir, err error) error {
	if errors.Is(err, transport.ErrSuperseded) {
		err = fmt.Errorf("%w: %w", err, node.ErrCopied)
		err = errors.Join(err, dir.Refuse(err))
	}
	return err
}

// run runs the parts. The front ends first, with what runs beside it, so that its visitors'
// last notes still reach the mesh; then the operators' listener, which tells of it meanwhile; the
// mesh last. It reports whether the node has left for good.
func (s *Server) run(ctx context.Context) (left bool, err error) {
	broken := newBreakage()
	inner, watch, outer := newShift(ctx, broken), newShift(ctx, broken), newShift(ctx, broken)
	if s.mesh != nil {
		links := node.Mesh(s.mesh)
		if between := s.cfg.Seams.Links; between != nil {
			links = between(links)
		}
		inner.add(s.mesh.Run, func(ctx context.Context) error { return s.node.Run(ctx, links) })
	} else {
		inner.add(func(ctx context.Context) error { return s.node.Run(ctx, nil) })
	}
	watch.add(s.admin.run)
	watch.add(s.after...)
	watch.add(s.finishLeaving)
	if s.ports.visitors != nil {
		outer.add(s.front.Run)
	}
	if s.verdicts != nil {
		outer.add(s.verdicts.Run)
	}
	outer.add(s.beside...)
	s.awaitStop(broken.happened)
	outer.end()
	watch.end()
	left = (s.cfg.Rights.OnStop == StopLeaves || s.life.leaves.Load()) && (s.node.Ready() == nil || s.node.GoesOnLeaving()) && leave(inner.ctx, s.node, s.log)
	inner.end()
	return left, errors.Join(broken.errs...)
}

// awaitStop returns when the node shall stop taking visitors: a while after it was told to stop,
// or when a part has failed, which is when broken is closed.
func (s *Server) awaitStop(broken <-chan struct{}) {
	delay := s.cfg.Proxy.DrainDelay
	select {
	case <-s.life.stopping:
	case <-broken:
		delay = 0
		s.log.Error("a part of the node has failed, so that it has to stop")
		s.life.stop()
	}
	s.front.Stopping()
	if delay > 0 {
		s.log.Info("stopping: /readyz says so, and visitors are served until drain-delay has passed", "drain_delay", settings.Span(delay))
		select {
		case <-time.After(delay):
		case <-broken:
		}
	}
	s.log.Info("stopping: requests under way may end")
}

// readyLook is how often it is looked whether the node is ready.
const readyLook = 50 * time.Millisecond

// awaitReady says so when the node takes visitors.
func (s *Server) awaitReady(ctx context.Context) error {
	lame := s.lame()
	if repeat(ctx, readyLook, func() bool { return lame.ready() == nil }) {
		close(s.life.ready)
	}
	return nil
}

// repeat calls look at once, and then every so often, until that is done, which it reports, or ctx ends.
func repeat(ctx context.Context, every time.Duration, look func() (done bool)) bool {
	for ticker := time.Tick(every); !look(); {
		select {
		case <-ctx.Done():
			return false
		case <-ticker:
		}
	}
	return true
}

// finishLeaving ends the server once its node has left, if it was leaving when it stopped before.
func (s *Server) finishLeaving(ctx context.Context) error {
	leaving := false
	repeat(ctx, readyLook, func() bool {
		serves := s.node.Ready() == nil
		leaving = !serves && s.node.GoesOnLeaving()
		return serves || leaving
	})
	if leaving {
		s.log.Warn("this node was leaving when it stopped, and goes on: it takes no visitors, and ends once another one has all that it had")
		if s.node.Leave(ctx) == nil {
			s.life.drain(true)
		}
	}
	return nil
}

// shift is parts that run until the same moment.
type shift struct {
	ctx    context.Context
	stop   context.CancelFunc
	parts  sync.WaitGroup
	broken *breakage
}

func newShift(ctx context.Context, broken *breakage) *shift {
	s := &shift{broken: broken}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// add runs parts until the end.
func (s *shift) add(parts ...part) {
	for _, run := range parts {
		s.parts.Go(func() {
			if err := run(s.ctx); err != nil {
				s.broken.add(err)
			}
		})
	}
}

// end has the parts end, and waits for them.
func (s *shift) end() {
	s.stop()
	s.parts.Wait()
}

// filesEndWithin is how long the end waits for a part that reads or writes files.
const filesEndWithin = 2 * time.Second

// endsSoon returns run, a part that reads or writes files, for its end not to be waited for: one on a path that hangs, or
// a pipe that nobody reads, takes as long as it does, while others wait for the rights of a node that leaves. late is
// called then.
func endsSoon(run part, late func()) part {
	return func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(filesEndWithin):
			late()
			return nil
		}
	}
}

// looksAt is endsSoon of a part that looks at what.
func looksAt(what string, run part, log *slog.Logger) part {
	return endsSoon(run, func() { log.Warn("a file does not answer, and the node ends without it", "file", what) })
}

// breakage is what has failed.
type breakage struct {
	happened chan struct{} // closed by the first
	mu       sync.Mutex    // guards the following
	errs     []error
}

func newBreakage() *breakage { return &breakage{happened: make(chan struct{})} }

func (b *breakage) add(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errs) == 0 {
		close(b.happened)
	}
	b.errs = append(b.errs, err)
}
