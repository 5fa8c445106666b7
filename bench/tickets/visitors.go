//go:build linux

package tickets

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ropeline/ropeline/bench/rig"
)

// The load: visitors who come at their times, whether or not those before them have their
// answers, and who are measured from when they were due.

// loadStep is how often the load looks who is due.
const loadStep = 100 * time.Microsecond

// decider answers visitors. begin has one decided, and sees to it that v.answered is
// called exactly once, by whichever goroutine, but for each lane by one at a time.
type decider interface {
	begin(v *visitor)
}

// lane is a place at which visitors come, one after the other: a node, or Redis.
type lane struct {
	decider
	load *load

	// The answers' side.
	took    *hdrhistogram.Histogram // µs
	given   int64
	refused atomic.Int64 // the load's own goroutine finds some refused
	done    atomic.Int64 // given and refused, for the load

	_ [64]byte // keeps neighbours' counts apart
}

// visitor is one who asks. It is used again once it has its answer.
type visitor struct {
	due    int64 // ns of load.clock
	lane   *lane
	answer any // what a decider calls back, made once
}

// answered takes the answer.
func (v *visitor) answered(given bool) {
	n := v.lane
	if given {
		n.given++
		us := (n.load.clock() - v.due) / int64(time.Microsecond)
		_ = n.took.RecordValue(min(max(us, 1), longest)) // bounded, as it asks for
	} else {
		n.refused.Add(1)
	}
	n.load.visitors.Put(v)
	n.done.Add(1) // the last: whoever reads the other counts has seen this
}

// longest is the longest wait that is told apart, in µs.
const longest = int64(time.Minute / time.Microsecond)

// load drives visitors to deciders.
type load struct {
	started  time.Time
	visitors sync.Pool // of *visitor
}

func newLoad() *load {
	return &load{started: time.Now(), visitors: sync.Pool{New: func() any { return new(visitor) }}}
}

// clock returns ns of a monotonic clock.
func (l *load) clock() int64 { return int64(time.Since(l.started)) }

// spell is what came of some seconds of load.
type spell struct {
	Wanted  float64 // visitors a second; 0: as many as are answered
	Came    int64
	Given   int64
	Refused int64
	Lasted  time.Duration // until the last of them had the answer

	P50, P99, P999 float64       // ms, from when visitors were due
	CPU            time.Duration // of this process, for each visitor
	Server         time.Duration // of another process that decides, for each visitor; 0: there is none
}

// cpu is the processor time of all for each visitor.
func (s spell) cpu() time.Duration { return s.CPU + s.Server }

// Rate returns how many visitors a second were let in.
func (s spell) Rate() float64 { return float64(s.Given) / s.Lasted.Seconds() }

// sustained reports whether all who came were let in, and the last of them about as soon as the
// first: nobody was left over for later.
func (s spell) sustained(lasts time.Duration) bool {
	return s.Refused == 0 && s.Lasted < lasts+lasts/20+50*time.Millisecond
}

func (s spell) String() string {
	return fmt.Sprintf("%.0f visitors a second wanted, %.0f given, %d refused; p50 %.2f, p99 %.2f, p99.9 %.2f ms; %.3f µs of processor time for each, and %.3f µs of a server",
		s.Wanted, s.Rate(), s.Refused, s.P50, s.P99, s.P999, float64(s.CPU)/1e3, float64(s.Server)/1e3)
}

// drive has visitors come to the lanes in turn, at an even rate, and returns when all have
// their answers. Without a rate it has as many under way as are allowed, and so finds about
// how many a second there can be.
func (l *load) drive(ctx context.Context, lanes []*lane, perSecond float64, under int64, lasts time.Duration) (s spell, err error) {
	for _, n := range lanes {
		n.load, n.given = l, 0
		n.refused.Store(0)
		n.done.Store(0)
		n.took = hdrhistogram.New(1, longest, 3)
	}
	before, start := rig.Own(), l.clock()
	if s.Came, err = l.send(ctx, lanes, perSecond, under, lasts); err != nil {
		return s, err
	}
	s.Lasted = time.Duration(l.clock() - start)
	used := rig.Own() - before
	took := hdrhistogram.New(1, longest, 3)
	for _, n := range lanes {
		s.Given, s.Refused = s.Given+n.given, s.Refused+n.refused.Load()
		took.Merge(n.took)
	}
	s.Wanted = perSecond
	at := func(q float64) float64 { return float64(took.ValueAtQuantile(q)) / 1000 }
	s.P50, s.P99, s.P999 = at(50), at(99), at(99.9)
	s.CPU = used / time.Duration(max(1, s.Came))
	return s, nil
}

// send is the load's own goroutine. The thread is its own as well: it sleeps by the
// system's clock, since that of Go wakes who sleeps for less than a ms when the
// ms is over.
func (l *load) send(ctx context.Context, lanes []*lane, perSecond float64, under int64, lasts time.Duration) (sent int64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start, all := l.clock(), int64(math.Ceil(lasts.Seconds()*perSecond))
	for over := false; !over && ctx.Err() == nil; sleep(loadStep) {
		now := l.clock() - start
		over = now >= int64(lasts)
		due := l.done(lanes) + under
		switch {
		case perSecond > 0: // those too whom a load that was held up finds due only when it is over
			due = min(int64(float64(now)/1e9*perSecond)+1, all)
		case over:
			due = sent
		}
		for ; sent < due; sent++ {
			v, at := l.visitors.Get().(*visitor), now
			if perSecond > 0 {
				at = int64(float64(sent) / perSecond * 1e9)
			}
			v.lane, v.due = lanes[sent%int64(len(lanes))], start+at
			v.lane.begin(v)
		}
	}
	for limit := l.clock() + int64(10*time.Second); l.done(lanes) < sent; sleep(loadStep) {
		if l.clock() > limit {
			return sent, fmt.Errorf("%d of %d visitors have no answer after 10 s", sent-l.done(lanes), sent)
		}
	}
	return sent, ctx.Err()
}

func (l *load) done(lanes []*lane) (n int64) {
	for _, lane := range lanes {
		n += lane.done.Load()
	}
	return n
}

// sleep has this thread sleep, about as long as is said.
func sleep(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // who is woken early looks early
}
