package server

import (
	"context"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/observe/accesslog"
	"github.com/ropeline/ropeline/httpfront/observe/tracing"
)

// observe makes the metrics, the access log and the traces.
func (s *Server) observe() (err error) {
	cfg := &s.cfg.Signals
	if s.measures, err = newMeasures(s); err != nil {
		return err
	}
	if cfg.OTLP != "" || cfg.OTLPFromEnv {
		s.tracer, err = tracing.New(context.Background(), tracing.Config{
			Endpoint: cfg.OTLP, Sample: cfg.OTLPSample,
			Node: s.cfg.Name, Site: s.cfg.Site, Version: s.cfg.Version, Logger: s.log,
		})
		if err != nil {
			return err
		}
		s.after = append(s.after, s.tracer.Run)
	}
	if cfg.AccessLog != "" {
		if s.access, err = accesslog.New(cfg.AccessLog, s.log); err != nil {
			return err
		}
		s.after = append(s.after, endsSoon(s.access.Run, func() {
			s.log.Error("the access log takes no lines: what was left for it is lost", "file", cfg.AccessLog)
		}))
	}
	return nil
}

// watch has the front tell of requests.
func (s *Server) watch(to *httpfront.Config) {
	to.Requests, to.Tracer = s.measures, s.tracer
	if s.access != nil { // not a nil *Log in an interface
		to.AccessLog = s.access
	}
}
