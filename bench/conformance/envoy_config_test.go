//go:build unix

package conformance

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3" // for the example
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/ropeline/ropeline/bench/rig"
)

// envoyExample is what the stand-in needs of an Envoy configuration.
type envoyExample struct {
	manager *hcmv3.HttpConnectionManager
	authz   *authzv3.ExtAuthz
	timeout time.Duration  // for a whole answer of the site; 0: none
	site    string         // address of the clusters that the routes lead to
	login   *regexp.Regexp // of the field Authorization, where a connection serves one request alone; nil: nowhere
	node    string         // address of the cluster that is asked
	checked bool           // whether a node that fails its health check is not asked
	ready   string         // path of that check
}

// readEnvoy reads a configuration into the very messages of Envoy's API, and checks it
// as Envoy does: unknown fields and values out of range are errors.
func readEnvoy(path string) (*envoyExample, error) {
	e := &envoyExample{manager: &hcmv3.HttpConnectionManager{}, authz: &authzv3.ExtAuthz{}}
	if err := rig.Try(func() { e.read(rig.Got(os.ReadFile(path))) }); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

func (e *envoyExample) read(text []byte) {
	var b bootstrapv3.Bootstrap
	rig.Must(protojson.Unmarshal(rig.Got(yaml.YAMLToJSON(text)), &b))
	rig.Must(b.ValidateAll())
	filter := b.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0]
	rig.Must(filter.GetTypedConfig().UnmarshalTo(e.manager))
	rig.Must(e.manager.ValidateAll())
	// The first filter of the chain is ours; the second one routes.
	rig.Must(e.manager.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(e.authz))
	rig.Must(e.authz.ValidateAll())
	rig.Must(e.clusters(b.GetStaticResources().GetClusters()))
}

// clusters looks up the addresses.
func (e *envoyExample) clusters(all []*clusterv3.Cluster) error {
	routes := e.manager.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()
	if err := e.logins(routes[0], all); err != nil {
		return err
	}
	route := routes[1].GetRoute()
	e.timeout = 15 * time.Second // [route] RouteAction.timeout
	if t := route.GetTimeout(); t != nil {
		e.timeout = t.AsDuration()
	}
	for _, h := range e.manager.GetRouteConfig().GetVirtualHosts()[0].GetRequestHeadersToAdd() {
		if h.GetHeader().GetValue() != "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%" || h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			return fmt.Errorf("request_headers_to_add has one that this stand-in does not know: %v", h)
		}
	}
	site := route.GetCluster()
	node := e.authz.GetGrpcService().GetEnvoyGrpc().GetClusterName()
	if h := e.authz.GetHttpService(); h != nil {
		node = h.GetServerUri().GetCluster()
	}
	for _, c := range all {
		a := c.GetLoadAssignment().GetEndpoints()[0].GetLbEndpoints()[0].GetEndpoint().GetAddress().GetSocketAddress()
		addr := net.JoinHostPort(a.GetAddress(), strconv.Itoa(int(a.GetPortValue())))
		switch c.GetName() {
		case site:
			e.site = addr
		case node:
			e.node = addr
			if err := e.healthCheck(c); err != nil {
				return err
			}
		}
	}
	if e.site == "" || e.node == "" {
		return fmt.Errorf("no cluster %q, or no cluster %q", site, node)
	}
	return nil
}

// logins takes over which requests have connections of their own. [route] RouteMatch.headers; [protocol]
// HttpProtocolOptions.max_requests_per_connection
func (e *envoyExample) logins(route *routev3.Route, all []*clusterv3.Cluster) error {
	headers := route.GetMatch().GetHeaders()
	if len(headers) != 1 || headers[0].GetName() != "authorization" {
		return fmt.Errorf("the first route has fields that this stand-in does not know: %v", headers)
	}
	e.login = regexp.MustCompile("^(?:" + headers[0].GetStringMatch().GetSafeRegex().GetRegex() + ")$")
	for _, c := range all {
		if c.GetName() != route.GetRoute().GetCluster() {
			continue
		}
		for _, o := range c.GetTypedExtensionProtocolOptions() {
			var h httpv3.HttpProtocolOptions
			if err := o.UnmarshalTo(&h); err != nil {
				return err
			}
			if err := h.ValidateAll(); err != nil {
				return err
			}
			if h.GetCommonHttpProtocolOptions().GetMaxRequestsPerConnection().GetValue() == 1 {
				return nil
			}
		}
	}
	return fmt.Errorf("connections of %v are kept", route)
}

// healthCheck takes over how nodes are checked. [health] HealthCheck, HttpHealthCheck;
// [cluster] CommonLbConfig.healthy_panic_threshold: below it, by default a half, all are
// asked whatever their checks say.
func (e *envoyExample) healthCheck(c *clusterv3.Cluster) error {
	checks := c.GetHealthChecks()
	if len(checks) == 0 {
		return nil
	}
	h := checks[0].GetHttpHealthCheck()
	if len(checks) > 1 || h == nil || len(h.GetExpectedStatuses())+len(h.GetRetriableStatuses()) > 0 {
		return fmt.Errorf("cluster %q has a health check that this stand-in does not know", c.GetName())
	}
	const h2 = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	if _, ok := c.GetTypedExtensionProtocolOptions()[h2]; ok != (h.GetCodecClientType() == typev3.CodecClientType_HTTP2) {
		return fmt.Errorf("cluster %q is checked by another version of HTTP than it is asked by", c.GetName())
	}
	p := c.GetCommonLbConfig().GetHealthyPanicThreshold()
	e.checked, e.ready = p != nil && p.GetValue() == 0, h.GetPath()
	return nil
}

func startEnvoy(_ context.Context, _ options, example, addr string) *proxy {
	return startStandIn(addr, rig.Got(readEnvoy(example)))
}
