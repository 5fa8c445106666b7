package crdt

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/packed"
)

// Version orders what is published about one site: first by epoch, which every
// node that takes over the publishing raises, then by the publisher, should two
// have taken over at once, then by the publisher's own count. The zero value is
// older than everything.
type Version struct {
	Epoch     uint64
	Publisher Incarnation
	Seq       uint64
}

// Compare orders versions, older first.
func (v Version) Compare(o Version) int {
	return cmp.Or(v.compareStream(o), cmp.Compare(v.Seq, o.Seq))
}

// Outranks reports whether v was published in a later epoch than o, or in the
// same one by a publisher that comes after o's. Then nothing that o's publisher
// adds is believed any more.
func (v Version) Outranks(o Version) bool { return v.compareStream(o) > 0 }

// compareStream orders by what one publisher says in one epoch.
func (v Version) compareStream(o Version) int {
	return cmp.Or(cmp.Compare(v.Epoch, o.Epoch), v.Publisher.Compare(o.Publisher))
}

// Span is the count of one tick or of one span of arrivals.
type Span struct {
	Tick, N int64
}

// Summary is what a site counts of one room, with spans in order of time and no
// empty ones.
type Summary struct {
	Active                  int64
	Held, HeldRate          int64
	Waiting, Seen, Admitted []Span
}

// Summarize turns counts into a summary. Waiting visitors are gathered into
// spans of the length bucket, which is cut to whole seconds and at least one.
func Summarize(c Counts, bucket time.Duration) Summary {
	span := max(1, int64(bucket/time.Second))
	waiting := make(map[int64]int64, len(c.Waiting))
	for at, n := range c.Waiting {
		addSpan(&waiting, at-at%span, n)
	}
	return Summary{
		Active: c.Active, Held: c.Held, HeldRate: c.HeldRate,
		Waiting: sortSpans(waiting), Seen: sortSpans(c.Seen), Admitted: sortSpans(c.Admitted),
	}
}

func sortSpans(m map[int64]int64) []Span {
	var spans []Span
	for _, tick := range slices.Sorted(maps.Keys(m)) {
		if m[tick] != 0 {
			spans = append(spans, Span{tick, m[tick]})
		}
	}
	return spans
}

// Equal reports whether two summaries count the same.
func (s Summary) Equal(o Summary) bool {
	return s.Active == o.Active && s.Held == o.Held && s.HeldRate == o.HeldRate && slices.Equal(s.Waiting, o.Waiting) &&
		slices.Equal(s.Seen, o.Seen) && slices.Equal(s.Admitted, o.Admitted)
}

// Empty reports whether the summary counts nothing.
func (s Summary) Empty() bool {
	return s.Active == 0 && s.Held == 0 && s.HeldRate == 0 && len(s.Waiting) == 0 && len(s.Seen) == 0 && len(s.Admitted) == 0
}

// Unexpired returns s without the spans that are over at now.
func (s Summary) Unexpired(now time.Time, ret Retention) Summary {
	s.Waiting = unexpired(s.Waiting, Waiting, now, ret)
	s.Seen = unexpired(s.Seen, Seen, now, ret)
	s.Admitted = unexpired(s.Admitted, Admitted, now, ret)
	return s
}

// spans returns how many spans a summary counts.
func (s Summary) spans() int { return len(s.Waiting) + len(s.Seen) + len(s.Admitted) }

// unexpired shares its result's memory with spans; spans are never written to.
func unexpired(spans []Span, kind Kind, now time.Time, ret Retention) []Span {
	for len(spans) > 0 && ret.past(kind, spans[0].Tick, now) {
		spans = spans[1:]
	}
	if len(spans) == 0 {
		return nil
	}
	return spans
}

func (s Summary) clone() Summary {
	s.Waiting = slices.Clone(s.Waiting)
	s.Seen = slices.Clone(s.Seen)
	s.Admitted = slices.Clone(s.Admitted)
	return s
}

// Summaries holds, for each site, one summary of each room. A summary is
// derived from the rows of the site, so it needs no merging of counts: it is a
// register, and the newest version wins.
//
// As with Rows, what is known without a hole is kept apart from what is held.
// The zero value is empty and ready.
type Summaries struct {
	sites map[string]*siteSummary
	shape uint64 // how often sites have come or gone
}

type siteSummary struct {
	head    Version // newest heard of
	changed int64   // Unix milliseconds
	rooms   map[RoomID]register

	known  Version // every change of this stream up to Seq is held
	closed int64   // newest tick that was closed at or before a known version
}

type register struct {
	Summary
	version Version
	at      int64 // when it was published, Unix milliseconds
}

// Leads reports whether by is the newest publisher of site known.
func (s *Summaries) Leads(site string, by Incarnation) bool {
	w, ok := s.sites[site]
	return ok && w.head.Publisher == by && w.head.compareStream(w.known) == 0
}

// TakeOver makes by the publisher of site: it raises the epoch above the newest
// that is known and above after, the newest that others speak of, and publishes
// again what is known of every room, so that what the former publisher said
// last does not outlive it. The epoch also is no less than the time: a site
// that has lost all memory of its former ones still gets past them. The caller
// publishes what has changed since before anything leaves the node.
func (s *Summaries) TakeOver(site string, by Incarnation, after uint64, now time.Time) {
	w := s.site(site)
	epoch := max(w.head.Epoch+1, after+1, uint64(max(0, now.UnixMilli())))
	w.head = Version{Epoch: epoch, Publisher: by}
	w.known = w.head
	for _, room := range slices.SortedFunc(maps.Keys(w.rooms), RoomID.Compare) {
		w.publish(room, w.rooms[room].Summary, now)
	}
	w.bump(now)
}

// Publish states the summary of one room and copies it. It panics unless by
// leads the site.
func (s *Summaries) Publish(site string, by Incarnation, room RoomID, sum Summary, now time.Time) {
	s.led(site, by).publish(room, sum.clone(), now)
}

// Close declares that the counts of the site in tick and in all before it are
// final. It is the site's sign of life, due at least once per tick. It panics
// unless by leads the site.
func (s *Summaries) Close(site string, by Incarnation, tick int64, now time.Time) {
	w := s.led(site, by)
	if tick > w.closed {
		w.bump(now)
		w.closed = tick
	}
}

// Known returns up to which version everything of a site is held.
func (s *Summaries) Known(site string) Version {
	if w, ok := s.sites[site]; ok {
		return w.known
	}
	return Version{}
}

// Header returns what a site says about itself and whether it is known. Seq is
// that of the newest publisher.
func (s *Summaries) Header(site string) (Header, bool) {
	w, ok := s.sites[site]
	if !ok {
		return Header{}, false
	}
	return Header{site, w.head.Seq, time.UnixMilli(w.changed), w.closed}, true
}

// Shape returns a number that changes when a site comes or goes.
func (s *Summaries) Shape() uint64 { return s.shape }

// Sites yields the names of all sites, in no order.
func (s *Summaries) Sites() iter.Seq[string] { return maps.Keys(s.sites) }

// Rooms yields the rooms of a site, in no order.
func (s *Summaries) Rooms(site string) iter.Seq[RoomID] {
	if w, ok := s.sites[site]; ok {
		return maps.Keys(w.rooms)
	}
	return func(func(RoomID) bool) {}
}

// Has reports whether there is a summary of a room of a site.
func (s *Summaries) Has(site string, room RoomID) bool {
	w, ok := s.sites[site]
	if ok {
		_, ok = w.rooms[room]
	}
	return ok
}

// Published returns the newest summary of a room as it was published, whether
// or not it has faded. It must not be written to.
func (s *Summaries) Published(site string, room RoomID) Summary {
	if w, ok := s.sites[site]; ok {
		return w.rooms[room].Summary
	}
	return Summary{}
}

// Count returns what a site counts of a room at now.
func (s *Summaries) Count(site string, room RoomID, now time.Time, ret Retention) (c Counts) {
	s.Add(&c, site, room, now, ret)
	return c
}

// Add adds what Count returns to c.
func (s *Summaries) Add(c *Counts, site string, room RoomID, now time.Time, ret Retention) {
	if w, ok := s.sites[site]; ok {
		w.addTo(c, room, w.rooms[room], now, ret)
	}
}

func (w *siteSummary) addTo(c *Counts, room RoomID, g register, now time.Time, ret Retention) {
	over := ret.keeps(room).over(w.toldAt(g), now)
	if !over.has(Active) {
		c.Active += g.Active
	}
	if !over.has(Held) {
		c.Held += g.Held
		c.HeldRate += g.HeldRate
	}
	sum := g.Unexpired(now, ret)
	if !over.has(Waiting) {
		addSpans(&c.Waiting, sum.Waiting)
	}
	addSpans(&c.Seen, sum.Seen)
	addSpans(&c.Admitted, sum.Admitted)
}

func addSpans(m *map[int64]int64, spans []Span) {
	for _, s := range spans {
		addSpan(m, s.Tick, s.N)
	}
}

// Clone returns a copy that shares nothing with s.
func (s *Summaries) Clone() *Summaries {
	c := &Summaries{sites: make(map[string]*siteSummary, len(s.sites)), shape: s.shape}
	for site, w := range s.sites {
		d := *w
		d.rooms = make(map[RoomID]register, len(w.rooms))
		for room, g := range w.rooms {
			g.Summary = g.clone()
			d.rooms[room] = g
		}
		c.sites[site] = &d
	}
	return c
}

// Merge adds what o holds: lattice and knowledge. It copies what it takes and
// leaves o alone.
func (s *Summaries) Merge(o *Summaries) {
	for site, from := range o.sites {
		w := s.site(site)
		w.header(from.head, from.changed)
		for room, g := range from.rooms {
			w.put(room, g)
		}
		if from.known.Compare(w.known) > 0 {
			w.known = from.known
		}
		w.closed = max(w.closed, from.closed)
	}
}

// Expire forgets spans that are over, rooms of former publishers and of whole
// sites when nothing of them can count any more, and rooms that have been empty
// for as long as arrivals are kept.
func (s *Summaries) Expire(now time.Time, ret Retention) {
	for site, w := range s.sites {
		alive := len(w.rooms) == 0 // nothing to forget
		for room, g := range w.rooms {
			is := g.Unexpired(now, ret)
			emptied := is.Empty() && now.After(time.UnixMilli(g.at).Add(ret.arrivals()))
			over := ret.pastHorizon(room, w.toldAt(g), now)
			alive = alive || !over
			if former := g.version.compareStream(w.head) != 0; emptied || former && over {
				packed.Delete(&w.rooms, room)
			} else if is.spans() != g.spans() {
				g.Summary = is
				w.rooms[room] = g
			}
		}
		if now.After(time.UnixMilli(w.changed).Add(max(ret.arrivals(), minFade))) {
			delete(s.sites, site)
			s.shape++
		} else if !alive {
			// The head stays for a day: it keeps out what the dead publisher
			// had replaced. Should it come back, it is asked for everything.
			clear(w.rooms)
			w.known = Version{}
		}
	}
}

// Drop forgets all that sites have said of a room that is gone for good. What others still tell of it is taken in
// again: they are to drop it as well.
func (s *Summaries) Drop(room RoomID) {
	for _, w := range s.sites {
		packed.Delete(&w.rooms, room)
	}
}

// toldAt returns when a register was last known to be true. What a former
// publisher said and the present one did not repeat lives by its own time: the
// present one never knew of it.
func (w *siteSummary) toldAt(g register) int64 {
	if g.version.compareStream(w.head) != 0 {
		return g.at
	}
	return w.changed
}

func (s *Summaries) site(name string) *siteSummary {
	w, ok := s.sites[name]
	if !ok {
		if s.sites == nil {
			s.sites = make(map[string]*siteSummary)
		}
		w = &siteSummary{rooms: make(map[RoomID]register)}
		s.sites[name] = w
		s.shape++
	}
	return w
}

func (s *Summaries) led(site string, by Incarnation) *siteSummary {
	if !s.Leads(site, by) {
		panic("crdt: " + by.String() + " publishes for site " + site + ", which it does not lead")
	}
	return s.sites[site]
}

func (w *siteSummary) bump(now time.Time) Version {
	w.head.Seq++
	w.known = w.head
	w.changed = max(w.changed, now.UnixMilli())
	return w.head
}

func (w *siteSummary) publish(room RoomID, sum Summary, now time.Time) {
	v := w.bump(now)
	w.rooms[room] = register{sum, v, now.UnixMilli()}
}

// header takes over a newer head. The time of change belongs to the publisher:
// one that others have ceased to believe must not keep its successor alive.
func (w *siteSummary) header(head Version, changed int64) {
	switch stream := head.compareStream(w.head); {
	case stream > 0:
		w.head, w.changed = head, changed
	case stream == 0:
		w.head.Seq = max(w.head.Seq, head.Seq)
		w.changed = max(w.changed, changed)
	}
}

func (w *siteSummary) put(room RoomID, g register) {
	if old, ok := w.rooms[room]; !ok || g.version.Compare(old.version) > 0 {
		g.Summary = g.clone()
		w.rooms[room] = g
	}
}
