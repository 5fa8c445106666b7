package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is what became of a request.
type Outcome uint8

// What becomes of requests.
const (
	Admitted    Outcome = iota // passed on for somebody who is in, or was let in by it
	Queued                     // answered with the waiting page, or its JSON
	Rejected                   // answered with the page of a room that lets nobody in
	Bypassed                   // passed on, since no room or a rule says so
	Malformed                  // refused for its form
	Unavailable                // this node could not decide
	Failed                     // passed on, and not answered by the origin
	outcomes                   // how many there are
)

var outcomeWords = [outcomes]string{"admitted", "queued", "rejected", "bypassed", "malformed", "unavailable", "failed"}

// String returns the outcome as one word in lower case.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeWords[o]
	}
	return "unknown"
}

// RoomName tells a room from the others. The zero value is none.
type RoomName struct{ Zone, Room string }

// durationBounds are of seconds. Most answers come from memory in well under a
// millisecond; those of an origin may take a while.
var durationBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Requests counts requests as they end. There are series of the rooms that SetRooms
// named, and of no others.
type Requests struct {
	most      int
	counts    *prometheus.CounterVec
	durations *prometheus.HistogramVec

	rooms atomic.Pointer[map[RoomName]*roomCounts]
	other *roomCounts                   // of no room, and of such as have no series
	took  [outcomes]prometheus.Observer // immutable

	mu sync.Mutex // held while rooms is replaced
}

type roomCounts [outcomes]prometheus.Counter

func newRequests(most int) *Requests {
	count, duration := metricNamed(requestsName), metricNamed(durationName)
	r := &Requests{
		most:      most,
		counts:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: count.Name, Help: count.Help}, count.Labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: duration.Name, Help: duration.Help, Buckets: durationBounds}, duration.Labels),
	}
	r.other = r.countsOf(RoomName{})
	r.rooms.Store(&map[RoomName]*roomCounts{})
	for o := range outcomes {
		r.took[o] = r.durations.WithLabelValues(o.String())
	}
	return r
}

func (r *Requests) countsOf(n RoomName) *roomCounts {
	var c roomCounts
	for o := range outcomes {
		c[o] = r.counts.WithLabelValues(label(n.Zone), label(n.Room), o.String())
	}
	return &c
}

// SetRooms says which rooms there are. Series of rooms that are gone go with them. Of more
// than Config.MaxRooms the first have series.
func (r *Requests) SetRooms(names []RoomName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, rooms := *r.rooms.Load(), map[RoomName]*roomCounts{}
	for _, n := range names {
		n = RoomName{label(n.Zone), label(n.Room)}
		if _, twice := rooms[n]; twice || n == (RoomName{}) {
			continue
		}
		if len(rooms) == r.most {
			break // the sample's rooms say how many were left out
		}
		if rooms[n] = before[n]; rooms[n] == nil {
			rooms[n] = r.countsOf(n)
		}
	}
	r.rooms.Store(&rooms)
	for n := range before {
		if rooms[n] == nil {
			r.counts.DeletePartialMatch(prometheus.Labels{"zone": n.Zone, "room": n.Room})
		}
	}
}

// Record counts a request that has ended. It does not allocate, nor keep the name.
func (r *Requests) Record(n RoomName, o Outcome, took time.Duration) {
	if o >= outcomes {
		panic("metrics: no such outcome")
	}
	c := (*r.rooms.Load())[n]
	if c == nil {
		c = r.other
	}
	c[o].Inc()
	r.took[o].Observe(took.Seconds())
}
