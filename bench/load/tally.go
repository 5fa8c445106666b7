package load

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ropeline/ropeline/bench/order"
)

// life is what the tally knows of one visitor. It belongs to the tally and is
// guarded by the tally's lock.
type life struct {
	arrived  time.Duration // when the first request was due
	admitted time.Duration // when the first answer of the site came; -1: none yet
	let      bool          // whether the last decision was to admit
	waiting  bool          // whether the last decision was to wait
	waited   bool          // whether any decision was to wait
	place    time.Time     // the arrival that the room told last; zero: none
	lastSent time.Duration // when the last request that was admitted left
	span     int           // index of the newest span, -1: none
}

// span is a time during which one visitor was active for certain.
type span struct{ from, to time.Duration }

// tally counts what happens to all visitors of a run.
type tally struct {
	session time.Duration

	mu      sync.Mutex // guards the following
	report  Report     // its counts; Waiting is right now
	gone    int
	latency *hdrhistogram.Histogram
	order   []order.Rank // of the visitors who have left after being let in
	present map[*life]struct{}
	spans   []span
}

// Latencies are kept from a microsecond to ten minutes with three digits.
const (
	latencyUnit = time.Microsecond
	latencyMax  = 10 * time.Minute
)

func newTally(session time.Duration) *tally {
	return &tally{
		session: session,
		report:  Report{Status: map[string]int{}},
		latency: hdrhistogram.New(1, int64(latencyMax/latencyUnit), 3),
		present: make(map[*life]struct{}),
	}
}

// arrive begins the life of a visitor whose first request was due at due.
func (t *tally) arrive(due time.Duration) *life {
	v := &life{arrived: due, admitted: -1, span: -1}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Visitors++
	t.present[v] = struct{}{}
	return v
}

// fail counts a try that brought no answer.
func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Requests++
	t.report.Errors++
	t.report.lastError = err
}

// answer counts an answer to v, whose request was due at due. An answer that is
// of no use to v counts as an error too, and has no latency: the request goes
// on until it is answered or given up.
func (t *tally) answer(v *life, due time.Duration, a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Requests++
	t.report.Status[statusClass(a.status)]++
	if a.failed() {
		t.report.Errors++
		return
	}
	// The value fits: latencyMax bounds it, and time runs forward.
	_ = t.latency.RecordValue(int64(min(max(a.done-due, 0), latencyMax) / latencyUnit))
	switch a.verdict {
	case waiting:
		t.waitLocked(v, a)
	case admitted:
		t.admitLocked(v, a)
	}
}

func statusClass(code int) string {
	if code < 100 || code > 599 {
		return "other"
	}
	return string(rune('0'+code/100)) + "xx"
}

func (t *tally) waitLocked(v *life, a answer) {
	if !v.waited {
		v.waited = true
		t.report.Waited++
	}
	if !v.waiting {
		v.waiting = true
		t.report.Waiting++
		t.report.PeakWaiting = max(t.report.PeakWaiting, t.report.Waiting)
	}
	// The room renewed the session at lastSent or later, so it cannot have
	// been over when this answer was made unless more time went by.
	if v.let && a.done < v.lastSent+t.session {
		t.report.SessionsLost++
	}
	v.let = false
	if a.place.IsZero() {
		return
	}
	if !v.place.IsZero() && a.place.After(v.place) {
		t.report.PlacesLost++
	}
	v.place = a.place
}

func (t *tally) admitLocked(v *life, a answer) {
	if v.admitted < 0 {
		v.admitted = a.done
		t.report.Admitted++
	}
	if v.waiting {
		v.waiting = false
		t.report.Waiting--
	}
	v.let = true
	v.place = time.Time{}
	v.lastSent = max(v.lastSent, a.sent)

	until := a.sent + t.session
	switch {
	case v.span >= 0 && a.done <= t.spans[v.span].to:
		t.spans[v.span].to = max(t.spans[v.span].to, until)
	case a.done < until:
		v.span = len(t.spans)
		t.spans = append(t.spans, span{from: a.done, to: until})
	}
}

// leave ends the life of a visitor.
func (t *tally) leave(v *life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.present, v)
	t.gone++
	if v.waiting {
		v.waiting = false
		t.report.Waiting--
	}
	if v.admitted < 0 {
		t.report.GaveUp++
		return
	}
	t.order = append(t.order, order.Rank{First: int64(v.arrived), Second: int64(v.admitted)})
}

// snapshot returns the state of the run at now.
func (t *tally) snapshot(now time.Duration) Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Snapshot{
		Elapsed: now, Visitors: t.report.Visitors, Gone: t.gone, Admitted: t.report.Admitted,
		Waiting: t.report.Waiting, Requests: t.report.Requests, Errors: t.report.Errors,
	}
}

// end returns what the run came to at now. Visitors who are still present
// and waiting come last in the order of admission, all at one place.
func (t *tally) end(now time.Duration) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	ranks := slices.Clone(t.order)
	for v := range t.present {
		switch {
		case v.admitted >= 0:
			ranks = append(ranks, order.Rank{First: int64(v.arrived), Second: int64(v.admitted)})
		case v.waiting:
			ranks = append(ranks, order.Rank{First: int64(v.arrived), Second: math.MaxInt64})
		}
	}
	millis := func(quantile float64) float64 {
		value := t.latency.ValueAtQuantile(quantile)
		return float64(value) * float64(latencyUnit) / float64(time.Millisecond)
	}
	r := t.report
	r.Latency = Latency{P50: millis(50), P99: millis(99), P999: millis(99.9)}
	r.PeakActive, r.OrderError, r.ElapsedSeconds = peak(t.spans), order.Error(ranks), now.Seconds()
	r.Status = maps.Clone(r.Status)
	if now > 0 {
		r.DecisionsPerSecond = float64(r.Requests-r.Errors) / now.Seconds()
	}
	return r
}

// peak returns how many spans cover the same moment at most. A span ends just
// before the moment at which it ends.
func peak(spans []span) int {
	from := make([]time.Duration, len(spans))
	to := make([]time.Duration, len(spans))
	for i, s := range spans {
		from[i], to[i] = s.from, s.to
	}
	slices.Sort(from)
	slices.Sort(to)
	most, ended := 0, 0
	for began, at := range from {
		for ended < len(to) && to[ended] <= at {
			ended++
		}
		most = max(most, began+1-ended)
	}
	return most
}
