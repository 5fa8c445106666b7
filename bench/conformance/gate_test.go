//go:build unix

package conformance

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/rig"
)

// TestGatesObeyTheSite: its answers pass through a Go program's gate, so a field in them
// ends the session, and its own place is free.
func TestGatesObeyTheSite(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real programs")
	}
	o := options{binary: built(t), examples: "../../docs/examples"}
	for _, fe := range frontEnds() {
		if !strings.HasSuffix(fe.example, ".go") {
			continue
		}
		t.Run(fe.name, func(t *testing.T) {
			t.Parallel()
			c := testCase{id: "end", places: 1}
			s, err := startStack(t.Context(), o, fe, []testCase{c})
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			c.run = func(try *try) string {
				next := try.next()
				req := rig.Got(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.proxy.addr+pathEnd, nil))
				req.Host = try.host
				req.Header.Set("Cookie", "theme=dark; "+try.in.pass)
				resp := rig.Got(s.client.Do(req))
				resp.Body.Close()
				cookies := strings.Join(resp.Header.Values("Set-Cookie"), "\n")
				if resp.StatusCode != http.StatusOK || resp.Header.Get("Ropeline-Command") != "" || !strings.Contains(cookies, "ropeline=;") {
					t.Errorf("code %d, %v", resp.StatusCode, resp.Header)
				}
				got := s.site.take(try.host)
				if len(got) != 1 || got[0].header.Get("Cookie") != "theme=dark" {
					t.Errorf("the site was asked %+v", got)
				}
				try.until(next, answer.fromSite) // the place is free
				return ""
			}
			if _, err := s.do(t.Context(), fe, c); err != nil {
				t.Error(err)
			}
		})
	}
}
