package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// TestProfilesAreForOperatorsWhoAskForThem: neither visitors nor operators find them unless they are wanted.
// They are of a whole process, so the nodes have their own.
func TestProfilesAreForOperatorsWhoAskForThem(t *testing.T) {
	t.Parallel()
	origin := startOrigin(t)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--profiles"}, http.StatusOK},
		{nil, http.StatusNotFound},
	} {
		p := startNode(t, "one", "a", append(c.args, "--origin", origin, "--suspended", "--data-dir", t.TempDir())...)
		p.await("the node is ready", time.Minute, func(s node.Status) bool { return s.Ready })
		for _, what := range []string{"heap", "mutex"} {
			resp, err := http.Get("http://" + p.admin + "/debug/pprof/" + what)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("%v: %s is answered with %s, want %d", c.args, what, resp.Status, c.want)
			}
		}
		resp, err := http.Get("http://" + p.http + "/debug/pprof/heap") // goes to the site, as any other path
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.Header.Get("Content-Type") == "application/octet-stream" {
			t.Error("visitors are shown profiles")
		}
		p.kill()
	}
}
