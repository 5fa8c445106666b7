package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropeline/ropeline/crdt"
)

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

	outcomes []string // what may become of requests, by its numbers
	took     []prometheus.Observer

	rooms atomic.Pointer[map[crdt.RoomID]roomCounts]
	other roomCounts // of no room, and of such as have no series

	mu    sync.Mutex // guards the following; held while rooms is replaced
	names map[RoomName]roomCounts
}

// roomCounts are the requests of a room by their outcomes.
type roomCounts []prometheus.Counter

func newRequests(outcomes []string) *Requests {
	count, duration := metricNamed(requestsName), metricNamed(durationName)
	r := &Requests{
		outcomes:  outcomes,
		counts:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: count.Name, Help: count.Help}, count.Labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: duration.Name, Help: duration.Help, Buckets: durationBounds}, duration.Labels),
	}
	r.other = r.countsOf(RoomName{})
	r.rooms.Store(&map[crdt.RoomID]roomCounts{})
	for _, o := range outcomes {
		r.took = append(r.took, r.durations.WithLabelValues(o))
	}
	return r
}

func (r *Requests) countsOf(n RoomName) (c roomCounts) {
	for _, o := range r.outcomes {
		c = append(c, r.counts.WithLabelValues(label(n.Zone), label(n.Room), o))
	}
	return c
}

// SetRooms says which rooms there are. Series of rooms that are gone go with them. Of more
// than maxRooms the first have series.
func (r *Requests) SetRooms(all []NamedRoom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, names, rooms := r.names, map[RoomName]roomCounts{}, map[crdt.RoomID]roomCounts{}
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

// Record counts a request about a room that has ended, of which that outcome has come; the zero id is
// none. It does not allocate.
func (r *Requests) Record(of crdt.RoomID, outcome int, took time.Duration) {
	c := (*r.rooms.Load())[of]
	if c == nil {
		c = r.other
	}
	c[outcome].Inc()
	r.took[outcome].Observe(took.Seconds())
}
