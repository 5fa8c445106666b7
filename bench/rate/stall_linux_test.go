package rate

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stalling answers at once, but for one time in which it answers nobody, in the middle of things.
type stalling struct {
	mu      sync.Mutex // held while an answer is written, and through the stall
	answers int
	after   int // answers before it stalls
	stall   time.Duration
}

func (s *stalling) answer(_ int64, _ string, w net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers++; s.answers == s.after {
		time.Sleep(s.stall)
	}
	_, err := w.Write([]byte(short))
	return err == nil
}

// TestStallShowsInTheOpenModel holds what this package is for: whoever was due while the server stood still
// has waited, and with a fifth of the time that is a fifth of the requests.
func TestStallShowsInTheOpenModel(t *testing.T) {
	const stall = 200 * time.Millisecond
	s := startScripted(t, (&stalling{after: 300, stall: stall}).answer)
	r := mustRun(t, Config{Address: s.address, Rate: 1000, Conns: 4, Lasts: time.Second, Drain: 20 * time.Second})
	if r.Due != 1000 || r.Answered != r.Due {
		t.Fatalf("got %+v, want 1000 answers", r)
	}
	// Ten in a hundred were due in the first half of it.
	if half, most := float64((stall / 2).Microseconds()), float64((stall * 9 / 10).Microseconds()); r.Latency.P90 < half*0.95 || r.Latency.P99 < most {
		t.Errorf("got %+v µs, with a stall of %v in one second", r.Latency, stall)
	}
}

// TestStallIsHiddenByTheClosedModel: few requests met the same stall, since few were sent, and
// p99 does not show it.
func TestStallIsHiddenByTheClosedModel(t *testing.T) {
	const stall, conns, enough = 200 * time.Millisecond, 4, 4000
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stalls := stalling{after: 300, stall: stall}
	s := startScripted(t, func(conn int64, line string, w net.Conn) bool {
		goesOn := stalls.answer(conn, line, w)
		stalls.mu.Lock()
		if stalls.answers >= enough {
			stop()
		}
		stalls.mu.Unlock()
		return goesOn
	})
	r, err := Run(ctx, Config{Address: s.address, Conns: conns, Requests: [][]byte{get("/")}, Lasts: time.Hour})
	if err == nil || r.Answered < enough/2 {
		t.Fatalf("got %v and %+v, want it stopped after %d answers", err, r, enough)
	}
	if us := float64(stall.Microseconds()); r.Latency.Max < us || r.Latency.P99 >= us {
		t.Errorf("got %+v µs, with a stall of %v for %d of %d requests", r.Latency, stall, conns, r.Answered)
	}
}

// TestLatenessIsToldFromWaiting sends a request that was due long ago, on connections that were free then,
// and on one that has become free since.
func TestLatenessIsToldFromWaiting(t *testing.T) {
	const now = int64(900 * time.Millisecond)
	for _, freeSince := range []int64{0, int64(500 * time.Millisecond), now} {
		l, err := newLoop(Config{Conns: 1, Rate: 1, Requests: [][]byte{get("/")}})
		if err != nil {
			t.Fatal(err)
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		l.conns = []conn{{fd: pair[0], freeSince: freeSince}}
		l.free <- 0
		l.line, l.end = &schedule{gap: 1e9 / 1}, int64(time.Second)
		l.start = time.Now().Add(-time.Duration(now))
		if err := l.sendDue(now); err != nil {
			t.Fatal(err)
		}
		if got, want := l.tally.late.max, now-freeSince; got != want || l.tally.sent != 1 {
			t.Errorf("free since %v: %v late, want %v", time.Duration(freeSince), time.Duration(got), time.Duration(want))
		}
		l.close()
		_ = unix.Close(pair[1])
	}
}
