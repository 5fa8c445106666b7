package main

import (
	"errors"
	"os"
)

// signalsConfig says what is told of single requests.
type signalsConfig struct {
	AccessLog  string // a file, or accesslog.Stdout; "": there is none
	OTLP       string // the address of a collector; "": that of the environment, if there is one
	OTLPSample float64
}

// traces reports whether there is a collector.
func (c *signalsConfig) traces() bool {
	return c.OTLP != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// checkSignals refuses what nothing would come of.
func (c *config) checkSignals() error {
	if c.Signals.AccessLog != "" && len(c.Proxy.Origins.Servers) == 0 {
		return c.file.at("access-log", errors.New("--access-log needs --origin: it is about requests that this node proxies; those that other proxies ask about are in the access logs of these"))
	}
	return nil
}
