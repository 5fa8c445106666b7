package node

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Room is one room at one node. Decide may be called from many goroutines; the
// rest belongs to the loop.
type Room struct {
	id   crdt.RoomID
	core *Core

	// settings are the operator's, replaced as a whole; those that hold at the
	// moment, events included, are the view's.
	settings atomic.Pointer[room.Settings]

	view atomic.Pointer[view]
	used [classes]atomic.Int64 // tickets taken, per class, since the start
	seq  atomic.Uint64         // of the newest ticket

	mu     sync.Mutex     // guards the following
	leases *ticket.Leases // nil until the node is open
	delta  ticket.Delta   // of active, not booked yet

	// Owned by the loop.
	collected [classes]int64 // tickets whose notes have been collected
	renewals  *ticket.Renewals
	stranded  map[ticket.Ticket]ticket.Renewal // the anchor is silent
	replaced  map[ticket.Ticket]renewal        // tickets that were re-anchored here
	line      *room.Line
	changes   []room.Change // scratch
	news      bool          // counts have changed since the view was built
	viewed    time.Time     // when that was
	hurried   int           // active when others were last told at once
}

// class is which of the view's allowances a ticket is taken from.
type class int

const (
	reserved  class = iota // for waiting visitors who have a place reserved
	contested              // for all others
	classes                // how many there are
)

// view is the immutable picture from which requests decide. A ticket of a class
// may be taken while used[class] < upTo[class].
type view struct {
	*room.View
	upTo [classes]int64
}

// renewAt is the part of a session after which a later end is worth a cookie.
const renewAt = 8

// Settings returns the settings that hold at the moment: the operator's, with
// what an event overrides. They are shared; nobody changes them.
func (r *Room) Settings() *room.Settings { return &r.view.Load().View.Settings }

// decide answers from memory, or says whose word is needed; the verdict then
// holds the pass as it was judged by.
func (r *Room) decide(p Pass, known bool, now time.Time) (Verdict, need) {
	if !known || p.Room != r.id {
		p = Pass{}
	}
	if known && !p.Accepted() {
		switch q, ok := r.core.stripes.ofVisitor(p.Visitor).lately(visitKey{r.id, p.Visitor}, now); {
		case ok && now.After(q.LeaseEnd):
			p = Pass{} // the session that the place was given for is over, and with it the place
		case ok:
			return Verdict{Admit: true, Pass: q, SetPass: true}, nothing
		}
	}
	w := r.view.Load()
	d := w.Decide(visitorOf(p), now)
	if d.New {
		p = Pass{} // whatever place it held is gone
	}
	switch d.Action {
	case room.Enter:
		return r.enter(p, now), nothing
	case room.Ask:
		return Verdict{Pass: p}, anchorWord
	case room.TooEarly:
		e, _ := w.Estimate(p.Arrival, room.Shown{})
		return Verdict{Pass: p, Estimate: e, Refresh: p.Refresh}, nothing
	case room.Apply:
		if v, ok := r.apply(w, reserved, p, now); ok {
			return v, nothing
		}
	case room.Compete:
		if v, ok := r.apply(w, contested, p, now); ok {
			return v, nothing
		}
	}
	return r.wait(w, p, now), nothing
}

func visitorOf(p Pass) room.Visitor {
	return room.Visitor{Arrival: p.Arrival, LastPoll: p.LastPoll, Refresh: p.Refresh,
		AcceptedAt: p.AcceptedAt, LeaseEnd: p.LeaseEnd}
}

// enter lets a visitor pass whose lease runs. The anchor is told later; the
// pass changes only when the anchor has agreed to an end that is worth it.
func (r *Room) enter(p Pass, now time.Time) Verdict {
	k := sessionKey{r.id, p.Ticket}
	next, ok := r.core.stripes.ofSession(k).checkIn(k, checkin{end: p.LeaseEnd, at: now})
	if !ok && p.Ticket.Anchor == r.core.self.Node && r.due(p.LeaseEnd, now.Add(r.Settings().SessionDuration)) {
		// The anchor is this node: it can agree at once.
		if end, in := r.extend(p.Ticket, p.LeaseEnd, now, now); in {
			next, ok = renewal{p.Ticket, end}, true
		}
	}
	v := Verdict{Admit: true, Pass: p}
	if ok && (next.ticket != p.Ticket || r.due(p.LeaseEnd, next.end)) && next.end.After(now) {
		v.Pass.Ticket, v.Pass.LeaseEnd, v.SetPass = next.ticket, next.end, true
	}
	return v
}

// due reports whether a new end is so much later that a cookie is worth it.
func (r *Room) due(old, end time.Time) bool {
	return end.Sub(old) >= r.Settings().SessionDuration/renewAt
}

// extend checks a session in at this node's own leases. What it changes in the
// count is booked by the loop.
func (r *Room) extend(t ticket.Ticket, passEnd, at, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases == nil {
		return time.Time{}, false
	}
	end, d, err := r.leases.CheckIn(t, passEnd, at, now)
	r.delta = r.delta.Add(d)
	return end, err == nil
}

// wait queues a visitor, or keeps the place of one who waits.
func (r *Room) wait(w *view, p Pass, now time.Time) Verdict {
	if p.Visitor == (VisitorID{}) {
		rand.Read(p.Visitor[:])
		p.Room = r.id
		p.Arrival = now
	}
	p.LastPoll = now
	p.Refresh = r.Settings().RefreshInterval
	r.core.stripes.ofVisitor(p.Visitor).poll(visit{visitor: p.Visitor, room: p.Room, arrival: p.Arrival, at: now, refresh: p.Refresh})
	e, _ := w.Estimate(p.Arrival, room.Shown{})
	return Verdict{Pass: p, SetPass: true, Estimate: e, Refresh: p.Refresh}
}
