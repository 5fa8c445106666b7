package verdict

import (
	"context"
	"errors"
	"iter"
	"math"
	"net/http"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/ropeline/ropeline/httpfront"
)

// authorization is what ext_authz asks over gRPC: OK lets the visitor in, and a denied
// response is handed to the visitor. An error of the call is one to Envoy as well, upon
// which everybody is let in where failure_mode_allow is set; so there is none. See
// envoy/service/auth/v3/external_auth.proto.
type authorization struct {
	authv3.UnimplementedAuthorizationServer
	s *Server
}

// grpcDialect has the codes that go into denied responses.
var grpcDialect = &dialect{name: "envoy gRPC", queued: http.StatusTooManyRequests}

// questionMax is the longest gRPC question in bytes that is answered. Longer ones are denied,
// and read for that: only trusted proxies ask, and what they hand on is theirs to bound.
const questionMax = 2 * headMax

func (s *Server) newGRPC() *grpc.Server {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(math.MaxInt32))
	authv3.RegisterAuthorizationServer(g, authorization{s: s})
	return g
}

// isGRPC reports whether a request is a call rather than a question in a dialect.
func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// Check answers one question. ServeHTTP has looked at who asks.
func (a authorization) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if proto.Size(req) > questionMax {
		return denied(http.StatusRequestHeaderFieldsTooLarge, &httpfront.Answer{Body: []byte("431 the head of the request is too long\n")}), nil
	}
	q, err := questionOf(ctx, req.GetAttributes())
	if err != nil {
		a.s.misconfigured(grpcDialect.name, err)
		return denied(http.StatusBadRequest, &httpfront.Answer{Body: []byte(err.Error() + "\n")}), nil
	}
	answer := a.s.cfg.Judge.Judge(q)
	if answer.Outcome == httpfront.Admitted {
		return a.s.ok(&answer), nil
	}
	return denied(grpcDialect.status(&answer), &answer), nil
}

func questionOf(ctx context.Context, attrs *authv3.AttributeContext) (*httpfront.Question, error) {
	r := attrs.GetRequest().GetHttp()
	if r == nil {
		return nil, errors.New("envoy gRPC: the question is not about an HTTP request")
	}
	q := &httpfront.Question{
		Method: r.GetMethod(), Target: r.GetPath(), Host: r.GetHost(), Scheme: r.GetScheme(), Fields: grpcFields(r),
	}
	if p, ok := peer.FromContext(ctx); ok {
		if ap, err := netip.ParseAddrPort(p.Addr.String()); err == nil {
			q.Peer = ap.Addr().Unmap().WithZone("")
		}
	}
	// Envoy has checked these two, or has written them itself.
	var via []string
	for name, value := range q.Fields {
		switch name {
		case "x-forwarded-proto":
			q.Scheme = value
		case "x-forwarded-for":
			via = append(via, value)
		}
	}
	if q.For = strings.Join(via, ", "); q.For == "" {
		q.For = attrs.GetSource().GetAddress().GetSocketAddress().GetAddress()
	}
	return q, nil
}

// grpcFields yields the visitor's header fields: from the map in which those of one name
// are joined, or from the list that encode_raw_headers makes.
func grpcFields(r *authv3.AttributeContext_HttpRequest) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, value := range r.GetHeaders() {
			if !strings.HasPrefix(name, ":") && !yield(name, value) {
				return
			}
		}
		for _, h := range r.GetHeaderMap().GetHeaders() {
			value := h.GetValue()
			if len(h.GetRawValue()) > 0 {
				value = string(h.GetRawValue())
			}
			if !strings.HasPrefix(h.GetKey(), ":") && !yield(h.GetKey(), value) {
				return
			}
		}
	}
}

// ok lets a visitor in.
func (s *Server) ok(a *httpfront.Answer) *authv3.CheckResponse {
	ok := &authv3.OkHttpResponse{}
	if a.Cookie != "" {
		// A cache that stored the site's answer would hand the pass to others.
		ok.ResponseHeadersToAdd = []*corev3.HeaderValueOption{
			option("Set-Cookie", a.Cookie, corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD),
			option("Cache-Control", privateAnswer, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD),
		}
	}
	if a.Proof != "" {
		ok.Headers = []*corev3.HeaderValueOption{option(a.ProofField, a.Proof, corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD)}
	} else if a.ProofField != "" {
		ok.HeadersToRemove = []string{a.ProofField}
	}
	return &authv3.CheckResponse{
		Status:       &statuspb.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: ok},
	}
}

// denied hands an answer to the visitor.
func denied(code int, a *httpfront.Answer) *authv3.CheckResponse {
	const overwrite = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	d := &authv3.DeniedHttpResponse{
		Status: &typev3.HttpStatus{Code: typev3.StatusCode(code)},
		Body:   strings.ToValidUTF8(string(a.Body), "\uFFFD"), // what a message may hold
	}
	for _, f := range a.Fields {
		d.Headers = append(d.Headers, option(f.Name, f.Value, overwrite))
	}
	if a.Cookie != "" {
		d.Headers = append(d.Headers, option("Set-Cookie", a.Cookie, overwrite))
	}
	return &authv3.CheckResponse{
		Status:       &statuspb.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: d},
	}
}

func option(name, value string, action corev3.HeaderValueOption_HeaderAppendAction) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: action}
}
