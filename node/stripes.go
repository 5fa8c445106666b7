package node

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// Requests and the loop meet in stripes: a request leaves a note in the stripe
// of its ticket or visitor and reads there what became of earlier ones; the
// loop collects all notes a few times a second. Two requests share a stripe's
// lock only by chance, and for a map access.

const stripeCount = 64 // a power of two; far more than cores, so that a lock is seldom shared

type stripes [stripeCount]stripe

type stripe struct {
	mu sync.Mutex // guards the following

	checkins map[sessionKey]checkin // since the last collection, newest only
	entered  []entered              // since the last collection
	polls    []visit                // since the last collection
	kept     []reanchored           // since the last collection

	renewals map[sessionKey]renewal // what a pass shall become, until its end
	redeemed map[visitKey]redeemed  // waiting passes that were let in lately

	_ [16]byte // keeps neighbours' locks apart
}

// sessionKey names a session: ticket numbers are unique in one room only.
type sessionKey struct {
	room   crdt.RoomID
	ticket ticket.Ticket
}

// checkin is one request of an admitted visitor.
type checkin struct {
	end time.Time // of the lease, as the pass says
	at  time.Time
}

// entered is a visitor who was just let in.
type entered struct {
	room   *Room
	pass   Pass
	class  class
	waited bool
}

// reanchored is a session that a request took over from a silent anchor.
type reanchored struct {
	room     *Room
	old, new ticket.Ticket
	at       time.Time
}

// renewal is what a pass becomes: a later end, and perhaps another ticket.
type renewal struct {
	ticket ticket.Ticket
	end    time.Time
}

// redeemed is the pass that a waiting one was exchanged for.
type redeemed struct {
	pass Pass
	at   time.Time
}

// redeemedKept is how long the same client may ask again for the answer that
// let it in.
const redeemedKept = 30 * time.Second

func (s *stripes) ofSession(k sessionKey) *stripe {
	h := k.ticket.Seq ^ uint64(k.ticket.Block)<<32 ^ binary.LittleEndian.Uint64(k.ticket.Anchor[:8])
	return &s[h*0x9e3779b97f4a7c15>>(64-6)]
}

func (s *stripes) ofVisitor(id VisitorID) *stripe {
	return &s[id[0]&(stripeCount-1)]
}

// checkIn notes a request of an admitted visitor and returns what the pass
// shall become, if that is known.
func (s *stripe) checkIn(k sessionKey, c checkin) (renewal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkins == nil {
		s.checkins = map[sessionKey]checkin{}
	}
	if old, ok := s.checkins[k]; !ok || c.at.After(old.at) {
		s.checkins[k] = c
	}
	n, ok := s.renewals[k]
	return n, ok
}

func (s *stripe) enter(e entered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered = append(s.entered, e)
}

// redeem remembers what a waiting pass was exchanged for. When somebody with
// the same pass was faster, theirs is returned, and false.
func (s *stripe) redeem(k visitKey, r redeemed) (Pass, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.redeemed[k]; ok && r.at.Sub(old.at) < redeemedKept {
		return old.pass, false
	}
	if s.redeemed == nil {
		s.redeemed = map[visitKey]redeemed{}
	}
	s.redeemed[k] = r
	return r.pass, true
}

// lately returns what a waiting pass was exchanged for in the last seconds.
func (s *stripe) lately(k visitKey, now time.Time) (Pass, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.redeemed[k]
	return r.pass, ok && now.Sub(r.at) < redeemedKept
}

func (s *stripe) poll(v visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = append(s.polls, v)
}

// renewed tells the requests of a session what its pass shall become.
func (s *stripe) renewed(k sessionKey, n renewal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewals == nil {
		s.renewals = map[sessionKey]renewal{}
	}
	if old, ok := s.renewals[k]; !ok || old.ticket != n.ticket || n.end.After(old.end) {
		s.renewals[k] = n
	}
}

// reanchor remembers the ticket that a request has given to a session whose
// anchor is silent. When another request was faster, its ticket is returned, and
// false.
func (s *stripe) reanchor(k sessionKey, n renewal, note reanchored) (renewal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.renewals[k]; ok && first.ticket != k.ticket && first.end.After(note.at) {
		return first, false
	}
	if s.renewals == nil {
		s.renewals = map[sessionKey]renewal{}
	}
	s.renewals[k] = n
	s.kept = append(s.kept, note)
	return n, true
}

// notes is what one stripe has collected.
type notes struct {
	checkins map[sessionKey]checkin
	entered  []entered
	polls    []visit
	kept     []reanchored
}

// collect takes the notes away.
func (s *stripe) collect() notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := notes{s.checkins, s.entered, s.polls, s.kept}
	s.checkins, s.entered, s.polls, s.kept = nil, nil, nil, nil
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
	for k, r := range s.redeemed {
		if now.Sub(r.at) >= redeemedKept {
			delete(s.redeemed, k)
		}
	}
}
