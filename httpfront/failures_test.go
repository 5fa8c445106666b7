package httpfront

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestFailuresDoNotFillTheLog: so many of a kind are told in a minute, and the next one tells how many were not.
func TestFailuresDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		logger := slog.New(slog.NewTextHandler(&log, nil))
		var f failures
		down := failure{code: http.StatusBadGateway, title: "The site does not answer"}
		fail := func(in *room.Settings, what failure) { f.log(logger, in, what, errors.New("refused"), "an-id") }
		tickets := &room.Settings{Name: "tickets", Host: "shop.example", Path: "/tickets"}
		for range 5000 {
			fail(tickets, down)
			fail(nil, down)
			fail(tickets, failure{code: http.StatusGatewayTimeout, title: "The site takes too long"})
			fail(tickets, failure{code: http.StatusServiceUnavailable, title: "The site is busy"}) // below the level
		}
		got := log.text()
		equal(t, "lines of three kinds", strings.Count(got, "\n"), 3*failuresTold)
		lacks(t, "lines of three kinds", got, "left_out")
		line, _, _ := strings.Cut(got, "\n")
		has(t, "a line", line, `msg="request failed" error=refused status=502 room=tickets path=shop.example/tickets request=an-id`)
		time.Sleep(failuresEvery)
		fail(tickets, down)
		fail(tickets, down)
		later := strings.TrimPrefix(log.text(), got)
		equal(t, "lines a minute later", strings.Count(later, "\n"), 2)
		equal(t, "those that tell how many were left out", strings.Count(later, "left_out=4990"), 1)
	})
}

// TestKindsOfFailuresAreForgotten has rooms come, fail and go for years.
func TestKindsOfFailuresAreForgotten(t *testing.T) {
	var f failures
	now := time.Now()
	for i := range 10 * kindsMax {
		f.take(failureKind{title: "The site cannot be reached", room: strconv.Itoa(i)}, now)
		now = now.Add(time.Second)
	}
	if n := len(f.kinds); n > kindsMax {
		t.Errorf("%d kinds are known, want %d at most", n, kindsMax)
	}
}
