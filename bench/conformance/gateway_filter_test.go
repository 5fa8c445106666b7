//go:build unix

package conformance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	authzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// gatewayObject is what the example has of the API of Kubernetes: routes and services.
// Anything else in it is refused. Names and meanings are those of HTTPExternalAuthFilter,
// GRPCAuthConfig and HTTPAuthConfig in apis/v1/httproute_types.go of
// kubernetes-sigs/gateway-api, of version 1.4.
type gatewayObject struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		// of an HTTPRoute
		ParentRefs []backendRef `yaml:"parentRefs"`
		Hostnames  []string     `yaml:"hostnames"`
		Rules      []struct {
			Filters []struct {
				Type         string       `yaml:"type"`
				ExternalAuth externalAuth `yaml:"externalAuth"`
			} `yaml:"filters"`
			BackendRefs []backendRef `yaml:"backendRefs"`
		} `yaml:"rules"`

		// of a Service
		Selector map[string]string `yaml:"selector"`
		Ports    []struct {
			Name        string `yaml:"name"`
			Port        int    `yaml:"port"`
			AppProtocol string `yaml:"appProtocol"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type backendRef struct {
	Name string `yaml:"name"`
	Port int    `yaml:"port"`
}

type externalAuth struct {
	Protocol   string     `yaml:"protocol"`
	BackendRef backendRef `yaml:"backendRef"`
	GRPC       *struct {
		AllowedHeaders []string `yaml:"allowedHeaders"`
	} `yaml:"grpc"`
	HTTP *struct {
		Path                   string   `yaml:"path"`
		AllowedHeaders         []string `yaml:"allowedHeaders"`
		AllowedResponseHeaders []string `yaml:"allowedResponseHeaders"`
	} `yaml:"http"`
}

// readGateway returns the filter of a protocol, GRPC or HTTP, in an example.
func readGateway(path, protocol string) (*externalAuth, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found *externalAuth
	speaks := map[backendRef]string{} // by service
	for d := yaml.NewDecoder(file, yaml.Strict()); ; {
		var o gatewayObject
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, p := range o.Spec.Ports {
			speaks[backendRef{o.Metadata.Name, p.Port}] = p.AppProtocol
		}
		for _, rule := range o.Spec.Rules {
			if len(rule.Filters) != 1 || rule.Filters[0].Type != "ExternalAuth" || len(rule.BackendRefs) != 1 {
				return nil, fmt.Errorf("%s: the route %s is not one that this stand-in knows", path, o.Metadata.Name)
			}
			if a := rule.Filters[0].ExternalAuth; a.Protocol == protocol {
				found = &a
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s: no route with the protocol %s", path, protocol)
	}
	// "protocol must be 'GRPC' when grpc is set", and so on.
	if (found.GRPC != nil) != (protocol == "GRPC") || (found.HTTP != nil) != (protocol == "HTTP") {
		return nil, fmt.Errorf("%s: the filter for %s has not what belongs to it, or what does not", path, protocol)
	}
	if want := map[string]string{"GRPC": "kubernetes.io/h2c", "HTTP": "http"}[protocol]; speaks[found.BackendRef] != want {
		return nil, fmt.Errorf("%s: the service %v speaks %q, want %q", path, found.BackendRef, speaks[found.BackendRef], want)
	}
	return found, nil
}

// envoy returns the filter as implementations that are made of Envoy have it. onSuccess are
// headers of an answer over HTTP that visitors are handed who are let in: the API knows
// none, so they are the implementation's.
func (a *externalAuth) envoy(site, node string, onSuccess ...string) *envoyExample {
	e := &envoyExample{
		site: site, node: node,
		manager: &hcmv3.HttpConnectionManager{
			UseRemoteAddress: wrapperspb.Bool(true),
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
				VirtualHosts: []*routev3.VirtualHost{{RequestHeadersToAdd: []*corev3.HeaderValueOption{
					{Header: &corev3.HeaderValue{Key: "x-forwarded-for"}}, // as the other examples say it
				}}},
			}},
		},
		authz: &authzv3.ExtAuthz{}, // "If there is any problem …, this filter MUST fail closed."
	}
	timeout := durationpb.New(3 * time.Second) // of which the API says nothing
	if a.GRPC != nil {
		e.authz.Services = &authzv3.ExtAuthz_GrpcService{GrpcService: &corev3.GrpcService{Timeout: timeout}}
		return e
	}
	e.authz.AllowedHeaders = exactly(a.HTTP.AllowedHeaders)
	e.authz.Services = &authzv3.ExtAuthz_HttpService{HttpService: &authzv3.HttpService{
		PathPrefix: a.HTTP.Path,
		ServerUri:  &corev3.HttpUri{Timeout: timeout},
		AuthorizationResponse: &authzv3.AuthorizationResponse{
			AllowedUpstreamHeaders:        exactly(a.HTTP.AllowedResponseHeaders),
			AllowedClientHeadersOnSuccess: exactly(onSuccess),
		},
	}}
	return e
}

// exactly matches names, in any case.
func exactly(names []string) *matcherv3.ListStringMatcher {
	list := &matcherv3.ListStringMatcher{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		list.Patterns = append(list.Patterns, &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: strings.ToLower(name)},
		})
	}
	return list
}
