package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/accesslog"
	"github.com/ropeline/ropeline/httpfront/tracing"
)

// observe makes what is told of single requests.
func (a *assembly) observe(ctx context.Context, cfg config) (err error) {
	if a.measures, err = newMeasures(a); err != nil {
		return err
	}
	if cfg.Signals.traces() {
		a.tracer, err = tracing.New(ctx, tracing.Config{Endpoint: cfg.Signals.OTLP, Sample: cfg.Signals.OTLPSample,
			Node: cfg.Name, Site: cfg.Site, Version: versionText(), Logger: a.log})
		if err != nil {
			return err
		}
		a.after = append(a.after, a.tracer.Run)
	}
	if cfg.Signals.AccessLog == "" {
		if !term.IsTerminal(int(os.Stderr.Fd())) { // which is closed by that signal, and the node with it
			a.onHangup(func() { a.log.Warn("SIGHUP changes nothing: there is no access log to open anew") })
		}
		return nil
	}
	if a.access, err = accesslog.New(accesslog.Config{Path: cfg.Signals.AccessLog, Logger: a.log}); err != nil {
		return err
	}
	a.after = append(a.after, a.access.Run)
	a.onHangup(a.access.Reopen)
	return nil
}

// onHangup has do be done at each SIGHUP, by which those who rotate files ask for new ones, and
// which otherwise ends a process at once. It holds from now on: an early one would end it.
func (a *assembly) onHangup(do func()) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	a.after = append(a.after, func(ctx context.Context) error {
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				do()
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// watch has the front tell of requests.
func (a *assembly) watch(to *httpfront.Config) {
	to.Requests, to.Tracer = a.measures, a.tracer
	if a.access != nil { // not a nil *Log in an interface
		to.AccessLog = a.access
	}
}
