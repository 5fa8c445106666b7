//go:build unix

package conformance

import (
	"net/http"
	"strings"
	"testing"
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
			try := &try{ctx: t.Context(), stack: s, fe: fe, host: c.host(), room: c.id}
			in, err := try.fill()
			if err != nil {
				t.Fatal(err)
			}
			next := try.visitor()
			if a, err := next.ask(http.MethodGet); err != nil || !a.isQueue() {
				t.Fatalf("two visitors in a room for one: %v, %v", a, err)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.proxy.addr+pathEnd, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host()
			req.Header.Set("Cookie", "theme=dark; "+in.pass)
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			cookies := strings.Join(resp.Header.Values("Set-Cookie"), "\n")
			if resp.StatusCode != http.StatusOK || resp.Header.Get("Ropeline-Command") != "" || !strings.Contains(cookies, "ropeline=;") {
				t.Errorf("code %d, %v", resp.StatusCode, resp.Header)
			}
			got := s.site.take(c.host())
			if len(got) != 1 || got[0].header.Get("Cookie") != "theme=dark" {
				t.Errorf("the site was asked %+v", got)
			}
			if _, err := try.until(next, answer.fromSite); err != nil {
				t.Errorf("the place is not free: %v", err)
			}
		})
	}
}
