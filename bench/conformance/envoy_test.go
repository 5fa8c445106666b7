//go:build unix

package conformance

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ropeline/ropeline/bench/rig"
)

// extAuthz stands in for Envoy's ext_authz filter. Its rules are those of
//
//	[filter]  envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto, of version 1.40
//	[service] envoy/service/auth/v3/external_auth.proto, of version 1.40
//	[route]   envoy/config/route/v3/route_components.proto, of version 1.40
//	[protocol] envoy/config/core/v3/protocol.proto, of version 1.40
//	[manager] envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto, of version 1.40
//	[health]  envoy/config/core/v3/health_check.proto, of version 1.40
//	[cluster] envoy/config/cluster/v3/cluster.proto, of version 1.40
//	[http]    source/extensions/filters/common/ext_authz/ext_authz_http_impl.cc
//	[grpc]    source/extensions/filters/common/ext_authz/ext_authz_grpc_impl.cc
//
// Questions over gRPC are asked by a gRPC client.
type extAuthz struct {
	*envoyExample
	client  *http.Client
	conn    *grpc.ClientConn
	checker *http.Client // of the node's health
}

// startStandIn serves as Envoy does with an example, until it is stopped.
func startStandIn(addr string, e *envoyExample) *proxy {
	f := &extAuthz{
		envoyExample: e, checker: askingClient(time.Second),
		client: askingClient(e.authz.GetHttpService().GetServerUri().GetTimeout().AsDuration()),
		conn:   rig.Got(grpc.NewClient("passthrough:///"+e.node, grpc.WithTransportCredentials(insecure.NewCredentials()))),
	}
	_, stop, err := rig.Serve(&http.Server{Handler: f}, addr)
	rig.Must(err)
	return &proxy{addr, func() {
		stop()
		f.checker.CloseIdleConnections()
		f.client.CloseIdleConnections()
		_ = f.conn.Close() // nothing is under way
	}}
}

// verdict is what comes of a check. The zero value has the request go on.
type verdict struct {
	status int // of an answer instead of the site's; 0: there is none
	header http.Header
	body   string
	change func(http.Header) // what is done with the fields of the site's answer; nil: nothing
}

func (f *extAuthz) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := f.check(r)
	if v.status != 0 {
		maps.Copy(w.Header(), v.header)
		w.WriteHeader(v.status)
		io.WriteString(w, v.body)
		return
	}
	if f.timeout > 0 && r.Header.Get("Upgrade") == "" { // how long a whole answer of the site may take; [route]
		ctx, cancel := context.WithTimeout(r.Context(), f.timeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	forward := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: f.site})
			p.Out.Host = p.In.Host
			p.Out.Close = f.login != nil && f.login.MatchString(p.In.Header.Get("Authorization"))
			for name, values := range p.In.Header {
				if strings.HasPrefix(name, "X-Forwarded-") { // the library leaves them out
					p.Out.Header[name] = values
				}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if v.change != nil {
				v.change(resp.Header)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	forward.ServeHTTP(w, r)
}

func visitorAddress(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// errNoVerdict is an answer that Envoy takes for an outage.
var errNoVerdict = errors.New("no verdict")

func (f *extAuthz) check(r *http.Request) (v verdict) {
	if f.tooLarge(r) {
		return verdict{status: http.StatusRequestHeaderFieldsTooLarge}
	}
	if f.manager.GetCommonHttpProtocolOptions().GetHeadersWithUnderscoresAction() == corev3.HttpProtocolOptions_DROP_HEADER {
		for name := range r.Header {
			if strings.Contains(name, "_") {
				delete(r.Header, name)
			}
		}
	}
	if u := r.Header.Get("Upgrade"); u != "" && !f.upgrades(u) {
		// See "upgrades" in Envoy's architecture overview, and [manager] upgrade_configs.
		return verdict{status: http.StatusForbidden}
	}
	f.forwarded(r)
	ask := f.askGRPC
	if f.authz.GetHttpService() != nil {
		ask = f.askHTTP
	}
	err := rig.Try(func() {
		f.healthy(r.Context())
		v = ask(r)
	})
	if err != nil && !f.authz.GetFailureModeAllow() { // [filter] failure_mode_allow
		v.status = cmp.Or(int(f.authz.GetStatusOnError().GetCode()), http.StatusForbidden) // [filter] status_on_error
	}
	if v.status == 0 {
		f.tell(r)
	}
	return v
}

// letPass makes a request what the site is to get by a verdict: without some fields, and with others instead of the
// visitor's.
func letPass(r *http.Request, without []string, with http.Header) {
	for _, name := range without {
		r.Header.Del(name)
	}
	replace(r.Header, with)
}

// replace sets fields instead of those that there are.
func replace(fields, with http.Header) {
	for name, values := range with {
		fields.Set(name, values[len(values)-1])
	}
}

// adds returns what adds fields to those of the site's answer.
func adds(fields http.Header) func(http.Header) {
	return func(reply http.Header) {
		for name, values := range fields {
			reply[name] = append(reply[name], values...)
		}
	}
}

// tooLarge reports whether the connection manager refuses a request before any filter sees
// it. [manager] max_request_headers_kb, and max_headers_count of
// envoy/config/core/v3/protocol.proto
func (f *extAuthz) tooLarge(r *http.Request) bool {
	size, count := len(r.Method)+len(r.RequestURI)+len(r.Host), 4 // Envoy keeps these as fields
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
			count++
		}
	}
	limit, most := 60, 100
	if l := f.manager.GetMaxRequestHeadersKb(); l != nil {
		limit = int(l.GetValue())
	}
	if l := f.manager.GetCommonHttpProtocolOptions().GetMaxHeadersCount(); l != nil {
		most = int(l.GetValue())
	}
	return size > limit<<10 || count > most
}

// tell makes the changes that the configuration wants in what the site gets, after all
// filters. [route] VirtualHost.request_headers_to_remove, request_headers_to_add
func (f *extAuthz) tell(r *http.Request) {
	host := f.manager.GetRouteConfig().GetVirtualHosts()[0]
	for _, name := range host.GetRequestHeadersToRemove() {
		r.Header.Del(name)
	}
	for _, h := range host.GetRequestHeadersToAdd() {
		// The only value that readEnvoy takes.
		r.Header.Set(h.GetHeader().GetKey(), visitorAddress(r))
	}
}

// upgrades reports whether requests with such a field Upgrade are proxied. [manager]
// UpgradeConfig
func (f *extAuthz) upgrades(kind string) bool {
	for _, c := range f.manager.GetUpgradeConfigs() {
		if strings.EqualFold(c.GetUpgradeType(), kind) && (c.GetEnabled() == nil || c.GetEnabled().GetValue()) {
			return true
		}
	}
	return false
}

// healthy fails if the node would not be asked. Envoy looks now and then; this looks when
// it matters. [health]
func (f *extAuthz) healthy(ctx context.Context) {
	if !f.checked {
		return
	}
	resp, err := f.checker.Do(rig.Got(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.node+f.ready, nil)))
	if err != nil {
		return // counts from unhealthy_threshold on, and the question fails as well
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK { // expected_statuses
		rig.Must(errNoVerdict)
	}
}

// forwarded writes what the connection manager does before any filter sees the request.
// See "x-forwarded-for" and "x-forwarded-proto" in Envoy's documentation of HTTP headers,
// with use_remote_address.
func (f *extAuthz) forwarded(r *http.Request) {
	if !f.manager.GetUseRemoteAddress().GetValue() {
		return
	}
	via := append(r.Header.Values("X-Forwarded-For"), visitorAddress(r))
	r.Header.Set("X-Forwarded-For", strings.Join(via, ","))
	r.Header.Set("X-Forwarded-Proto", "http")
}

// askHTTP asks with the method, host and path of the visitor, the path behind a prefix,
// without a body. Of other fields only those listed are sent, and Authorization.
// [filter] allowed_headers, HttpService
func (f *extAuthz) askHTTP(r *http.Request) verdict {
	service := f.authz.GetHttpService()
	q := rig.Got(http.NewRequestWithContext(r.Context(), r.Method, "http://"+f.node+service.GetPathPrefix()+r.URL.RequestURI(), nil))
	q.Host = r.Host
	for name, values := range r.Header {
		if matches(f.authz.GetAllowedHeaders(), name) || name == "Authorization" {
			q.Header[name] = values
		}
	}
	if _, ok := q.Header["User-Agent"]; !ok {
		q.Header["User-Agent"] = nil // or the library would add its own
	}
	resp := rig.Got(f.client.Do(q))
	defer resp.Body.Close()
	return f.readHTTP(r, resp, string(rig.Got(io.ReadAll(resp.Body))))
}

// readHTTP reads an answer as [http] toResponse does.
func (f *extAuthz) readHTTP(r *http.Request, resp *http.Response, body string) verdict {
	if resp.StatusCode >= 500 {
		rig.Must(errNoVerdict)
	}
	const storage = "X-Envoy-Auth-Headers-To-Remove"
	remove := strings.FieldsFunc(strings.Join(resp.Header.Values(storage), ","), func(c rune) bool { return c == ',' || c == ' ' })
	resp.Header.Del(storage)
	rules := f.authz.GetHttpService().GetAuthorizationResponse()
	if resp.StatusCode != http.StatusOK {
		denied := rules.GetAllowedClientHeaders() // none: all but Host
		return verdict{status: resp.StatusCode, body: body, header: some(resp.Header, func(name string) bool { return len(denied.GetPatterns()) == 0 || matches(denied, name) })}
	}
	letPass(r, remove, some(resp.Header, func(name string) bool { return matches(rules.GetAllowedUpstreamHeaders(), name) }))
	return verdict{change: adds(some(resp.Header, func(name string) bool { return matches(rules.GetAllowedClientHeadersOnSuccess(), name) }))} // addCopy
}

// some returns the fields whose names are wanted.
func some(fields http.Header, wanted func(name string) bool) http.Header {
	chosen := maps.Clone(fields)
	maps.DeleteFunc(chosen, func(name string, _ []string) bool { return !wanted(name) })
	return chosen
}

// matches reports whether a list names a field. Envoy has names in lower case; the
// examples give them whole.
func matches(list *matcherv3.ListStringMatcher, name string) bool {
	for _, p := range list.GetPatterns() {
		if p.GetExact() == strings.ToLower(name) {
			return true
		}
	}
	return false
}

// askGRPC asks by a call, with all fields. [filter] allowed_headers
func (f *extAuthz) askGRPC(r *http.Request) verdict {
	ctx, cancel := context.WithTimeout(r.Context(), f.authz.GetGrpcService().GetTimeout().AsDuration())
	defer cancel()
	resp := rig.Got(authv3.NewAuthorizationClient(f.conn).Check(ctx, checkRequest(r)))
	if resp.GetStatus().GetCode() != 0 {
		d := resp.GetDeniedResponse() // [service] DeniedHttpResponse.status
		return verdict{status: cmp.Or(int(d.GetStatus().GetCode()), http.StatusForbidden), body: d.GetBody(), header: fieldsOf(d.GetHeaders())}
	}
	ok := resp.GetOkResponse()
	letPass(r, ok.GetHeadersToRemove(), fieldsOf(ok.GetHeaders()))
	added, instead := http.Header{}, http.Header{}
	for _, h := range ok.GetResponseHeadersToAdd() { // [grpc] copyOkResponseMutations
		to := instead
		if h.GetAppendAction() == corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD {
			to = added
		}
		to.Add(h.GetHeader().GetKey(), h.GetHeader().GetValue())
	}
	return verdict{change: func(reply http.Header) {
		replace(reply, instead)
		adds(added)(reply)
	}}
}

// fieldsOf are fields of a verdict.
func fieldsOf(options []*corev3.HeaderValueOption) http.Header {
	fields := http.Header{}
	for _, h := range options {
		fields.Add(h.GetHeader().GetKey(), h.GetHeader().GetValue())
	}
	return fields
}

// checkRequest is the question about a request: names in lower case, the fields of one
// name joined by commas, cookies by semicolons, and "!" for what is not UTF-8. [service]
// AttributeContext.HttpRequest
func checkRequest(r *http.Request) *authv3.CheckRequest {
	headers := map[string]string{":method": r.Method, ":path": r.URL.RequestURI(), ":authority": r.Host, ":scheme": "http"}
	for name, values := range r.Header {
		separator := ","
		if name == "Cookie" {
			separator = "; "
		}
		headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, separator), "!")
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: visitorAddress(r)},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: r.Method, Path: r.URL.RequestURI(), Host: r.Host, Scheme: "http", Protocol: r.Proto, Headers: headers, Size: r.ContentLength,
		}},
	}}
}
