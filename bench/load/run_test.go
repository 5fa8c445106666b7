package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visit runs cfg against room in virtual time, over one node.
func visit(t *testing.T, room http.Handler, cfg Config) Report {
	t.Helper()
	var report Report
	synctest.Test(t, func(t *testing.T) {
		report = visitInBubble(t, room, cfg)
	})
	return report
}

func visitInBubble(t *testing.T, room http.Handler, cfg Config) Report {
	t.Helper()
	network := newMemoryNet()
	kill := network.serve(t, "node:80", room)
	defer kill()
	cfg.Targets = []string{"http://node/"}
	cfg.Dial = network.dial
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	report, err := Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// crowded is 60 visitors for 10 places: most have to wait.
func crowded() Config {
	return Config{
		Crowd:           Crowd{Visitors: 60, Rate: 4, Stay: 6 * time.Second, Think: time.Second},
		SessionDuration: 5 * time.Second,
	}
}

func TestRunFairRoom(t *testing.T) {
	for _, html := range []bool{false, true} {
		t.Run(fmt.Sprintf("html=%v", html), func(t *testing.T) {
			room := newFakeRoom(10, 5*time.Second)
			room.html = html
			r := visit(t, room, crowded())
			if r.Visitors != 60 || r.Admitted != 60 || r.Waiting != 0 || r.GaveUp != 0 || r.Errors != 0 {
				t.Errorf("got %+v, want 60 visitors, all let in, no errors", r)
			}
			if r.Waited < 30 || r.PeakWaiting < 10 {
				t.Errorf("got %d who waited and %d at one time, want a real queue", r.Waited, r.PeakWaiting)
			}
			if r.PeakActive != room.most || r.PeakActive != 10 {
				t.Errorf("got peak_active %d, want %d, the room's own", r.PeakActive, room.most)
			}
			// Who polls early after a place became free may pass one who
			// polls late by up to a second; over the run that is little.
			if r.OrderError > 0.05 {
				t.Errorf("got order error %v for a fair room", r.OrderError)
			}
			if r.PlacesLost != 0 || r.SessionsLost != 0 {
				t.Errorf("got %d places and %d sessions lost, want none", r.PlacesLost, r.SessionsLost)
			}
			if got := len(room.asked); got != r.Requests {
				t.Errorf("got %d requests counted, want %d, as the room saw", r.Requests, got)
			}
		})
	}
}

func TestRunUnfairRoom(t *testing.T) {
	room := newFakeRoom(10, 5*time.Second)
	room.lifo = true
	if r := visit(t, room, crowded()); r.OrderError < 0.2 {
		t.Errorf("got order error %v for a room that lets the last in first, want a large one", r.OrderError)
	}
}

func TestRunRoomOverLimit(t *testing.T) {
	room := newFakeRoom(1000, 5*time.Second)
	r := visit(t, room, crowded())
	if r.Waited != 0 || r.PeakActive != room.most {
		t.Errorf("got %d waited and peak_active %d, want 0 and %d", r.Waited, r.PeakActive, room.most)
	}
}

func TestRunLostSessions(t *testing.T) {
	room := newFakeRoom(10, 5*time.Second)
	room.forgets = true
	if r := visit(t, room, crowded()); r.SessionsLost < 20 {
		t.Errorf("got %d sessions lost, want one for most visitors", r.SessionsLost)
	}
}

func TestRunLostPlaces(t *testing.T) {
	room := newFakeRoom(10, 5*time.Second)
	room.moves = true
	r := visit(t, room, crowded())
	if r.PlacesLost < r.Waited {
		t.Errorf("got %d places lost, want at least one for each of %d who waited", r.PlacesLost, r.Waited)
	}
}

// A session that ran out is not lost, however soon the visitor comes back.
func TestRunSessionsThatEndAreNotLost(t *testing.T) {
	room := newFakeRoom(1, 2*time.Second)
	r := visit(t, room, Config{
		Crowd:           Crowd{Visitors: 2, Burst: 2, Stay: time.Minute, Think: 20 * time.Second},
		SessionDuration: 2 * time.Second, Seed: 3,
	})
	if r.SessionsLost != 0 || r.PeakActive != 1 {
		t.Errorf("got %d sessions lost and peak %d, want 0 and 1", r.SessionsLost, r.PeakActive)
	}
}

// Those who come while the site stands still for 7 of 10 s are due all the same,
// so that their share of the run must show the stall: 30 in 100 are served at
// once, the next 20 have to wait for up to 2 s. A generator that waits for
// answers would show one slow request.
func TestLatencyCountsFromTheTimeDue(t *testing.T) {
	var begin atomic.Pointer[time.Time]
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		begin.Store(&now)
		site := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if at := time.Since(*begin.Load()); at > 3*time.Second && at < 10*time.Second {
				time.Sleep(10*time.Second - at)
			}
		})
		r := visitInBubble(t, site, Config{Crowd: Crowd{Visitors: 1000, Rate: 100}, Conns: 1})
		if math.Abs(r.Latency.P50-2000) > 400 || r.Latency.P99 < 6500 || r.Latency.P999 > 7100 {
			t.Errorf("got %+v, want a median of about 2 s and 99 in 100 below 7 s", r.Latency)
		}
		if r.Admitted != 1000 || r.Errors != 0 {
			t.Errorf("got %d admitted and %d errors, want 1000 and 0", r.Admitted, r.Errors)
		}
	})
}

func TestRunMovesOnWhenATargetDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newFakeRoom(10, 5*time.Second)
		network := newMemoryNet()
		kill1 := network.serve(t, "one:80", room)
		kill2 := network.serve(t, "two:80", room)
		defer kill2()
		stop := time.AfterFunc(10*time.Second, kill1)
		defer stop.Stop()
		cfg := crowded()
		cfg.Targets, cfg.Dial, cfg.Seed = []string{"http://one/", "http://two/"}, network.dial, 1
		r, err := Run(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Admitted != 60 || r.GaveUp != 0 || r.PlacesLost != 0 || r.SessionsLost != 0 {
			t.Errorf("got %+v, want all let in with nothing lost", r)
		}
		if r.Errors == 0 {
			t.Error("got no errors although a target died")
		}
		// With the cookies of the dead target they are the same guests.
		if len(room.guests) != 60 {
			t.Errorf("the room saw %d guests, want 60", len(room.guests))
		}
	})
}

func TestRunMovesOnFromATargetThatIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		defer network.serve(t, "one:80", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}))()
		defer network.serve(t, "two:80", newFakeRoom(10, time.Second))()
		r, err := Run(t.Context(), Config{
			Targets: []string{"http://one/", "http://two/"}, Dial: network.dial, Crowd: Crowd{Visitors: 4},
		}, nil)
		if err != nil || r.Admitted != 4 || r.Status["5xx"] != 2 || r.Errors != 2 {
			t.Errorf("got %+v, %v, want 4 let in, two of them after a 503", r, err)
		}
	})
}

func TestRunNothingThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Run(t.Context(), Config{Targets: []string{"http://nobody/"}, Dial: newMemoryNet().dial}, nil)
		if !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v, want ErrNoAnswer and the reason", err)
		}
	})
}

// A target that accepts and says nothing is found out too.
func TestRunNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		hang := make(chan struct{})
		kill := network.serve(t, "node:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		r, err := Run(t.Context(), Config{
			Targets: []string{"http://node/"}, Dial: network.dial, RequestTimeout: time.Second, GiveUp: 5 * time.Second,
		}, nil)
		close(hang)
		kill()
		if !errors.Is(err, ErrNoAnswer) || r.GaveUp != 1 || r.Requests != r.Errors || r.Requests < 2 {
			t.Errorf("got %+v, %v, want several tries, then giving up", r, err)
		}
	})
}

func TestRunEndsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := visitInBubble(t, newFakeRoom(1, time.Hour), Config{
			Crowd: Crowd{Rate: 5, Stay: time.Hour}, Duration: 30 * time.Second, SessionDuration: time.Hour,
		})
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %v, want 30s", took)
		}
		if r.Admitted != 1 || r.Waiting != r.Visitors-1 || r.GaveUp != 0 || r.Errors != 0 {
			t.Errorf("got %+v, want one inside and all others still waiting", r)
		}
		if r.Visitors < 100 || r.Visitors > 200 {
			t.Errorf("got %d visitors, want about 150", r.Visitors)
		}
	})
}

func TestRunEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		hang := make(chan struct{})
		kill := network.serve(t, "node:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		r, err := Run(ctx, Config{Targets: []string{"http://node/"}, Dial: network.dial}, nil)
		if took := time.Since(start); err != nil || took != 3*time.Second || r.Errors != 0 {
			t.Errorf("got %v after %v with %d errors, want a quiet end after 3s", err, took, r.Errors)
		}
		close(hang)
		kill()
	})
}

// A run that is over before it begins is an end like any other.
func TestRunWithContextThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		defer network.serve(t, "node:80", newFakeRoom(1, time.Second))()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := Run(ctx, Config{Targets: []string{"http://node/"}, Dial: network.dial}, nil); err != nil || r.Requests != 0 {
			t.Errorf("got %+v, %v, want a quiet end", r, err)
		}
	})
}

func TestRunImpatientVisitorsLeave(t *testing.T) {
	r := visit(t, newFakeRoom(1, time.Hour), Config{
		Crowd:           Crowd{Visitors: 20, Burst: 20, Stay: time.Hour, Think: time.Minute, Patience: 10 * time.Second},
		Duration:        time.Minute,
		SessionDuration: time.Hour,
	})
	if r.GaveUp != 19 || r.Waiting != 0 || r.PeakWaiting != 19 {
		t.Errorf("got %+v, want 19 to lose patience", r)
	}
}

func TestRunRepeatsWithASeed(t *testing.T) {
	pages := func(seed uint64) []string {
		room := newFakeRoom(1000, time.Minute)
		visit(t, room, Config{
			Crowd: Crowd{Visitors: 20, Rate: 2, Stay: 9 * time.Second, Paths: []string{"/a", "/b", "/c"}}, Seed: seed,
		})
		return room.asked
	}
	first := pages(7)
	if again := pages(7); !slices.Equal(first, again) {
		t.Errorf("the same seed gave\n%v\nand\n%v", first, again)
	}
	if other := pages(8); slices.Equal(first, other) {
		t.Error("another seed gave the same visits")
	}
}

func TestRunTellsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newMemoryNet()
		defer network.serve(t, "node:80", newFakeRoom(10, 5*time.Second))()
		cfg := crowded()
		cfg.Targets, cfg.Dial = []string{"http://node/"}, network.dial
		var all []Snapshot
		r, err := Run(t.Context(), cfg, func(s Snapshot) { all = append(all, s) })
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, s := range all {
			waiting = max(waiting, s.Waiting)
		}
		last := all[len(all)-1]
		if last.Requests != r.Requests || last.Gone != 60 || last.Expected != 60 {
			t.Errorf("last snapshot %+v does not fit the report %+v", last, r)
		}
		if waiting > r.PeakWaiting || waiting < r.PeakWaiting/2 {
			t.Errorf("up to %d were seen waiting, want about as many as %d", waiting, r.PeakWaiting)
		}
	})
}

func TestConfigErrors(t *testing.T) {
	const good = "http://127.0.0.1:8080"
	for _, tc := range []struct {
		name string
		cfg  Config
	}{
		{"no target", Config{}},
		{"no scheme", Config{Targets: []string{"127.0.0.1:8080"}}},
		{"other scheme", Config{Targets: []string{"ftp://127.0.0.1/"}}},
		{"no host", Config{Targets: []string{"http:///path"}}},
		{"no url", Config{Targets: []string{"http://[::1"}}},
		{"header in host", Config{Targets: []string{good}, Host: "a\r\nX: y"}},
		{"path with blank", Config{Targets: []string{good}, Crowd: Crowd{Paths: []string{"/a b"}}}},
		{"path without slash", Config{Targets: []string{good}, Crowd: Crowd{Paths: []string{"a"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Run(t.Context(), tc.cfg, nil); !errors.Is(err, ErrConfig) {
				t.Errorf("got %v, want ErrConfig", err)
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	for raw, want := range map[string]endpoint{
		"http://shop.example":              {address: "shop.example:80", host: "shop.example", path: "/"},
		"https://shop.example/a?b=c#d":     {address: "shop.example:443", host: "shop.example", path: "/a?b=c", tls: true},
		"http://[::1]:8080/":               {address: "[::1]:8080", host: "[::1]:8080", path: "/"},
		"http://user:secret@127.0.0.1:81/": {address: "127.0.0.1:81", host: "127.0.0.1:81", path: "/"},
	} {
		if got, err := parseTarget(raw); err != nil || got != want {
			t.Errorf("parseTarget(%q) = %+v, %v, want %+v", raw, got, err, want)
		}
	}
}
