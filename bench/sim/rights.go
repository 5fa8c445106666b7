package sim

import (
	"fmt"
	"slices"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// What must hold where rights are the limit: never more inside than are minted,
// no ticket twice, and after all is healed no right lost or gained.

// rights is what one node says of the rights of the room.
type rights struct {
	room     crdt.RoomID   // which of them it is by now
	retired  bool          // it is deleted, and not made again as far as the node knows
	held     ticket.Amount // its own, whatever they are used for
	mine     ticket.Amount // those it has minted, less what it burned
	minted   ticket.Amount // by all nodes, as far as it knows
	limit    ticket.Amount // as it knows it
	makes    bool          // it is for this node to make them
	borrowed int64         // sessions that it lets go on without a right
}

// ledgers is what is known from outside about the rights of all nodes.
type ledgers struct {
	strict   bool // escrow, and clocks that are near enough to each other
	borrows  bool // the room would rather go beyond the limit than end a session
	settled  bool // at the end of the run everything must add up
	last     []rights
	accounts []*account        // by number of the room
	used     map[uint64]uint64 // which session has which ticket, both hashed
	sessions map[uint64]int64  // that anybody was ever let in by, hashed; when first
	unheard  map[uint64]int64  // the same, by an answer that came too late
}

func newLedgers(cfg Config) ledgers {
	return ledgers{
		strict:  cfg.Room.Policy == room.Escrow && !apart(cfg, clockBound),
		borrows: cfg.Room.OnPartition == room.PartitionOpen,
		settled: cfg.Room.Policy == room.Escrow,
		used:    map[uint64]uint64{}, sessions: map[uint64]int64{}, unheard: map[uint64]int64{},
	}
}

// note takes over what a node says of its rights. What a node has minted counts
// for ever: once its disk is lost, what the others know of that takes its place.
func (s *sim) note(m *machine) {
	if s.cfg.Room.Policy != room.Escrow || m.brain == nil || !m.brain.Ready() {
		return // of one that has just started, nothing is different from before
	}
	l := &s.rights
	for int(m.number) >= len(l.last) {
		l.last = append(l.last, rights{})
	}
	was, is := &l.last[m.number], m.brain.rights()
	mine := is.mine
	if was.room == is.room {
		mine = mine.Sub(was.mine)
	}
	number := s.registry.room(is.room)
	a := l.account(number)
	a.minted = a.minted.Add(mine)
	if !mine.IsZero() {
		a.minter = m.number + 1
	}
	if is.makes {
		s.made(m, number)
	}
	if s.cfg.Trace != nil && is != *was {
		s.trace(m, "holds %v, minted %v of %v under %v, %d borrowed", is.held, is.mine, is.minted, is.limit, is.borrowed)
	}
	*was = is
}

// mintedNow returns how many rights are minted, which is what nodes have minted. Of a
// lost disk nobody knows what its node burned last: if whoever has minted or burned last
// has it that more is minted, that is so; or if that does not run, those that do all have
// it. It looks at all nodes.
func (s *sim) mintedNow(room uint8) ticket.Amount {
	a := s.rights.account(room)
	if slices.ContainsFunc(s.machines, func(m *machine) bool { return m.wiped || m.wipes > 0 }) {
		first, known := true, ticket.Amount{}
		for _, m := range s.machines {
			if !m.runs() || !m.brain.Ready() {
				continue
			}
			is := m.brain.rights()
			switch says := is.minted; {
			case s.registry.room(is.room) != room:
			case m.number+1 == a.minter:
				return a.minted.Max(says)
			case first:
				known, first = says, false
			default:
				known = known.Min(says)
			}
		}
		return a.minted.Max(known)
	}
	return a.minted
}

// checkTicket sees to it that no two sessions have the same ticket. It reports
// whether this session was not seen before: one that goes on by another ticket,
// since its anchor was out of reach, lets nobody new in, however long that took. since is
// when somebody was let in by it first.
func (s *sim) checkTicket(p *pass, m *machine) (fresh bool, since int64) {
	if p.anchor == 0 {
		return true, s.now
	}
	named := keyed(uint64(p.anchor)<<32|p.Ticket.Boot, forTickets, p.Ticket.Seq, 0)
	session := p.session()
	if was, ok := s.rights.used[named]; ok && was != session {
		at := s.machines[s.registry.ids[p.anchor-1].machine]
		s.violate(TicketTwice, m, fmt.Sprintf("ticket %d.%d.%d of node %s is that of two sessions", p.Ticket.Boot, p.Ticket.Block, p.Ticket.Seq, at.name()))
	}
	s.rights.used[named] = session
	if at, known := s.rights.sessions[session]; known {
		return false, at
	}
	since = s.now
	if at, known := s.rights.unheard[session]; known {
		since = at
	}
	s.rights.sessions[session] = since
	return true, since
}

// session returns a hash of which session a pass is of.
func (p *pass) session() uint64 {
	return keyed(uint64(p.accepted), forTickets, word(p.Visitor[:8]), word(p.Visitor[8:]))
}

// place returns a hash of which place a waiting pass has. Who has lost a session
// through a fault of ours has the arrival of before, under another id.
func (p *pass) place() uint64 {
	return keyed(uint64(millis(p.Arrival)), forTickets, word(p.Visitor[:8]), word(p.Visitor[8:]))
}

// letInUnheard counts an answer that lets somebody in who has turned to another node
// meanwhile. The request went to the site at that moment, and the right was used; who
// shows up later by the same ticket is let in by that. The place is spent.
func (s *sim) letInUnheard(v *visitor, a *late) {
	told := s.registry.pack(a.v.Pass)
	if p := &v.pass; p.known() && p.accepted == 0 && p.place() == told.place() && p.place() != v.spent {
		v.spent, v.spentBy = p.place(), told.accepted
	}
	l, session := &s.rights, told.session()
	_, seen := l.sessions[session]
	_, known := l.unheard[session]
	if s.cfg.Room.Policy == room.Escrow && told.anchor != 0 && !seen && !known && !s.unbound() {
		l.unheard[session] = s.now
		l.admitted(told.room, s.now)
		s.admitted(told.room, a.from)
	}
}

func word(b []byte) (x uint64) {
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x
}

// unsettled says what does not add up between the nodes; "" if all does. With
// nodes that are down for good, or disks that are lost and not declared so, it
// cannot: then only what is too much is wrong. One that is down may have minted what
// nobody else has heard of, and given it away.
func (s *sim) unsettled() (kind, text string) {
	l := &s.rights
	if !l.settled {
		return "", ""
	}
	var held, known ticket.Amount
	var limit ticket.Amount
	whole, first, room := true, true, crdt.RoomID{}
	for _, m := range s.machines {
		whole = whole && len(m.lost) == 0
		if !m.runs() || !m.brain.Ready() {
			whole = whole && m.brain == nil && (m.away || m.wiped)
			continue
		}
		s.note(m)
		r := l.last[m.number]
		held = held.Add(r.held)
		if r.retired {
			return "", "" // it was never made again
		}
		if !first && r.room != room {
			return RightsLost, fmt.Sprintf("nodes do not agree: of rooms %s and %s", room, r.room)
		}
		room = r.room
		if !first && (r.minted != known || r.limit != limit) {
			return RightsLost, fmt.Sprintf("nodes do not agree: %v minted under a limit of %v, or %v under %v", known, limit, r.minted, r.limit)
		}
		known, limit, first = r.minted, r.limit, false
		if r.borrowed > 0 {
			return BorrowedHidden, fmt.Sprintf("node %s has %d borrowed sessions after the last one has left", m.name(), r.borrowed)
		}
	}
	if known.IsZero() && held.IsZero() {
		return "", "" // nobody who is left has heard that it was made
	}
	text = fmt.Sprintf("%v held, %v minted, the limit is %v", held, known, limit)
	switch {
	case held != held.Min(known.Max(l.account(s.registry.room(room)).minted)):
		return RightsGained, text
	case whole && !first && (held != known || known != limit):
		return RightsLost, text
	}
	return "", ""
}
