package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/pflag"
)

// signalsConfig says what is told of single requests.
type signalsConfig struct {
	AccessLog  string // a file, or accesslog.Stdout; "": there is none
	OTLP       string // the address of a collector; "": that of the environment, if there is one
	OTLPSample float64
}

func (c *signalsConfig) bind(fs *pflag.FlagSet) {
	fs.StringVar(&c.AccessLog, "access-log", c.AccessLog, "`file` that gets a line of each request, in combined format; - is the standard output (default: none)")
	fs.Var(collectorValue{&c.OTLP}, "otlp-endpoint", "the collector that gets traces, by OpenTelemetry's protocol over HTTP, such as http://127.0.0.1:4318 (default: none, or what OTEL_EXPORTER_OTLP_ENDPOINT says)")
	fs.Var(floatValue{&c.OTLPSample, 0, 1}, "otlp-sample", "the part of requests that are traced, from 0 to 1, where no trusted proxy has decided")
}

// defaultSample keeps traces of a busy site from costing more than they tell.
const defaultSample = 0.01

// traces reports whether there is a collector.
func (c *signalsConfig) traces() bool {
	return c.OTLP != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// collectorValue is the address of a collector.
type collectorValue struct{ dst *string }

func (v collectorValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v collectorValue) Type() string { return "URL" }
func (v collectorValue) Set(s string) error {
	to, err := url.Parse(s)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.RawQuery != "" || to.Fragment != "" {
		return fmt.Errorf("%q is not allowed: http:// or https://, a host, perhaps a port and a path, such as http://127.0.0.1:4318", s)
	}
	*v.dst = s
	return nil
}

// checkSignals refuses what nothing would come of.
func (c *config) checkSignals() error {
	if c.Signals.AccessLog != "" && len(c.Proxy.Origins.Servers) == 0 {
		return c.file.at("access-log", errors.New("--access-log needs --origin: it is about requests that this node proxies; those that other proxies ask about are in the access logs of these"))
	}
	return nil
}
