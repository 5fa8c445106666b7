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
		if n := strings.Count(got, "\n"); n != 3*failuresTold || strings.Contains(got, "left_out") {
			t.Fatalf("%d lines of three kinds:\n%s", n, got)
		}
		if line, _, _ := strings.Cut(got, "\n"); !strings.Contains(line, `msg="request failed" error=refused status=502 room=tickets path=shop.example/tickets request=an-id`) {
			t.Errorf("a line: %s", line)
		}
		time.Sleep(failuresEvery)
		fail(tickets, down)
		fail(tickets, down)
		later := strings.TrimPrefix(log.text(), got)
		if strings.Count(later, "\n") != 2 || strings.Count(later, "left_out=4990") != 1 {
			t.Errorf("a minute later:\n%s", later)
		}
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
