package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropeline/ropeline/crdt"
)

// Outcome is what became of a request.
type Outcome uint8

// What becomes of requests.
const (
	Admitted    Outcome = iota // passed on for somebody who is in, or was let in by it
	Queued                     // answered with the waiting page, or its JSON
	Rejected                   // answered with the page of a room that lets nobody in
	Bypassed                   // passed on, since no room or a rule says so
	Limited                    // answered with what a rate limit rule says
	Malformed                  // refused for its form
	Unavailable                // this node could not decide
	Failed                     // passed on, and not answered by the origin
	outcomes                   // how many there are
)

var outcomeWords = [outcomes]string{"admitted", "queued", "rejected", "bypassed", "limited", "malformed", "unavailable", "failed"}

// String returns the outcome as one word in lower case.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeWords[o]
	}
	return "unknown"
}

// RoomName is what series of a room are labelled with. The zero value is none.
type RoomName struct{ Zone, Room string }

// NamedRoom is a room and its name.
type NamedRoom struct {
	ID crdt.RoomID
	RoomName
}

// durationBounds are of seconds. Most answers come from memory in well under a
// millisecond; those of an origin may take a while.
var durationBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Requests counts requests as they end. There are series of the rooms that SetRooms
// named, and of no others.
type Requests struct {
	counts    *prometheus.CounterVec
	durations *prometheus.HistogramVec

	rooms atomic.Pointer[map[crdt.RoomID]*roomCounts]
	other *roomCounts                   // of no room, and of such as have no series
	took  [outcomes]prometheus.Observer // immutable

	mu    sync.Mutex // guards the following; held while rooms is replaced
	names map[RoomName]*roomCounts
}

type roomCounts [outcomes]prometheus.Counter

func newRequests() *Requests {
	count, duration := metricNamed(requestsName), metricNamed(durationName)
	r := &Requests{
		counts:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: count.Name, Help: count.Help}, count.Labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: duration.Name, Help: duration.Help, Buckets: durationBounds}, duration.Labels),
	}
	r.other = r.countsOf(RoomName{})
	r.rooms.Store(&map[crdt.RoomID]*roomCounts{})
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
// than maxRooms the first have series.
func (r *Requests) SetRooms(all []NamedRoom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, names, rooms := r.names, map[RoomName]*roomCounts{}, map[crdt.RoomID]*roomCounts{}
	for _, a := range all {
		n := RoomName{label(a.Zone), label(a.Room)}
		if _, twice := names[n]; twice || n == (RoomName{}) {
			continue
		}
		if len(names) == maxRooms {
			break // the sample's rooms say how many were left out
		}
		if names[n] = before[n]; names[n] == nil {
			names[n] = r.countsOf(n)
		}
		rooms[a.ID] = names[n]
	}
	r.rooms.Store(&rooms)
	r.names = names
	for n := range before {
		if names[n] == nil {
			r.counts.DeletePartialMatch(prometheus.Labels{"zone": n.Zone, "room": n.Room})
		}
	}
}

// Record counts a request about a room that has ended; the zero id is none. It does not
// allocate.
func (r *Requests) Record(of crdt.RoomID, o Outcome, took time.Duration) {
	if o >= outcomes {
		panic("metrics: no such outcome")
	}
	c := (*r.rooms.Load())[of]
	if c == nil {
		c = r.other
	}
	c[o].Inc()
	r.took[o].Observe(took.Seconds())
}
