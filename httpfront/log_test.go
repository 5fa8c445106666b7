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
	f := serveTo(t, fakeRooms{"/room", r}, nowhere, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Edge.ProxyProtocol = loopback
		c.Limits.ConnsPerAddress = 2
	})
	const secret = "zqxjk"
	visit := func(target, more string) {
		t.Helper()
		c := f.dial()
		fmt.Fprintf(c, "PROXY TCP4 192.0.2.77 192.0.2.1 40000 80\r\nGET %s HTTP/1.1\r\nHost: %s.example\r\nCookie: ropeline=%s\r\nAuthorization: %s\r\n%s\r\n",
			target, secret, secret, secret, more)
		io.Copy(io.Discard, io.LimitReader(c, 20))
	}
	visit("/"+secret+"?"+secret, "Connection: close\r\n")
	visit("/room/"+secret, "Connection: close\r\n")
	visit("/\x1b[31m"+secret, "X-"+secret+": \x1b[31m\r\n")
	for range 5 { // more than may be open at a time
		c := f.dial()
		io.WriteString(c, "PROXY TCP4 192.0.2.77 192.0.2.1 40000 80\r\n")
	}
	c := f.dial()
	fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", secret, secret)
	for _, told := range []string{"request failed", "panic while serving", "too many connections", "PROXY header"} {
		waitFor(t, told, func() bool { return log.has(told) })
	}
	got := log.text()
	for _, never := range []string{secret, "192.0.2.77", "\x1b"} {
		if strings.Contains(got, never) {
			t.Errorf("the log has %q:\n%s", never, got)
		}
	}
	for _, once := range []string{"too many connections", "does not begin with a PROXY header"} {
		if n := strings.Count(got, once); n != 1 {
			t.Errorf("%q is told %d times", once, n)
		}
	}
	if !strings.Contains(got, "192.0.2.0/24") {
		t.Errorf("the log does not name the network of a flood:\n%s", got)
	}
}
