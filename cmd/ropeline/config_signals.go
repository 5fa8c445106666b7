package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// signalsConfig says what is told of single requests.
type signalsConfig struct {
	AccessLog string // a file, or accesslog.Stdout; "": there is none
}

func (c *signalsConfig) bind(fs *pflag.FlagSet) {
	fs.StringVar(&c.AccessLog, "access-log", c.AccessLog, "`file` that gets a line of each request, in combined format; - is the standard output (default: none)")
}

// checkSignals refuses what nothing would come of.
func (c *config) checkSignals() error {
	if c.Signals.AccessLog != "" && len(c.Proxy.Origins.Servers) == 0 {
		return c.file.at("access-log", errors.New("--access-log needs --origin: it is about requests that this node proxies; those that other proxies ask about are in the access logs of these"))
	}
	return nil
}
