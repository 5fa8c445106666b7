package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

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
	if cfg.Signals.AccessLog != "" {
		if a.access, err = accesslog.New(accesslog.Config{Path: cfg.Signals.AccessLog, Logger: a.log}); err != nil {
			return err
		}
		a.after = append(a.after, a.access.Run)
	}
	if slices.Contains(stopSignals(), os.Signal(syscall.SIGHUP)) {
		return nil
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // from now on, or an early one would end the process
	a.after = append(a.after, func(ctx context.Context) error {
		defer signal.Stop(hup)
		a.reopen(ctx, hup)
		return nil
	})
	return nil
}

// watch has the front tell of requests.
func (a *assembly) watch(to *httpfront.Config) {
	to.Requests, to.Tracer = a.measures, a.tracer
	if a.access != nil { // not a nil *Log in an interface
		to.AccessLog = a.access
	}
}

// reopen has the access log open its file anew at each signal, as those who rotate files ask
// for it, until ctx ends. To a node without one the signal must do no harm.
func (a *assembly) reopen(ctx context.Context, hup <-chan os.Signal) {
	for {
		select {
		case <-hup:
			if a.access != nil {
				a.access.Reopen()
			} else {
				a.log.Info("SIGHUP: there is no access log to open again; secrets, tokens and certificates are read again by themselves, other settings at a start")
			}
		case <-ctx.Done():
			return
		}
	}
}
