package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// How operators delete the room and make it again.

// remaking is where that stands.
type remaking struct {
	gone uint8    // the room that is deleted
	at   int64    // when it is to be made again; 0: it is not deleted for good yet
	by   *machine // makes it again; nil: nobody yet
	from int64    // when that was started for it
}

// founderTakes is how long an operator waits for a founder, whose disk may be slow, and which mints
// nothing while those count whom the room before let in.
const founderTakes = int64(15*time.Second + ticket.NewFor)

// remake has a node told that the room is deleted until that is on its disk, and then
// one that has heard of it start again as a founder, until it has made the room again.
func (s *sim) remake(i int32, f Fault) bool {
	r := s.remakes[i]
	if r == nil {
		for _, m := range s.hit(f) {
			if m.answers() {
				r = &remaking{gone: s.registry.room(m.brain.rights().room)}
				s.remakes[i] = r
				break
			}
		}
		if r == nil {
			return false
		}
	}
	switch {
	case r.at == 0:
		// At others where those have left since.
		for _, m := range slices.Concat(s.hit(f), s.machines) {
			if m.answers() && s.retireAt(m, s.registry.roomID(r.gone)) {
				if m.brain.noted() {
					r.at = s.now + int64(f.For)
				}
				break
			}
		}
		return false
	case s.now < r.at, r.by != nil && s.now < r.from+founderTakes:
		return false
	case !s.rights.account(r.gone + 1).minted.IsZero():
		return true
	}
	if r.by == nil || r.by.away || r.by.wiped {
		r.by = s.founder()
	}
	if m := r.by; m != nil && m.answers() && !m.leaving && s.heard(m, r.gone) && m.brain.noted() {
		s.save(m)
		s.stop(m, false)
		m.founds = true
		s.start(m)
		m.founds = false
		r.from = s.now
		s.changed()
	}
	return false
}

// heard reports whether a node knows that a room is deleted.
func (s *sim) heard(m *machine, gone uint8) bool {
	is := m.brain.rights()
	return is.retired || s.registry.room(is.room) > gone
}

// founder returns who makes the room again: who made it first, if that is still there.
// Two would make it twice.
func (s *sim) founder() *machine {
	for _, m := range s.machines {
		if !m.away && !m.wiped && (m.number == 0 || s.machines[0].number != 0 || s.machines[0].away) && m.answers() {
			return m
		}
	}
	return nil
}

func (s *sim) retireAt(m *machine, id crdt.RoomID) bool {
	return s.tell(m, fmt.Sprintf("room %s is deleted", id), func(now time.Time) error { return m.brain.Retire(id, now) })
}

// room returns the number of a room: 0 is the first, and each that is made again is a
// later one.
func (r *registry) room(id crdt.RoomID) uint8 {
	if id == roomID || id == (crdt.RoomID{}) {
		return 0
	}
	for i, known := range r.rooms {
		if known == id {
			return uint8(i + 1)
		}
	}
	r.rooms = append(r.rooms, id)
	return uint8(len(r.rooms))
}

func (r *registry) roomID(number uint8) crdt.RoomID {
	if number == 0 {
		return roomID
	}
	return r.rooms[number-1]
}

// account is what must hold in one room.
type account struct {
	minted   ticket.Amount
	made     bool    // again, and somebody is to mint in it
	minter   int32   // who has minted or burned last, by identity, from 1; 0: nobody
	inside   int     // may be let pass
	free     int     // let in while the limit did not bind; beside these
	borrowed int     // of those, whose pass says so
	recent   []int64 // when somebody was let in within the last minute
}

// account returns that of a room.
func (l *ledgers) account(room uint8) *account {
	for int(room) >= len(l.accounts) {
		l.accounts = append(l.accounts, new(account))
	}
	return l.accounts[room]
}

// admitted counts a new session of a room.
func (l *ledgers) admitted(room uint8, now int64) {
	a := l.account(room)
	a.recent = append(a.recent, now)
	a.lately(now)
}

// lately returns how many were let in within the last minute.
func (a *account) lately(now int64) int {
	for len(a.recent) > 0 && a.recent[0]+minute <= now {
		a.recent = a.recent[1:]
	}
	return len(a.recent)
}

// lately returns how many were let in within the last minute by all rooms together, of which
// all but one are deleted.
func (l *ledgers) lately(now int64) (n int64) {
	for _, a := range l.accounts {
		n += int64(a.lately(now))
	}
	return n
}
