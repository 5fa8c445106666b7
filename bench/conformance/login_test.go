//go:build unix

package conformance

import (
	"net/http"
	"slices"
	"testing"
)

// TestALoginOfAConnectionIsNoStrangers: some sites take who has logged in for whoever speaks on the connection (NTLM, and
// Negotiate as many do it). No example has others come on it.
func TestALoginOfAConnectionIsNoStrangers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real proxies")
	}
	eachProxy(t, options{binary: built(t)}, func(t *testing.T, o options, fe frontEnd) {
		c := testCase{id: "login", places: 20}
		s := startedStack(t, o, fe, c)
		c.run = func(try *try) string {
			var logins []string
			for _, login := range [][]string{{loginBegun, "NTLM answer"}, {"Negotiate ticket"}, {"negotiate ticket"}} {
				if fe.pools && login[0] != loginBegun {
					continue
				}
				for _, said := range login {
					try.in.ask(http.MethodGet, "Authorization", said)
					for _, a := range s.site.take(try.host) {
						logins = append(logins, a.from)
					}
				}
				s.client.CloseIdleConnections() // who logged in leaves
				for range 3 {
					stranger := try.visitor()
					stranger.ask(http.MethodGet)
					stranger.ask(http.MethodGet) // by the same connection
					s.client.CloseIdleConnections()
				}
				strangers := s.site.take(try.host)
				try.must(len(strangers) == 6, "the site was asked %d times by strangers, want 6", len(strangers))
				for _, a := range strangers {
					try.must(!slices.Contains(logins, a.from), "%q was said on the connection on which strangers come", login)
				}
			}
			return ""
		}
		if _, err := s.do(t.Context(), fe, c); err != nil {
			t.Error(err)
		}
	})
}
