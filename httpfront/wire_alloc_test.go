//go:build !race

package httpfront

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// What a node does most of all, from the client's bytes to the answer's, the origin included,
// allocates nothing. Whoever sees this fail has made every request slower.
func TestWholeRequestsDoNotAllocate(t *testing.T) {
	const host = "tickets.example.org"
	origin := answering(t)
	now := time.Now()
	waits := node.Pass{Room: [16]byte{1}, Visitor: node.VisitorID{7}, Arrival: now, LastPoll: now}
	isIn := waits
	isIn.AcceptedAt, isIn.LeaseEnd = now, now.Add(time.Minute)
	for _, c := range []struct {
		name, accept string
		decide       func(node.Pass, bool, time.Time) node.Verdict
		pass         node.Pass
	}{
		{"on the site", "text/html", always, isIn},
		{"on the site, with a new pass", "text/html", letIn, isIn},
		{"waits, and gets a page", "text/html", never, waits},
		{"waits, and gets JSON", "application/json", never, waits},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := serveTo(t, fakeRooms{room: newRoom(c.decide)}, origin, func(c *Config) { c.Limits.Requests = 1 << 30 })
			ask := asker(t, f.dial(), "GET /queue/"+strings.Repeat("a", 20)+"?row=7 HTTP/1.1\r\nHost: "+host+":8080\r\nAccept: "+c.accept+"\r\nCookie: ropeline="+
				string(f.keys.AppendSeal(nil, c.pass, host))+"\r\n\r\n")
			for range 100 {
				ask()
			}
			if n := testing.AllocsPerRun(2000, ask); n != 0 {
				t.Errorf("%v allocations, want 0", n)
			}
		})
	}
}
