package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
)

// Figures must not be fooled: each of these meshes is wrong in one way, and one
// figure or violation must say so.

// wrong is a node that is right but for what a test replaces.
type wrong struct {
	brain
	answer func(p node.Pass, known bool, now time.Time) (node.Verdict, bool)
	counts func() (active, waiting int)
	panics time.Time
	dumb   bool // never says that it is ready
	born   birth
}

func (w *wrong) begin(p node.Pass, known bool, now time.Time, done func(node.Verdict)) (node.Verdict, bool) {
	if w.answer != nil {
		if v, ok := w.answer(p, known, now); ok {
			return v, true
		}
	}
	return w.brain.begin(p, known, now, done)
}

func (w *wrong) Ready() bool { return !w.dumb && w.brain.Ready() }

func (w *wrong) seen() (active, waiting int) {
	if w.counts != nil {
		return w.counts()
	}
	return w.brain.seen()
}

func (w *wrong) Receive(from replica.Peer, kind uint8, payload []byte, now time.Time) ([]node.Message, error) {
	if !w.panics.IsZero() && now.After(w.panics) {
		panic("broken invariant")
	}
	return w.brain.Receive(from, kind, payload, now)
}

func runWrong(t *testing.T, cfg Config, spoil func(*wrong)) *Result {
	t.Helper()
	r, err := run(t.Context(), cfg, func(o birth, now time.Time) (brain, error) {
		b, err := newShipped(o, now)
		w := &wrong{brain: b, born: o}
		spoil(w)
		return w, err
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func kinds(r *Result) (all []string) {
	for _, v := range r.Violations {
		if !slices.Contains(all, v.Kind) {
			all = append(all, v.Kind)
		}
	}
	return all
}

func TestOpenRoomOvershoots(t *testing.T) {
	t.Parallel()
	cfg := small(300, 3*time.Minute)
	held := simulate(t, cfg)
	cfg.Room.Policy = room.Open
	open := simulate(t, cfg)
	if held.OvershootPct > 20 || open.OvershootPct < 100 || open.Queued != 0 || held.Queued == 0 {
		t.Errorf("overshoot %v %% with limits, %v %% without; %d and %d had to wait", held.OvershootPct, open.OvershootPct, held.Queued, open.Queued)
	}
	cfg = small(300, 3*time.Minute)
	cfg.Room.TotalActiveUsers, cfg.Room.NewUsersPerMinute = 1000, 30
	held = simulate(t, cfg)
	cfg.Room.Policy = room.Open
	if open = simulate(t, cfg); held.OvershootRatePct > 20 || open.OvershootRatePct < 100 {
		t.Errorf("overshoot of the rate is %v %% with limits, %v %% without", held.OvershootRatePct, open.OvershootRatePct)
	}
}

// TestClosedNodesAreIdle has nodes refuse everybody for a minute.
func TestClosedNodesAreIdle(t *testing.T) {
	t.Parallel()
	cfg := small(300, 3*time.Minute)
	cfg.Room.TotalActiveUsers = 1000
	right := simulate(t, cfg)
	until := Epoch().Add(2 * time.Minute)
	r := runWrong(t, cfg, func(w *wrong) {
		w.answer = func(p node.Pass, known bool, now time.Time) (node.Verdict, bool) {
			return refusal(p, known, now), now.Before(until) && !p.Accepted()
		}
	})
	if right.IdlePct > 1 || r.IdlePct < 2 || r.EarlyQueuedPct < 30 || right.EarlyQueuedPct > 1 {
		t.Errorf("idle %v %% and %v %%, refused early %v %% and %v %%", right.IdlePct, r.IdlePct, right.EarlyQueuedPct, r.EarlyQueuedPct)
	}
	if r.WaitP50 < right.WaitP50+10 {
		t.Errorf("half wait for less than %v s, as if nothing were wrong", r.WaitP50)
	}
}

// refusal has somebody wait, in the place they have.
func refusal(p node.Pass, known bool, now time.Time) node.Verdict {
	if !known {
		p = node.Pass{Visitor: node.VisitorID{1, byte(now.UnixNano()), byte(now.UnixNano() >> 8), byte(now.UnixNano() >> 16), byte(now.UnixNano() >> 24)}, Room: roomID, Arrival: now}
	}
	p.LastPoll, p.Refresh = now, 10*time.Second
	return node.Verdict{Pass: p, SetPass: true, Refresh: p.Refresh}
}

func TestNobodyLetInIsAViolation(t *testing.T) {
	r := runWrong(t, small(30, time.Minute), func(w *wrong) {
		w.answer = func(p node.Pass, known bool, now time.Time) (node.Verdict, bool) { return refusal(p, known, now), true }
	})
	if !slices.Contains(kinds(r), NeverLetIn) || r.LetIn != 0 || r.WaitingAtEnd != 30 {
		t.Errorf("violations %v, %d let in, %d wait", kinds(r), r.LetIn, r.WaitingAtEnd)
	}
}

func TestLostPlaceIsAViolation(t *testing.T) {
	t.Parallel()
	r := runWrong(t, small(200, time.Minute), func(w *wrong) {
		w.answer = func(p node.Pass, known bool, now time.Time) (node.Verdict, bool) {
			if !known || p.Accepted() || now.UnixMilli()%7 != 0 {
				return node.Verdict{}, false
			}
			return refusal(node.Pass{}, false, now), true
		}
	})
	if !slices.Contains(kinds(r), PlaceLost) || r.PlacesLost == 0 {
		t.Errorf("violations %v, %d places lost", kinds(r), r.PlacesLost)
	}
}

func TestTwoTicketsAreAViolation(t *testing.T) {
	cfg := small(100, time.Minute)
	cfg.Lost = 0.3
	r := runWrong(t, cfg, func(w *wrong) {
		w.answer = func(p node.Pass, known bool, now time.Time) (node.Verdict, bool) {
			v := refusal(p, known, now)
			if known {
				v.Admit, v.Pass.AcceptedAt, v.Pass.LeaseEnd = true, now, now.Add(time.Minute)
			}
			return v, !p.Accepted()
		}
	})
	if !slices.Contains(kinds(r), LetInTwice) || r.Doubled == 0 {
		t.Errorf("violations %v, %d doubled", kinds(r), r.Doubled)
	}
}

func TestCountsThatStayAreAViolation(t *testing.T) {
	r := runWrong(t, small(20, time.Minute), func(w *wrong) {
		w.counts = func() (int, int) { return 1, 0 }
	})
	if !slices.Contains(kinds(r), CountsRemain) {
		t.Errorf("violations %v", kinds(r))
	}
}

func TestPanicIsAViolation(t *testing.T) {
	r := runWrong(t, small(20, time.Minute), func(w *wrong) { w.panics = Epoch().Add(30 * time.Second) })
	if len(r.Violations) != 1 || r.Violations[0].Kind != NodePanicked || r.Violations[0].Node == "" || r.Violations[0].At < 29 {
		t.Errorf("violations %v", r.Violations)
	}
}

func TestRisingEstimateIsAViolation(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(said int) (room.Estimate, uint32){
		"median":       func(said int) (room.Estimate, uint32) { return room.Estimate{Minutes: said}, 5 },
		"other terms":  func(said int) (room.Estimate, uint32) { return room.Estimate{Minutes: said}, uint32(said) },
		"25th of 100":  func(said int) (room.Estimate, uint32) { return room.Estimate{Minutes: 9, P25: said, P75: 9}, 5 },
		"75th of 100":  func(said int) (room.Estimate, uint32) { return room.Estimate{Minutes: 9, P25: 9, P75: said}, 5 },
		"all the same": func(int) (room.Estimate, uint32) { return room.Estimate{Minutes: 9, P25: 8, P75: 10}, 5 },
	} {
		said := 1
		r := runWrong(t, small(100, time.Minute), func(w *wrong) {
			w.answer = func(p node.Pass, known bool, now time.Time) (node.Verdict, bool) {
				said++
				v := refusal(p, known, now)
				e, terms := tell(said)
				e.Known = true
				v.Estimate = e
				v.Pass.Shown = room.Shown{Terms: terms, Minutes: uint16(e.Minutes), P25: uint16(e.P25), P75: uint16(e.P75)}
				return v, !p.Accepted() && now.Before(Epoch().Add(time.Minute))
			}
		})
		// Afterwards the nodes say what they think, under terms of their own.
		rose := slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Kind == EstimateRose && v.At < 60 })
		if rose != (name != "all the same") {
			t.Errorf("%s: violations %v", name, kinds(r))
		}
	}
}

// TestTwiceTheVisitorsInARoomForAll changes nothing for anybody.
func TestTwiceTheVisitorsInARoomForAll(t *testing.T) {
	t.Parallel()
	for _, visitors := range []int{150, 300} {
		cfg := small(visitors, 3*time.Minute)
		cfg.Room.Policy = room.Open
		if r := simulate(t, cfg); r.WaitMax != 0 || r.LetIn != r.Visitors || r.Queued != 0 || r.OrderError != 0 {
			t.Errorf("%d visitors: longest wait %v s, %d of %d let in, %d queued", visitors, r.WaitMax, r.LetIn, r.Visitors, r.Queued)
		}
	}
}

func TestRandomHasNoOrder(t *testing.T) {
	t.Parallel()
	cfg := small(300, 3*time.Minute)
	fifo := simulate(t, cfg)
	cfg.Room.QueueingMethod = room.Random
	random := simulate(t, cfg)
	if fifo.OrderError > 0.1 || random.OrderError < 0.2 {
		t.Errorf("order error %v for fifo, %v for random", fifo.OrderError, random.OrderError)
	}
}

func TestGivingUpIsCounted(t *testing.T) {
	t.Parallel()
	cfg := small(600, 3*time.Minute)
	cfg.Abandon, cfg.Patience = 0.5, 30*time.Second
	r := simulate(t, cfg)
	if part := float64(r.GaveUp) / float64(r.Queued); part < 0.2 || part > 0.5 || r.LetIn+r.GaveUp != r.Visitors {
		t.Errorf("%d of %d who had to wait gave up; %d of %d let in", r.GaveUp, r.Queued, r.LetIn, r.Visitors)
	}
}

func TestRejectTurnsAway(t *testing.T) {
	cfg := small(60, time.Minute)
	cfg.Room.QueueingMethod = room.Reject
	if r := simulate(t, cfg); r.TurnedAway != r.Visitors || r.LetIn != 0 || r.WaitingAtEnd != 0 {
		t.Errorf("%d of %d turned away, %d let in", r.TurnedAway, r.Visitors, r.LetIn)
	}
}

func TestContextEndsARun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := Run(ctx, small(60, time.Minute)); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestWeightsAndRotation(t *testing.T) {
	t.Parallel()
	cfg := small(900, 3*time.Minute)
	cfg.Sites, cfg.Weights, cfg.Rotate = 3, []float64{1, 0, 0}, time.Minute
	cfg.Room.Policy = room.Open
	cfg.Stay = 0
	_, points := watch(t, cfg)
	turns := 0
	for _, p := range within(points, time.Second, 3*time.Minute-time.Second) {
		if p.at%time.Minute != 50*time.Second {
			continue
		}
		if turns++; p.busySite != int32(p.at/time.Minute) {
			t.Errorf("at %v most are at site %d", p.at, p.busySite+1)
		}
	}
	if turns != 3 {
		t.Errorf("%d turns were seen", turns)
	}
}

func TestNodeThatIsNeverReadyIsAViolation(t *testing.T) {
	cfg := small(20, time.Minute)
	r := runWrong(t, cfg, func(w *wrong) { w.dumb = w.born.boot > 1 })
	if len(r.Violations) != 0 {
		t.Fatalf("without a restart: %v", r.Violations)
	}
	cfg.Faults = []Fault{{Kind: Crash, Site: 1, Node: 1, From: 20 * time.Second, For: 5 * time.Second}}
	r = runWrong(t, cfg, func(w *wrong) { w.dumb = w.born.boot > 1 })
	if got := kinds(r); !slices.Equal(got, []string{NeverReady}) || r.Violations[0].Node != "1.1" {
		t.Errorf("violations %v", r.Violations)
	}
}

// TestSessionThatEndsDuringAQuestion does not take the answer for late.
func TestSessionThatEndsDuringAQuestion(t *testing.T) {
	s := newSim(mustDefault(t, small(1, time.Minute)), newShipped)
	s.now = 10 * sec
	s.people.all = []visitor{{phase: inside, active: true, ends: s.now, pending: true, due: s.now + retryAfter, until: s.now + 60*sec}}
	s.oracle.active, s.people.here = 1, 1
	v := &s.people.all[0]
	if s.act(0, 0); !v.pending || v.active || s.f.Unanswered != 0 {
		t.Errorf("pending %v, active %v, %d unanswered", v.pending, v.active, s.f.Unanswered)
	}
	s.now = v.due
	if s.act(0, v.generation); v.pending || s.f.Unanswered != 1 {
		t.Errorf("when it is late: pending %v, %d unanswered", v.pending, s.f.Unanswered)
	}
}
