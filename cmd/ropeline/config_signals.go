package main

import (
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/settings"
)

// signalsConfig says what is told of single requests.
type signalsConfig struct {
	AccessLog  string // a file, or accesslog.Stdout; "": there is none
	OTLP       string // the address of a collector; "": that of the environment, if there is one
	OTLPSample float64
}

func (c *signalsConfig) bind(fs *pflag.FlagSet) {
	fs.StringVar(&c.AccessLog, "access-log", c.AccessLog, "`file` that gets a line of each request, in combined format; - is the standard output (default: none)")
	fs.Var(collector.At(&c.OTLP), "otlp-endpoint", "the collector that gets traces, by OpenTelemetry's protocol over HTTP, such as http://127.0.0.1:4318 (default: none, or what OTEL_EXPORTER_OTLP_ENDPOINT says)")
	fs.Var(settings.Float(0, 1).At(&c.OTLPSample), "otlp-sample", "the part of requests that are traced, from 0 to 1, where no trusted proxy has decided")
}

// defaultSample keeps traces of a busy site from costing more than they tell.
const defaultSample = 0.01

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
