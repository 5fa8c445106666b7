package rate

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// lastStatus is the highest status code that an answer may have.
const lastStatus = 999

// tally counts what becomes of the requests that count. It does not allocate.
type tally struct {
	due, sent, answered int64
	inTime              int64 // whole answers that came within the measured time, of whichever requests
	status              [lastStatus + 1]int64
	errors              map[ErrorKind]int64
	latency, late       figures
	last                error
}

func newTally() *tally {
	return &tally{errors: map[ErrorKind]int64{}, latency: newFigures(), late: newFigures()}
}

// fail counts an error. err says more of it, nil: nothing is known.
func (t *tally) fail(kind ErrorKind, err error) {
	t.errors[kind]++
	if err != nil {
		t.last = err
	}
}

// answer counts an answer, after some nanoseconds.
func (t *tally) answer(status int, after int64) {
	t.answered++
	t.status[status]++
	t.latency.add(after)
}

// result returns what was counted in some time.
func (t *tally) result(rate float64, lasted time.Duration) Result {
	r := Result{
		Model: Closed, RateWanted: rate, Seconds: lasted.Seconds(),
		Due: t.due, Sent: t.sent, Answered: t.answered,
		Status: map[int]int64{}, Errors: t.errors,
		Latency: t.latency.latency(),
	}
	if rate > 0 {
		r.Model = Open
		late := t.late.latency()
		r.Late = Lateness{P99: late.P99, Max: late.Max}
	}
	if lasted > 0 {
		r.Rate = rounded(float64(t.inTime)/lasted.Seconds(), 10)
	}
	for code, n := range t.status {
		if n > 0 {
			r.Status[code] = n
		}
	}
	if t.last != nil {
		r.LastError = t.last.Error()
	}
	return r
}

// figures are times: how many of each length, and the longest as exact as the clock.
type figures struct {
	lengths *hdrhistogram.Histogram // microseconds
	max     int64                   // nanoseconds
}

const longestCounted = int64(time.Minute / time.Microsecond)

func newFigures() figures {
	return figures{lengths: hdrhistogram.New(1, longestCounted, 3)}
}

// add counts some nanoseconds. Below a microsecond the histogram has them as one, above a minute as a minute.
func (f *figures) add(ns int64) {
	ns = max(ns, 0)
	f.max = max(f.max, ns)
	// It is within the range of the histogram, so that it is counted.
	_ = f.lengths.RecordValue(min(max((ns+500)/1000, 1), longestCounted))
}

func (f *figures) latency() Latency {
	longest := float64(f.max) / 1e3
	at := func(percent float64) float64 { // of a long tail the histogram knows less exactly than of its end
		return rounded(min(float64(f.lengths.ValueAtPercentile(percent)), longest), 10)
	}
	return Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: rounded(longest, 10)}
}

// rounded returns x with as much behind the point as parts says: 10 for one digit.
func rounded(x, parts float64) float64 { return math.Round(x*parts) / parts }
