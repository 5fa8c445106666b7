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
	Settings *Settings  // those that hold, an event's overrides applied; shared, and not to be changed
	Event    EventState // what an event is doing
	Until    time.Time  // when an event next changes that; zero: never
	Terms    uint32     // hash of what an estimate rests on and the operator set; never 0

	OpenToNew bool
	closed    bool // nobody is let in
	opens     bool // from Until on everybody is

	Active          int // leases, over all sites
	Waiting         int // over all sites
	AdmittedLast60s int
	AdmittedMinute  float64 // admitted per minute, averaged; 0 is unknown
	Utilization     float64 // the fuller of both limits, 0 … 1
	Slots           int     // how many more may be active right now, anywhere
	SlotsNew        int     // those of Slots beyond all waiting visitors
	Cursor          time.Time
	Edge            time.Time // never before Cursor
	AllowWaiting    int
	AllowNew        int
	AllowAnywhere   int          // Counter only: places that no site has a claim to, for new visitors
	Buckets         []Bucket     // oldest first
	Sites           []SitePlaces // by name
	hold            time.Time    // while prequeueing: the first place that waits for the start
	line            *line        // nil: nobody waits
}

// line is what else a View knows of those who wait. The zero value is that nobody does.
type line struct {
	ownGranules []count
	served      int // of Waiting: who may be let in by now, and is not at a silent site
}

// newView returns an empty View, with a line where somebody waits.
func newView(waits bool) *View {
	if !waits {
		return new(View)
	}
	both := new(struct {
		View
		line
	})
	both.View.line = &both.line
	return &both.View
}

// ofLine returns what is known of those who wait.
func (v *View) ofLine() line {
	if v.line == nil {
		return line{}
	}
	return *v.line
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
	Frozen   bool // silent, or under Escrow out of reach; its counts are the last known
	Active   int
	Waiting  int
	Reserved int // slots kept for its waiting visitors
	New      int // slots for its new visitors; under Escrow, by where rights are free
	Held     int // rights to places that it owns; Escrow only
}

// Build works out what one node may do in a room, from counts that are at most
// as old as its news. It is a pure function: nodes that know the same counts
// come to parts that fit together. The settings are those that the operator
// wrote, events included; what is left at zero has its default.
func Build(s Settings, in Input, now time.Time) *View {
	return new(Builder).Build(&s, &in, now)
}

// Builder builds views and keeps its working memory from one to the next. What it
// returns does not depend on what it built before, and shares nothing with it; with
// other views of the same settings it shares these.
// The zero value is ready. It is not safe for concurrent use.
type Builder struct {
	tally  tally
	places places
	sure   places // the same, without a claim of visitors who have just come
}

// Build is like the function of that name. The settings are the view's from then on, if no
// event changes them: nobody may change them any more.
func (b *Builder) Build(s *Settings, in *Input, now time.Time) *View {
	settings, event := s.effective(now)
	t := &b.tally
	t.take(settings, in, now)
	v := newView(len(t.buckets) > 0 || len(t.granules) > 0)
	v.BuiltAt, v.Settings, v.Event = now, settings, event
	v.Active, v.Waiting = t.knownActive-t.lent, t.knownWaiting
	v.AdmittedLast60s, v.AdmittedMinute = t.knownLast60s-t.lent, t.rate
	v.Terms = terms(v.Settings, v.Event)
	v.closed = v.Settings.closed()
	if v.Until = v.Settings.nextEdge(now); !v.Until.IsZero() {
		next, event := s.effective(v.Until)
		v.opens = next.open() && !event.Prequeueing
	}
	if v.Event.Prequeueing {
		v.hold = v.Settings.eventAt(now).held(v.Settings.BucketSpan)
	}
	slots := v.slots(t, in.Frozen)
	if v.Settings.Policy == Escrow {
		slots = v.slotsByRights(t, 0)
	}
	p := &b.places
	p.divide(v, t, slots)
	v.Slots, v.SlotsNew = p.rest, p.rest
	for _, n := range p.reserved {
		v.Slots += n
	}
	v.fillBuckets(t, p)
	if t.unsure {
		b.sure.divide(v, t.withoutYoung(), slots)
		t.withYoung()
	}
	v.fillSites(t, p)
	t.input = nil // the maps are the caller's
	switch {
	case v.closed:
	case v.Settings.open():
		v.openAll()
	default:
		v.place(t, p, b.bound(), newTurn(v.Settings, in, now))
	}
	return v
}

// Over reports whether an event has changed what holds since the view was built.
// From then on nobody is let in by it: who comes in the first moment of a
// pre-queue shall not meet a view from the moment before. It does no harm where
// everybody is let in from then on, so there the view goes on until the next.
func (v *View) Over(now time.Time) bool {
	return !v.Until.IsZero() && !v.opens && !now.Before(v.Until)
}

// bound returns how the room is divided where visitors who have just come have no claim
// before new ones of other sites: what this node may do goes by that, and what is shown by all
// who wait.
func (b *Builder) bound() *places {
	if b.tally.unsure {
		return &b.sure
	}
	return &b.places
}

// slots returns how many visitors may enter right now, and sets how full the room
// is.
//
// A site that is frozen keeps its share of both limits, what it was last known to hold, or
// what it could have taken before anybody noticed, whichever is the most: visitors who are in
// do not vanish by going unheard. The others have the rest to themselves. While a site is
// back, but may not have heard of us yet, both that holds and what counts say.
func (v *View) slots(t *tally, f Frozen) int {
	total, perMinute := v.Settings.TotalActiveUsers, v.Settings.NewUsersPerMinute
	kept := f.keptFor(total, perMinute, false)
	t.limit = min(total-f.kept(total), perMinute-f.kept(perMinute))
	active := t.active + max(t.knownActive-t.active, kept.active)
	admitted := t.last60s + max(t.knownLast60s-t.last60s, kept.rate)
	v.Utilization = min(1, max(float64(active)/float64(max(1, total)), float64(admitted)/float64(max(1, perMinute))))
	if v.closed {
		return 0
	}
	slots := Slots(int64(total), int64(perMinute), int64(active), int64(admitted))
	if len(f.back) == 0 {
		return slots
	}
	kept = f.keptFor(total, perMinute, true)
	active, admitted = t.active, t.last60s
	for i := range t.sites {
		if t.sites[i].back {
			active -= t.sites[i].active
			admitted -= t.sites[i].minute
		}
	}
	active += max(t.knownActive-active, kept.active)
	admitted += max(t.knownLast60s-admitted, kept.rate)
	return min(slots, Slots(int64(total), int64(perMinute), int64(active), int64(admitted)))
}

// openAll lets everybody in, but for those who wait for the start of an event;
// the counts still show what the limits would do.
func (v *View) openAll() {
	v.Cursor, v.Edge = v.BuiltAt, v.BuiltAt
	v.OpenToNew = !v.Event.Prequeueing
	v.AllowWaiting, v.AllowNew = Unlimited, Unlimited
}

func (v *View) fillBuckets(t *tally, p *places) {
	v.Buckets = make([]Bucket, len(t.buckets))
	for i, q := range t.buckets {
		v.Buckets[i] = Bucket{Start: q.start, Waiting: q.waiting, Reserved: p.reserved[i], own: q.own}
	}
	if v.line != nil {
		*v.line = line{append([]count(nil), t.granules...), p.served}
	}
}

func (v *View) fillSites(t *tally, p *places) {
	v.Sites = make([]SitePlaces, len(t.sites))
	for i := range t.sites {
		st := &t.sites[i]
		v.Sites[i] = SitePlaces{
			Name: st.name, Own: st.own, Frozen: st.frozen && !t.input[i].Gone, Active: st.active - st.lent, Waiting: st.waiting,
			Reserved: p.waiting[i], New: p.fresh[i], Held: st.held,
		}
	}
}

// place sets the cursor, the edge and the allowances of this node. What own visitors who
// have just come may have goes by bound; see young.
func (v *View) place(t *tally, p, bound *places, turn turn) {
	v.OpenToNew = bound.rest > 0 && !v.Event.Prequeueing
	contested, fresh, anywhere := 0, bound.fresh[t.own], bound.anywhere
	if t.away {
		anywhere = 0
	}
	if v.Settings.Policy == Counter {
		v.AllowAnywhere = anywhere
	}
	if v.Settings.QueueingMethod == Random {
		// Whoever came before a pre-queue began may go on trying during it.
		v.Cursor, v.Edge = time.Unix(0, 0), time.Unix(0, 0)
		if v.Event.Prequeueing {
			v.Edge = v.hold
		}
	} else {
		width := seconds(v.Settings.BucketSpan)
		c := newCursor(t, bound, width)
		if t.young > 0 && bound.rest > 0 {
			v.placeYoung(t, bound, &c, &fresh, anywhere)
		}
		v.Cursor, v.Edge = time.Unix(c.cursor, 0), time.Unix(c.edge, 0)
		v.AllowWaiting = min(c.sure, v.Slots)
		contested = c.contested
	}
	switch v.Settings.Policy {
	case Escrow:
		v.placeByRights(t, p, contested)
	case Curve:
		v.AllowNew = min(curvePart(v, t, contested+fresh, bound.anywhere, turn), v.Slots)
	default:
		v.AllowNew = min(nodePart(v, t, contested+fresh, turn), v.Slots)
	}
}

// placeYoung lets in own visitors who have just come, as far as the site's places for new
// visitors go: others do not know of them yet, and reckon with no more. New visitors may try
// where these have a place each. more are places of no site, under Counter and Curve.
func (v *View) placeYoung(t *tally, p *places, c *cursor, fresh *int, more int) {
	width := seconds(v.Settings.BucketSpan)
	eligible := int64(math.MaxInt64)
	if p.eligible < len(t.buckets) {
		eligible = t.buckets[p.eligible].start
	}
	enough := *fresh+more >= t.young
	c.walk(t, fresh, width, func(start int64) bool { return start < eligible })
	if n := len(t.granules); more > 0 && n > 0 && t.granules[n-1].start < eligible {
		c.edge = max(c.edge, granuleEnd(t.granules[n-1].start, width))
	}
	v.OpenToNew = v.OpenToNew && enough
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
