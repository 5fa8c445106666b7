package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

const sec = int64(time.Second)

func oracleOf(total, perMinute int) *oracle {
	s := room.Settings{TotalActiveUsers: total, NewUsersPerMinute: perMinute}.WithDefaults()
	return newOracle(&s, 0)
}

// at lets time pass and then does something.
func (o *oracle) at(t int64, do ...func()) {
	o.advance(t)
	for _, f := range do {
		f()
	}
}

// TestOracleSlidingMinute lets in two at the end of one calendar minute and two
// at the start of the next.
func TestOracleSlidingMinute(t *testing.T) {
	o := oracleOf(100, 2)
	o.at(58*sec, o.admit)
	o.at(59*sec, o.admit)
	o.at(61*sec, o.admit)
	if o.peakMinute != 3 {
		t.Errorf("three within 3 s: peak %d", o.peakMinute)
	}
	o.at(118*sec-1, func() {
		if len(o.recent) != 3 {
			t.Errorf("%d within the minute just before the first one leaves it", len(o.recent))
		}
	})
	o.at(118*sec, func() {
		if len(o.recent) != 2 {
			t.Errorf("%d within the minute when the first one leaves it", len(o.recent))
		}
	})
}

func TestOracleEarly(t *testing.T) {
	o := oracleOf(2, 1000)
	wait := func() { o.wait(1) }
	refused := func() { o.arrived(true) }
	use := func() { o.use(1) }
	o.at(1*sec, func() { o.arrived(false) }, o.admit, use)
	o.at(2*sec, refused, wait) // a place is free and nobody is there before: early
	o.at(3*sec, refused, wait) // the place is for the one who came before
	o.at(4*sec, o.admit, use)
	o.at(5*sec, refused, wait) // full
	if o.early != 1 || o.arrivals != 4 {
		t.Errorf("%d of %d refused early, want 1 of 4", o.early, o.arrivals)
	}
}

func TestOracleIdle(t *testing.T) {
	o := oracleOf(10, 1000)
	o.at(0, func() { o.wait(1) })
	o.at(10*sec, func() { o.wait(1) })  // 10 s: one waits, ten are free: 1 of 10
	o.at(20*sec, func() { o.wait(-2) }) // 10 s: two wait: 2 of 10
	o.at(90*sec, func() {})             // nobody waits: not counted
	if got := o.idle / o.queued; math.Abs(got-0.15) > 1e-12 || o.queued != float64(20*sec) {
		t.Errorf("idle %v of %v ns, want 0.15 of 20 s", got, o.queued)
	}
}

// TestOracleIdleByRate has the minute's limit bind, and a place come free in the
// middle of a span.
func TestOracleIdleByRate(t *testing.T) {
	o := oracleOf(1000, 2)
	o.at(0, o.admit, o.admit, func() { o.wait(3) })
	o.at(60*sec, func() {}) // nothing is free for 60 s
	o.at(80*sec, func() {}) // then two of two, for 20 s
	if got := o.idle / float64(20*sec); math.Abs(got-1) > 1e-12 || o.queued != float64(80*sec) {
		t.Errorf("idle for %v of 20 s, somebody waits for %v ns", got, o.queued)
	}
}

func TestOracleClosedRoomIsNotIdle(t *testing.T) {
	start := Epoch().Add(6 * time.Minute)
	total, perMinute := 3, 50
	s := room.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 1000, Events: []room.Event{{
		Name: "sale", Start: start, End: start.Add(time.Hour), PrequeueStart: start.Add(-5 * time.Minute),
		TotalActiveUsers: &total, NewUsersPerMinute: &perMinute,
	}}}.WithDefaults()
	o := newOracle(&s, 0)
	o.at(90*sec, func() { o.arrived(true); o.wait(1) })
	o.at(359*sec, func() {})
	if o.queued != 0 || o.early != 0 || o.limits.open {
		t.Errorf("in the pre-queue: %v ns counted, %d early, open %v", o.queued, o.early, o.limits.open)
	}
	o.at(362*sec, func() {})
	if o.limits.active != 3 || o.limits.minute != 50 || o.queued != float64(2*sec) {
		t.Errorf("2 s after the start: limits %+v, %v ns counted", o.limits, o.queued)
	}
	o.at(2*3600*sec, func() {})
	if o.limits.active != 10 {
		t.Errorf("after the event the limit is %d", o.limits.active)
	}
}

func TestWaitsAndArrivals(t *testing.T) {
	figures := func(waits ...wait) (f Figures) {
		f.sumWaits(waits)
		return f
	}
	var line []wait
	for i := range int64(600) {
		came := i * sec
		line = append(line, wait{came: came, in: came + 3*came/10 + 20*sec})
	}
	// Sixty waits of a minute are 0.3 s apart.
	if f := figures(line...); f.WaitR2 != 1 || f.WaitCorrelation != 1 || math.Abs(f.WaitSpread-0.3*math.Sqrt((60*60-1)/12.0)) > 1e-3 {
		t.Errorf("waits that grow by 18 s per minute: R² %v, correlation %v, %v s inside a minute", f.WaitR2, f.WaitCorrelation, f.WaitSpread)
	} else if f.WaitP50 != 20+0.3*299 || f.WaitP99 != 20+0.3*593 || f.WaitMax != 20+0.3*599 {
		t.Errorf("half wait for %v s, 99 of 100 for %v s, the last one for %v s", f.WaitP50, f.WaitP99, f.WaitMax)
	}
	slices.Reverse(line)
	for i := range line {
		line[i].in -= line[i].came
		line[i].came = int64(i) * sec
		line[i].in += line[i].came
	}
	if f := figures(line...); f.WaitCorrelation != -1 || f.WaitR2 != 1 {
		t.Errorf("waits that become shorter: R² %v, correlation %v", f.WaitR2, f.WaitCorrelation)
	}
	if f := figures(); f != (Figures{}) {
		t.Errorf("nobody: %+v", f)
	}
	same := figures(wait{0, 5 * sec, true}, wait{70 * sec, 75 * sec, true})
	if same.WaitCorrelation != 0 || same.WaitSpread != 0 || same.WaitP90 != 5 {
		t.Errorf("equal waits: %+v", same)
	}
}

// TestOrderOfAShuffledPrequeue compares nobody of the pre-queue with each other,
// but all of them with those before and after.
func TestOrderOfAShuffledPrequeue(t *testing.T) {
	start := Epoch().Add(6 * time.Minute)
	event := room.Event{Name: "sale", Start: start, End: start.Add(time.Hour), PrequeueStart: start.Add(-5 * time.Minute), Shuffle: true}
	for _, step := range []struct {
		shuffle bool
		waits   []wait
		want    float64
	}{
		{true, []wait{{100 * sec, 403 * sec, true}, {200 * sec, 402 * sec, true}, {300 * sec, 401 * sec, true}}, 0},
		{false, []wait{{100 * sec, 403 * sec, true}, {200 * sec, 402 * sec, true}, {300 * sec, 401 * sec, true}}, 1},
		{true, []wait{{30 * sec, 402 * sec, true}, {200 * sec, 401 * sec, true}}, 1},   // was there before it
		{true, []wait{{200 * sec, 402 * sec, true}, {361 * sec, 401 * sec, true}}, 1},  // came after it
		{true, []wait{{200 * sec, 402 * sec, true}, {361 * sec, 401 * sec, false}}, 0}, // did not wait
	} {
		event.Shuffle = step.shuffle
		cfg := small(10, time.Minute)
		cfg.Room.Events = []room.Event{event}
		s := newSim(mustDefault(t, cfg), newShipped)
		s.waits = step.waits
		if got := s.orderError(); got != step.want {
			t.Errorf("shuffle %v, %v: order error %v, want %v", step.shuffle, step.waits, got, step.want)
		}
	}
}

// TestWhoRemembersASession looks at whom a second ticket can be blamed on: an anchor that
// has been there all the time, and stays.
func TestWhoRemembersASession(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *sim, m *machine)
		want bool
	}{
		{"nothing happened", func(*sim, *machine) {}, true},
		{"another node has started again", func(s *sim, _ *machine) { s.start(s.machines[2]) }, true},
		{"it has started again", func(s *sim, m *machine) { s.start(m) }, false},
		{"it hands over", func(_ *sim, m *machine) { m.leaving = true }, false},
		{"it has handed over", func(_ *sim, m *machine) { m.away = true }, false},
		{"its disk is lost", func(s *sim, m *machine) { s.wipe(m) }, false},
	} {
		s := newSim(mustDefault(t, steady()), newShipped)
		m := s.machines[1]
		s.start(m)
		v := &visitor{}
		s.anchor(v, m.number+1)
		c.do(s, m)
		if got := s.remembered(v); got != c.want {
			t.Errorf("%s: the session is remembered %t, want %t", c.name, got, c.want)
		}
	}
}
