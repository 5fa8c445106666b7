package httpfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// TestAnswersOfOursSaySo: a program, and the script of the built-in page, tell by one
// field whether the site has answered.
func TestAnswersOfOursSaySo(t *testing.T) {
	asItIs := func(*Config) {}
	starting := func(c *Config) { c.Ready = func() error { return errors.New("the test says so") } }
	broken := func(c *Config) { c.Origins = origins(t, nowhere) }
	admits := func(node.Pass, bool, time.Time) node.Verdict { return node.Verdict{Admit: true} }
	panics := func(node.Pass, bool, time.Time) node.Verdict { panic("the test says so") }
	for name, c := range map[string]struct {
		decide  func(node.Pass, bool, time.Time) node.Verdict
		request string // its line
		change  func(*Config)
		want    string
	}{
		"the site's":      {admits, "GET / HTTP/1.1", asItIs, "200 "},
		"waiting":         {never, "GET / HTTP/1.1", asItIs, "200 waiting"},
		"sent while so":   {never, "DELETE / HTTP/1.1", asItIs, "429 waiting"},
		"too many come":   {queues, "GET / HTTP/1.1", asItIs, "429 crowded"},
		"starting":        {admits, "GET / HTTP/1.1", starting, "503 failed"},
		"no site":         {admits, "GET / HTTP/1.1", broken, "502 failed"},
		"not in order":    {admits, "GET / HTTP/1.1\r\nHost: b", asItIs, "400 refused"},
		"not even parsed": {admits, "GET /", asItIs, "400 refused"},
		"our mistake":     {panics, "GET / HTTP/1.1", asItIs, "500 refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(c.decide)
			r.settings.Front.NewVisitors = room.NewVisitors{All: 1}
			f := serve(t, fakeRooms{room: r}, http.HandlerFunc(echo), c.change)
			configure(t, f.front, r.settings)
			f.front.frontOf(&r.settings).newVisitors.all.AllowN(time.Now(), 1)
			for _, accept := range []string{"text/html", "application/json"} {
				got := f.says("GET", c.request+"\r\nHost: a\r\nAccept: "+accept+"\r\nConnection: close\r\n\r\n")
				equal(t, accept, fmt.Sprint(got.StatusCode, " ", got.Header.Get(stateField)), c.want)
			}
		})
	}
	f := judges(t, fakeRooms{})
	for range 20 { // all who are turned away in one moment come back at different ones
		away := f.turnedAway(http1.Refusal{Code: http.StatusServiceUnavailable, Reason: "no place"})
		got := whole(t, readResponse(t, bufio.NewReader(bytes.NewReader(away)), "GET"))
		after := got.Header.Get("Refresh")
		got.is(t, 503, "\r\nRetry-After: "+after+"\r\n", "\r\nRopeline-State: refused\r\n")
		if seconds, err := strconv.Atoi(after); err != nil || seconds < turnedAwayFor || seconds >= 2*turnedAwayFor {
			t.Errorf("before a request: got %q", away)
		}
	}
}
