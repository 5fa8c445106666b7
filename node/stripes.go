package node

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// Requests and the loop meet in stripes: a request leaves a note in the stripe
// of its ticket or visitor and reads there what became of earlier ones; the
// loop collects all notes a few times a second. Two requests share a stripe's
// lock only by chance, and for a map access.

const stripeCount = 64 // as many as there are bits in stripes.dirty; far more than cores, so that a lock is seldom shared

type stripes struct {
	// dirty has a bit for each stripe with something to collect: most ticks of
	// most nodes find nothing. A bit is set after the note was left, so that
	// whoever takes the bit away finds the note.
	dirty atomic.Uint64
	rests atomic.Bool // the loop does, until a bit is set; see Core.Rests
	wake  func()      // the loop
	all   [stripeCount]stripe
}

type stripe struct {
	mu sync.Mutex // guards the following

	checkins []checkin          // since the last collection, one per session
	latest   map[sessionKey]int // where they stand
	entered  []entered          // since the last collection
	polls    []visit            // since the last collection
	kept     []reanchored       // since the last collection
	ended    []ended            // since the last collection
	unused   []claim            // of waiting passes that were not redeemed, since the last collection

	renewals map[sessionKey]renewal // what a pass shall become, until its end
	overs    overs                  // those of renewals that are over
	redeemed redeemedTable          // waiting passes that were let in lately, or are about to be
	applying map[visitKey]*pending  // the first request with a waiting pass that wants a ticket

	// Immutable.
	of  *stripes
	bit uint64

	_ [16]byte // keeps neighbours' locks apart
}

func (s *stripes) init(wake func()) {
	s.wake = wake
	for i := range s.all {
		s.all[i].of, s.all[i].bit = s, 1<<i
	}
}

// collect yields what each stripe with something new has collected.
func (s *stripes) collect() iter.Seq[notes] {
	return func(yield func(notes) bool) {
		for dirty := s.dirty.Swap(0); dirty != 0; dirty &= dirty - 1 {
			if !yield(s.all[bits.TrailingZeros64(dirty)].collect()) {
				return
			}
		}
	}
}

// sessionKey names a session: ticket numbers are unique in one room only.
type sessionKey struct {
	room   crdt.RoomID
	ticket ticket.Ticket
}

// checkin is one request of an admitted visitor.
type checkin struct {
	key sessionKey
	end time.Time // of the lease, as the pass says
	at  time.Time
}

// entered is a visitor who was just let in.
type entered struct {
	room   *Room
	pass   Pass
	gotten gotten
	waited bool
}

// reanchored is a session that a request took over from a silent anchor.
type reanchored struct {
	room     *Room
	old, new ticket.Ticket
	at       time.Time
	end      time.Time // of the new lease; zero: it is not open yet
}

// ended is a session that the origin has ended.
type ended struct {
	room   *Room
	ticket ticket.Ticket
	until  time.Time // when no pass can claim it any more
}

// renewal is what a pass becomes: a later end, and perhaps another ticket. A
// session that is over has neither; it is remembered until end.
type renewal struct {
	ticket ticket.Ticket
	end    time.Time
	over   bool
}

// overs bounds how many ended sessions a stripe remembers: the oldest goes first.
type overs struct {
	keys []sessionKey
	next int // the oldest, once there are maxOvers
}

// maxOvers is far more than end within the time that one is remembered.
const maxOvers = 1 << 18 / stripeCount

// add takes a session in and returns the one that has to go for it.
func (o *overs) add(k sessionKey) (gone sessionKey) {
	if len(o.keys) < maxOvers {
		o.keys = append(o.keys, k)
		return sessionKey{}
	}
	gone, o.keys[o.next] = o.keys[o.next], k
	o.next = (o.next + 1) % maxOvers
	return gone
}

func (s *stripes) ofSession(k sessionKey) *stripe {
	h := k.ticket.Seq ^ uint64(k.ticket.Block)<<32 ^ binary.LittleEndian.Uint64(k.ticket.Anchor[:8])
	return &s.all[h*0x9e3779b97f4a7c15>>(64-6)]
}

func (s *stripes) ofVisitor(id VisitorID) *stripe {
	return &s.all[id[0]&(stripeCount-1)]
}

// mark says that there is something to collect. Most requests find the bit set,
// and leave the line of memory that it is in to others.
func (s *stripe) mark() {
	if s.of.dirty.Load()&s.bit == 0 {
		s.of.dirty.Or(s.bit)
		if s.of.rests.CompareAndSwap(true, false) {
			s.of.wake()
		}
	}
}

// checkIn notes a request of an admitted visitor at at, with a pass that ends at
// end, and returns what the pass shall become, if that is known. Of a session
// that is over nothing is noted, and it returns that.
func (s *stripe) checkIn(k sessionKey, end, at time.Time) (renewal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.renewals[k]
	if n.over {
		return n, false
	}
	i, known := s.latest[k]
	switch {
	case !known:
		if s.latest == nil {
			s.latest = map[sessionKey]int{}
		}
		s.latest[k] = len(s.checkins)
		s.checkins = append(s.checkins, checkin{k, end, at})
		s.mark()
	case at.After(s.checkins[i].at):
		s.checkins[i] = checkin{k, end, at}
	}
	return n, ok
}

// last returns what the pass of a session shall become, if that is known.
func (s *stripe) last(k sessionKey) (renewal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.renewals[k]
	return n, ok && !n.over
}

// over reports whether the origin has ended a session.
func (s *stripe) over(k sessionKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewals[k].over
}

// end notes that a session is over, and reports whether that is news.
func (s *stripe) end(e ended) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.markOver(sessionKey{e.room.id, e.ticket}, e.until) {
		return false
	}
	s.ended = append(s.ended, e)
	s.mark()
	return true
}

// setOver is end without a note for the loop, which knows.
func (s *stripe) setOver(k sessionKey, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.markOver(k, until)
}

// markOver reports whether a session was not over before. It is called with mu
// held.
func (s *stripe) markOver(k sessionKey, until time.Time) bool {
	if s.renewals[k].over {
		return false
	}
	if s.renewals == nil {
		s.renewals = map[sessionKey]renewal{}
	}
	s.renewals[k] = renewal{end: until, over: true}
	if gone := s.overs.add(k); s.renewals[gone].over {
		delete(s.renewals, gone)
	}
	return true
}

func (s *stripe) enter(e *entered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = append(s.entered, *e)
	s.mark()
}

// join has a request with a waiting pass wait for what another one with the same pass,
// which wants a ticket already, will get. It reports false if there is none: then those
// that come from now on wait for w.
func (s *stripe) join(k visitKey, w *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.applying[k]; first != nil {
		first.same = append(first.same, w)
		return true
	}
	if s.applying == nil {
		s.applying = map[visitKey]*pending{}
	}
	s.applying[k], w.leads = w, k
	return false
}

// part returns who waits for what w gets. Those that come from now on do not.
func (s *stripe) part(w *pending) (same []*pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.applying, w.leads)
	same, w.same, w.leads = w.same, nil, visitKey{}
	return same
}

func (s *stripe) poll(v visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = append(s.polls, v)
	s.mark()
}

// renewed tells the requests of a session what its pass shall become, unless the
// session is over.
func (s *stripe) renewed(k sessionKey, n renewal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewals == nil {
		s.renewals = map[sessionKey]renewal{}
	}
	old, ok := s.renewals[k]
	if !old.over && (!ok || old.ticket != n.ticket || n.end.After(old.end)) {
		s.renewals[k] = n
	}
}

// reanchor remembers the ticket that a request has given to a session whose
// anchor is silent, and returns what holds: that ticket, that of another request
// which was faster, or that the session is over.
func (s *stripe) reanchor(k sessionKey, n renewal, note reanchored) renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.renewals[k]; ok && (first.over || first.ticket != k.ticket && first.end.After(note.at)) {
		return first
	}
	if s.renewals == nil {
		s.renewals = map[sessionKey]renewal{}
	}
	s.renewals[k] = n
	s.kept = append(s.kept, note)
	s.mark()
	return n
}

// notes is what one stripe has collected, in the order in which it came: the
// same requests shall lead to the same messages.
type notes struct {
	checkins []checkin
	entered  []entered
	polls    []visit
	kept     []reanchored
	ended    []ended
	unused   []claim
}

// collect takes the notes away.
func (s *stripe) collect() notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := notes{s.checkins, s.entered, s.polls, s.kept, s.ended, s.unused}
	s.checkins, s.latest, s.entered, s.polls, s.kept, s.ended, s.unused = nil, nil, nil, nil, nil, nil, nil
	return n
}

// forget drops what no pass can ask for any more.
func (s *stripe) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range s.renewals {
		if now.After(n.end) {
			delete(s.renewals, k)
		}
	}
	s.redeemed.forget(now)
}
