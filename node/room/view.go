package room

import (
	"math"
	"time"
)

// Unlimited is the allowance of a room that admits everybody.
const Unlimited = math.MaxInt32

// View is one room as one node sees it at one moment, with what follows from
// it. It is never changed once built, so any number of requests may read it.
//
// A waiting visitor who arrived before Cursor has a place reserved, and only
// such visitors draw on AllowWaiting. Everyone else who may try, which is new
// visitors while OpenToNew and waiting ones who arrived before Edge, draws on
// AllowNew: those places are fewer than the visitors who may ask for them.
//
// Both allowances hold from the moment of the counts that the view was built
// from, until the next view. What a node admits in between comes off them.
type View struct {
	BuiltAt  time.Time
	Settings Settings   // those that hold, an event's overrides applied
	Event    EventState // what an event is doing
	Terms    uint32     // hash of what an estimate rests on and the operator set; never 0

	Active           int // leases, over all sites
	Waiting          int // over all sites
	AdmittedLast60s  int
	AdmittedMinute   float64 // admitted per minute, averaged; 0 is unknown
	Utilization      float64 // the fuller of both limits, 0 … 1
	Slots            int     // how many more may be active right now, anywhere
	SlotsNew         int     // those of Slots beyond all waiting visitors
	Cursor           time.Time
	Edge             time.Time // never before Cursor
	OpenToNew        bool
	AllowWaiting     int
	AllowNew         int
	AllowAnywhere    int          // Counter only: places that no site has a claim to, for new visitors
	Buckets          []Bucket     // oldest first
	Sites            []SitePlaces // by name
	ownGranules      []count
	hold             time.Time // while prequeueing: the first place that waits for the start
	closed           bool      // nobody is let in
	refreshTolerance time.Duration
}

// Bucket is the visitors who wait and arrived in one span.
type Bucket struct {
	Start    int64 // Unix seconds
	Waiting  int
	Reserved int // slots kept for them
	own      int // of the own site
}

// SitePlaces is one site's part of a room.
type SitePlaces struct {
	Name     string
	Own      bool
	Active   int
	Waiting  int
	Reserved int  // slots kept for its waiting visitors
	New      int  // slots for its new visitors
	Frozen   bool // silent; its counts are the last known
}

// Build works out what one node may do in a room, from counts that are at most
// as old as its news. It is a pure function: nodes that know the same counts
// come to parts that fit together. Settings left at zero have their default.
func Build(s Settings, in Input, now time.Time) *View {
	s = s.WithDefaults()
	s, event := s.At(now)
	t := newTally(s, in, now)
	v := &View{
		BuiltAt: now, Settings: s, Event: event, Terms: terms(&s, event),
		Active: t.active, Waiting: t.waiting,
		AdmittedLast60s: t.last60s, AdmittedMinute: t.rate,
		Slots:            Slots(int64(s.TotalActiveUsers), int64(s.NewUsersPerMinute), int64(t.active), int64(t.last60s)),
		refreshTolerance: tolerance(s.RefreshInterval),
		ownGranules:      t.granules,
	}
	v.Utilization = utilization(s, t)
	p := divide(s, t, v.Slots, now)
	v.SlotsNew = p.rest
	v.fillBuckets(t, p)
	v.fillSites(t, p)
	if s.Policy == Open || s.QueueingMethod == Passthrough {
		v.openAll()
		return v
	}
	v.place(t, p, newTurn(s, in, now))
	return v
}

func utilization(s Settings, t tally) float64 {
	u := max(float64(t.active)/float64(max(1, s.TotalActiveUsers)),
		float64(t.last60s)/float64(max(1, s.NewUsersPerMinute)))
	return min(u, 1)
}

// openAll lets everybody in; the counts still show what the limits would do.
func (v *View) openAll() {
	v.Cursor, v.Edge = v.BuiltAt, v.BuiltAt
	v.OpenToNew = true
	v.AllowWaiting, v.AllowNew = Unlimited, Unlimited
}

func (v *View) fillBuckets(t tally, p places) {
	v.Buckets = make([]Bucket, len(t.buckets))
	for i, q := range t.buckets {
		v.Buckets[i] = Bucket{Start: q.start, Waiting: q.waiting, Reserved: p.reserved[i], own: q.bySite[t.own]}
	}
}

func (v *View) fillSites(t tally, p places) {
	v.Sites = make([]SitePlaces, len(t.sites))
	for i, st := range t.sites {
		v.Sites[i] = SitePlaces{
			Name: st.name, Own: st.own, Active: st.active, Waiting: st.waiting,
			Reserved: p.waiting[i], New: p.fresh[i],
		}
	}
}

// place sets the cursor, the edge and the allowances of this node.
func (v *View) place(t tally, p places, turn turn) {
	c := newCursor(t, p, seconds(v.Settings.BucketSpan))
	v.Cursor, v.Edge = time.Unix(c.cursor, 0), time.Unix(c.edge, 0)
	v.OpenToNew = p.rest > 0
	v.AllowWaiting = min(c.sure, v.Slots)
	contested := c.contested + p.fresh[t.own]
	v.AllowNew = min(nodePart(v.Settings, t, contested, v.Utilization, turn), v.Slots)
}

// terms hashes what the operator set of that which an estimate rests on.
func terms(s *Settings, e EventState) uint32 {
	h := mix(uint64(s.TotalActiveUsers)<<32 ^ uint64(s.NewUsersPerMinute))
	h = mixText(h, string(s.QueueingMethod))
	if s.QueueAll {
		h = mix(h)
	}
	if e.Active {
		h = mixText(h, e.Name)
	}
	return max(1, uint32(h))
}

func mixText(h uint64, text string) uint64 {
	for i := range len(text) {
		h = mix(h ^ uint64(text[i]))
	}
	return mix(h)
}
