package main

import (
	"fmt"

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
	fs.Var(prefixesValue{&c.front.ProxyProtocol}, "proxy-protocol", "balancers in front of us whose connections begin with a PROXY header (version 1 or 2)")
	fs.Var(fieldValue{&c.front.ClientIPHeader}, "client-ip-header", "the header in which trusted proxies name the visitor: X-Forwarded-For, Forwarded, or one that holds a single address, such as X-Real-IP")
}

// fieldValue is the name of a header field.
type fieldValue struct{ dst *string }

func (v fieldValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}
func (v fieldValue) Type() string { return "header" }
func (v fieldValue) Set(s string) error {
	if !httpfront.IsFieldName(s) {
		return fmt.Errorf("%q is not allowed: the name of a header field, such as X-Forwarded-For", s)
	}
	*v.dst = s
	return nil
}
