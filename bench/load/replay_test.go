package load

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func readLog(t *testing.T, lines ...string) *Log {
	t.Helper()
	log, err := ReadLog(strings.NewReader(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func at(address string, second int, path string) string {
	return fmt.Sprintf("%s - - [17/May/2015:10:05:%02d +0000] \"GET %s HTTP/1.1\" 200 5 \"-\" \"browser of %s\"\n", address, second, path, address)
}

func TestReplayKeepsTimeOrderAndBrowser(t *testing.T) {
	log := readLog(t, at("a", 0, "/1"), at("b", 4, "/2"), at("a", 30, "/3"), at("b", 4, "/4"))
	var mu sync.Mutex
	var got []string
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := visitInBubble(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(time.Since(start), " ", r.UserAgent(), " ", r.URL))
		}), Config{Log: log, Speed: 2})
		if r.Visitors != 2 || r.Admitted != 2 || r.Requests != 4 {
			t.Errorf("got %+v, want 2 visitors and 4 requests", r)
		}
	})
	want := []string{"0s browser of a /1", "2s browser of b /2", "2s browser of b /4", "15s browser of a /3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A visitor who waits asks for the same page until let in, and then makes up
// for what the log did meanwhile, in order.
func TestReplayWaitsAndCatchesUp(t *testing.T) {
	log := readLog(t, at("a", 0, "/a"), at("b", 1, "/b1"), at("b", 2, "/b2"), at("b", 9, "/b3"))
	room := newFakeRoom(1, 5*time.Second)
	var r Report
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r = visitInBubble(t, room, Config{Log: log, SessionDuration: 5 * time.Second})
		if took := time.Since(start); took != 9*time.Second {
			t.Errorf("took %v, want the 9s of the log", took)
		}
	})
	want := []string{
		"guest0 /a", "guest1 /b1", "guest1 /b1", "guest1 /b1", "guest1 /b1", "guest1 /b1", // let in at 5 s
		"guest1 /b2", "guest1 /b3",
	}
	if !slices.Equal(room.asked, want) {
		t.Errorf("the room was asked\n%q, want\n%q", room.asked, want)
	}
	if r.Admitted != 2 || r.Waited != 1 || r.PeakActive != 1 || r.SessionsLost != 0 {
		t.Errorf("got %+v, want both let in, one after the other", r)
	}
}

// The real log against a room for few: everybody is let in at last, in order.
func TestReplayRealLog(t *testing.T) {
	visitors := 300
	if testing.Short() {
		visitors /= 4
	}
	log := openReal(t).First(visitors)
	room := newFakeRoom(8, 2*time.Second)
	r := visit(t, room, Config{Log: log, Speed: 3000, SessionDuration: 2 * time.Second})
	if r.Visitors != visitors || r.Admitted != visitors || r.Waiting != 0 || r.Errors != 0 {
		t.Errorf("got %+v, want all %d let in", r, visitors)
	}
	if r.Waited < visitors/2 || r.PeakActive != 8 || r.OrderError > 0.05 {
		t.Errorf("got %d waited, peak %d, order error %v; want half to wait, 8, and a small one", r.Waited, r.PeakActive, r.OrderError)
	}
	if r.PlacesLost != 0 || r.SessionsLost != 0 {
		t.Errorf("got %d places and %d sessions lost", r.PlacesLost, r.SessionsLost)
	}
}

func TestReplayFirstVisitors(t *testing.T) {
	log := readLog(t, at("a", 0, "/"), at("b", 1, "/"), at("c", 2, "/"))
	r := visit(t, newFakeRoom(9, time.Second), Config{Log: log, Crowd: Crowd{Visitors: 2}})
	if r.Visitors != 2 || r.ElapsedSeconds > 1.5 {
		t.Errorf("got %d visitors in %v s, want 2 in 1 s", r.Visitors, r.ElapsedSeconds)
	}
}
