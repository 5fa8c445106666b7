package verdict

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/ropeline/ropeline/bench/must"
	"github.com/ropeline/ropeline/httpfront"
)

// dialGRPC returns a client of a server.
func dialGRPC(t *testing.T, addr string) authv3.AuthorizationClient {
	conn := must.Do(grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials())))
	t.Cleanup(func() { conn.Close() })
	return authv3.NewAuthorizationClient(conn)
}

// grpcQuestion is how Envoy asks about POST https://shop.example/cart?a=%2F of 192.0.2.1.
func grpcQuestion(headers map[string]string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: "192.0.2.1"},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "POST", Path: "/cart?a=%2F", Host: "shop.example", Scheme: "https", Headers: headers,
		}},
	}}
}

// judgedByGRPC is a client of a server which trusts those of a network, and whose judge lets all in.
func judgedByGRPC(t *testing.T, trusted string) (*fakeJudge, authv3.AuthorizationClient) {
	j, addr := judged(t, admitted, trusted)
	return j, dialGRPC(t, addr)
}

// checked is what a server says for a judge that answers so.
func checked(t *testing.T, answer httpfront.Answer) *authv3.CheckResponse {
	return must.Do(dialGRPC(t, serve(t, &fakeJudge{answer: answer}, "127.0.0.0/8")).Check(t.Context(), grpcQuestion(nil)))
}

func TestGRPCAsksTheSame(t *testing.T) {
	j, client := judgedByGRPC(t, "127.0.0.0/8")
	raw := grpcQuestion(nil)
	raw.Attributes.Request.Http.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{
		{Key: ":path", RawValue: []byte("/x")},
		{Key: "cookie", RawValue: []byte("a=b")},
		{Key: "x-forwarded-for", RawValue: []byte("192.0.2.1")},
	}}
	behind := grpcQuestion(map[string]string{"cookie": "a=b", "x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https"})
	behind.Attributes.Request.Http.Scheme = "http" // of the hop to Envoy
	for what, req := range map[string]*authv3.CheckRequest{
		"fields as a map":      grpcQuestion(map[string]string{":path": "/x", "cookie": "a=b"}),
		"fields as a list":     raw,
		"behind another proxy": behind,
	} {
		must.Do(client.Check(t.Context(), req))
		q := j.expectAsked(t, what)
		names := slices.Sorted(maps.Keys(maps.Collect(q.Fields)))
		if !slices.Contains(names, "cookie") || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, ":") }) {
			t.Errorf("%s: fields %q", what, names)
		}
	}
}

func TestGRPCVerdicts(t *testing.T) {
	for _, c := range []struct {
		answer httpfront.Answer
		code   int32
	}{{admitted, 0}, {queued, 429}, {malformed, 431}, {unavailable, 429}} {
		resp := checked(t, c.answer)
		if (resp.GetStatus().GetCode() == int32(codes.OK)) != (c.code == 0) || int32(resp.GetDeniedResponse().GetStatus().GetCode()) != c.code {
			t.Errorf("%v: got %v", c.answer.Outcome, resp)
		}
		if c.code == 0 {
			got := map[string]corev3.HeaderValueOption_HeaderAppendAction{}
			for _, h := range resp.GetOkResponse().GetResponseHeadersToAdd() {
				got[h.GetHeader().GetKey()] = h.GetAppendAction()
			}
			want := map[string]corev3.HeaderValueOption_HeaderAppendAction{
				"Set-Cookie":    corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD, // beside the site's own
				"Cache-Control": corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			}
			if !maps.Equal(got, want) {
				t.Errorf("response headers %v, want %v", got, want)
			}
			continue
		}
		d := resp.GetDeniedResponse()
		equal(t, c.answer.Outcome.String()+": body", d.GetBody(), string(c.answer.Body))
		var got []httpfront.AnswerField
		for _, h := range d.GetHeaders() {
			got = append(got, httpfront.AnswerField{Name: h.GetHeader().GetKey(), Value: h.GetHeader().GetValue()})
		}
		want := c.answer.Fields
		if c.answer.Cookie != "" {
			want = append(want[:len(want):len(want)], httpfront.AnswerField{Name: "Set-Cookie", Value: c.answer.Cookie})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: headers %v, want %v", c.answer.Outcome, got, want)
		}
	}
}

func TestGRPCWithoutARequestIsRefused(t *testing.T) {
	j, client := judgedByGRPC(t, "127.0.0.0/8")
	for _, req := range []*authv3.CheckRequest{{}, {Attributes: &authv3.AttributeContext{}}} {
		equal(t, "the code", must.Do(client.Check(t.Context(), req)).GetDeniedResponse().GetStatus().GetCode(), 400)
	}
	j.expectNotAsked(t)
}

func TestGRPCOfWhoIsNotTrusted(t *testing.T) {
	j, client := judgedByGRPC(t, "192.0.2.0/24")
	if _, err := client.Check(t.Context(), grpcQuestion(nil)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v", err)
	}
	j.expectNotAsked(t)
}

func TestGRPCTakesTextsThatAreNoUTF8(t *testing.T) {
	answer := queued
	answer.Body = []byte("a\xffb")
	equal(t, "the body", checked(t, answer).GetDeniedResponse().GetBody(), "a\uFFFDb")
}

// TestLongGRPCQuestionsAreDenied: an error of the call would let everybody in where Envoy is set
// to.
func TestLongGRPCQuestionsAreDenied(t *testing.T) {
	j, client := judgedByGRPC(t, "127.0.0.0/8")
	for _, n := range []int{questionMax, 8 << 20} { // and the most that Envoy takes
		q := grpcQuestion(map[string]string{})
		q.GetAttributes().GetRequest().GetHttp().Headers["x-a"] = strings.Repeat("b", n)
		equal(t, "the code", must.Do(client.Check(t.Context(), q)).GetDeniedResponse().GetStatus().GetCode(), http.StatusRequestHeaderFieldsTooLarge)
	}
	j.expectNotAsked(t)
}
