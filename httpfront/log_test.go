package httpfront

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
)

// TestTheLogTellsNothingOfVisitors has visitors come by whom an operator is told of
// trouble: those of an origin that is down, of a room that panics, too many of one
// address, requests that are not in order.
func TestTheLogTellsNothingOfVisitors(t *testing.T) {
	var log lockedLog
	r := newRoom(func(p node.Pass, known bool, now time.Time) node.Verdict { panic("no room") })
	f := serveTo(t, fakeRooms{"/room", r}, nowhere, behindBalancer, func(c *Config) {
		c.Logger, c.Limits.ConnsPerAddress = slog.New(slog.NewTextHandler(&log, nil)), 2
	})
	const secret = "zqxjk"
	visit := func(target, more string) {
		t.Helper()
		c := f.through("192.0.2.77")
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %[2]s.example\r\nCookie: ropeline=%[2]s\r\nAuthorization: %[2]s\r\n%[3]s\r\n", target, secret, more)
		io.Copy(io.Discard, io.LimitReader(c, 20))
	}
	visit("/"+secret+"?"+secret, "Connection: close\r\n")
	visit("/room/"+secret, "Connection: close\r\n")
	visit("/\x1b[31m"+secret, "X-"+secret+": \x1b[31m\r\n")
	for range 5 { // more than may be open at a time
		f.through("192.0.2.77")
	}
	fmt.Fprintf(f.dial(), "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", secret, secret)
	for _, told := range []string{"request failed", "panic while serving", "too many connections", "PROXY header"} {
		waitFor(t, told, func() bool { return log.has(told) })
	}
	got := log.text()
	lacks(t, "the log", got, secret, "192.0.2.77", "\x1b")
	for _, once := range []string{"too many connections", "does not begin with a PROXY header"} {
		equal(t, "how often is told: "+once, strings.Count(got, once), 1)
	}
	has(t, "the log, of the network of a flood", got, "192.0.2.0/24")
}
