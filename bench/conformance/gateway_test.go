//go:build unix

package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/rig"
)

// TestGatewayExample runs the cases with what an implementation of the Gateway API has to
// do with the example. Over HTTP it is one that hands the pass on by a setting of its own.
func TestGatewayExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a node")
	}
	binary := built(t)
	for _, protocol := range []string{"GRPC", "HTTP"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			var some []testCase
			for _, c := range append(cases(), hostileCases()...) {
				if !c.hurts {
					some = append(some, c)
				}
			}
			fe := frontEnd{name: "Gateway API, " + protocol, standIn: true, leavesTold: true, untold: protocol == "HTTP", untoldChunks: true}
			s := startGateway(t, binary, protocol, some, "Set-Cookie", "Cache-Control")
			for _, c := range some {
				if _, err := s.do(t.Context(), fe, c); err != nil {
					t.Errorf("%s: %v", c.what, err)
				}
			}
		})
	}
	// As the example says of it.
	t.Run("HTTP without such a setting", func(t *testing.T) {
		t.Parallel()
		c := testCase{id: "plain", places: 5, empty: true}
		s := startGateway(t, binary, "HTTP", []testCase{c})
		c.run = func(try *try) string {
			v := try.visitor()
			a := v.ask(http.MethodGet)
			try.must(a.fromSite() && v.pass == "", "%v: the pass %q reaches the visitor", a, v.pass)
			got := s.site.take(try.host)
			try.must(len(got) == 1 && !strings.Contains(strings.Join(got[0].header.Values("Set-Cookie"), ""), "ropeline"), "the site gets %v", got)
			return ""
		}
		if _, err := s.do(t.Context(), frontEnd{}, c); err != nil {
			t.Error(err)
		}
	})
}

// startGateway starts a site, a node and the example between them, until the test ends.
func startGateway(t *testing.T, binary, protocol string, some []testCase, onSuccess ...string) *stack {
	t.Helper()
	filter, err := readGateway("../../docs/examples/gateway.yaml", protocol)
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{dir: t.TempDir(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	t.Cleanup(s.close)
	if s.site, err = startSite(); err != nil {
		t.Fatal(err)
	}
	if err := rig.Try(func() { s.startNode(t.Context(), binary, some) }); err != nil {
		t.Fatal(err)
	}
	listen, err := rig.Free()
	if err != nil {
		t.Fatal(err)
	}
	if err := rig.Try(func() { s.proxy = startStandIn(listen, filter.envoy(s.site.addr, s.node.verdicts, onSuccess...)) }); err != nil {
		t.Fatal(err)
	}
	return s
}
