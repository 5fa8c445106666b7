package main

import (
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/httpfront"
)

// edgeConfig is what the operator says about how visitors connect, limits and
// timeouts aside.
type edgeConfig struct {
	front httpfront.Edge
}

func defaultEdge() edgeConfig {
	return edgeConfig{front: httpfront.Edge{ClientIPHeader: "X-Forwarded-For"}}
}

func (c *edgeConfig) bind(fs *pflag.FlagSet) {
	fs.Var(prefixes.At(&c.front.ProxyProtocol), "proxy-protocol", "balancers in front of us whose connections begin with a PROXY header (version 1 or 2)")
	fs.Var(headerField.At(&c.front.ClientIPHeader), "client-ip-header", "the header in which trusted proxies name the visitor: X-Forwarded-For, Forwarded, or one that holds a single address, such as X-Real-IP")
}
