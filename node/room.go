package node

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Room is one room at one node. Decide may be called from many goroutines; the
// rest belongs to the loop.
type Room struct {
	id      crdt.RoomID
	core    *Core
	chooser room.Chooser // of the nodes that do something for the whole room

	// settings are the operator's, replaced as a whole; those that hold at the
	// moment, events included, are the view's.
	settings atomic.Pointer[room.Settings]

	view atomic.Pointer[view]
	used [classes]atomic.Int64 // tickets taken, per class, since the start

	counters atomic.Pointer[counters] // nil until the policy wants them

	mu     sync.Mutex     // guards the following
	rights *ticket.Rights // nil until the node is open
	delta  ticket.Delta   // of active, not booked yet

	overHere []ticket.Ended // sessions that ended here, not noted yet; stays empty where no history is kept

	limit, mintedByAll ticket.Amount // as the facts have it
	minter             crdt.NodeID   // the same
	mintsFrom          time.Time     // this node is to make rights, and makes none before; zero: at once

	resting atomic.Bool // not of this node's configuration; it keeps the rights only
	retired atomic.Bool // gone for good, as far as this node has heard

	tally atomic.Pointer[tally] // nil: there is nothing to tell; see counted

	configured ticket.Amount // the limits that this node was started with
	minting    minting       // as the facts had it when they were last read

	// Owned by the loop. What is small stands together: there may be thousands of rooms.
	told      bool  // the loop has heeded configured
	again     bool  // is made in place of one that was retired
	cataloged bool  // its settings are the catalog's, and no others
	touched   bool  // rights may have something to write
	gone      bool  // it is kept no longer, and writes nothing more
	starved   bool  // sessions whose anchor is out of reach wait for a place
	news      bool  // counts have changed since the view was built
	dated     bool  // the same for another reason, which can wait for the room's turn
	busy      bool  // the last tick had something to send
	idle      bool  // see every
	still     bool  // the same: nobody is in it, and nothing has happened in it lately
	heldBack  bool  // holdBack has been called
	passed    uint8 // how often somebody else had its turn since the view was built

	held      ticket.Amount  // as this node's row tells
	spent     uint64         // rate rights, as this node's row tells
	came      uint64         // who did not wait, since this node's row told
	collected [classes]int64 // tickets whose notes have been collected
	line      *room.Line     // nil: nobody has come
	owed      []owed         // nearly always empty
	nap       brief          // until when the loop leaves the room out; zero: it does not
	viewed    brief          // when the view was built
	stirred   brief          // when it was last built because of news, or of somebody who was there
	until     brief          // when an event makes an end of it; zero: never
	history   room.History
	inFlight  *siteLeaving         // nil: nobody has been let in that it would count
	ours      map[int64]int64      // what this node itself has admitted, by tick; stays as long as mine does
	mine      countsOf             // zero: ours has to be read anew
	sites     []replica.SiteCounts // scratch
	session   time.Duration        // how long a lease runs
	lasts     time.Duration        // the longest session with a ticket of this node
	saidLasts time.Duration        // the same, as the mesh was told
	recovered uint64               // the reading of the facts at which there was nothing to recover and nothing to take over; 0: none
	long      time.Duration        // how long one ran that may still run, until longUntil
	longUntil brief
	hurried   int // active when others were last told at once
	*abroad
}

// abroad is what the loop keeps of sessions whose ticket is another's, or was. The zero value
// is that there were none.
type abroad struct {
	renewals *ticket.Renewals                 // nil: there was none
	stranded map[ticket.Ticket]ticket.Renewal // the anchor is silent
	endings  *ticket.Endings                  // nil: there was none
	replaced map[ticket.Ticket]renewal        // tickets that were re-anchored here
	replaces map[ticket.Ticket]ticket.Ticket  // the same the other way round
}

// noneAbroad is shared by all rooms without such sessions. It is for reading.
var noneAbroad = &abroad{}

// ownAbroad returns what is to be written to, which is made with its first use.
func (r *Room) ownAbroad() *abroad {
	if r.abroad == noneAbroad {
		r.abroad = new(abroad)
	}
	return r.abroad
}

// class is which of the view's allowances a ticket is taken from.
type class int

const (
	reserved  class = iota // for waiting visitors who have a place reserved
	contested              // for all others
	anywhere               // for new visitors, of what no site claims; Counter only
	classes                // how many there are
)

// view is the immutable picture from which requests decide. A ticket of a class
// may be taken while used[class] < upTo[class].
type view struct {
	*room.View
	upTo    [classes]int64
	tickets tickets
	from    *counters // those that tickets are of; nil: none
	ask     *leaders
}

// leads reports whether a node is the counter.
func (w *view) leads(s ticket.Scope, self crdt.NodeID) bool { return w.ask[s] == self }

// slidesFor is how long after the end that a pass has its session may still be going on:
// where cookies do not reach the visitor, the pass stays that of the first day.
const slidesFor = 24 * time.Hour

// slides reports whether the session of a pass that is long past may go on, as its
// anchor would know.
func slides(w *view, p *Pass, now time.Time) bool {
	return p.Accepted() && !p.Ticket.IsZero() && !w.Settings.DisableSessionRenewal && now.Sub(p.LeaseEnd) < slidesFor
}

// renewAt is the part of a session after which a later end is worth a cookie.
const renewAt = 8

// Settings returns the settings that hold at the moment: the operator's, with
// what an event overrides. They are shared; nobody changes them.
func (r *Room) Settings() *room.Settings { return r.view.Load().View.Settings }

// CountBypass notes a request that passed the room because a rule of the front says
// so. It counts for nothing but the status. Any goroutine may call it.
func (r *Room) CountBypass() { r.counted().bypassed.Add(1) }

// CountCrowded notes somebody new whom the front did not have queue, because too many
// come. It counts for nothing but the status. Any goroutine may call it.
func (r *Room) CountCrowded() { r.counted().crowded.Add(1) }

// CountDryRun notes a request of somebody who would have queued, and passes since the room
// only tries its limits. It counts for nothing but the status. Any goroutine may call it.
func (r *Room) CountDryRun() { r.counted().dryRun.Add(1) }

// CountShared notes a request with a pass that too many addresses use. It counts for
// nothing but the status. Any goroutine may call it.
func (r *Room) CountShared() { r.counted().shared.Add(1) }

// decide answers from memory, or says whose word is needed; the verdict then
// holds the pass as it was judged by.
func (r *Room) decide(p Pass, known bool, now time.Time) (v Verdict, n need) {
	n = r.judge(&v, &p, known, now)
	return v, n
}

// judge is decide into a zero verdict: passes and verdicts are large, and most
// requests are answered here. It uses p as it likes.
func (r *Room) judge(v *Verdict, p *Pass, known bool, now time.Time) (n need) {
	if !known || p.Room != r.id {
		*p = Pass{}
	}
	exchanged := p.Foreign
	if p.Foreign {
		r.takeForeign(p, now)
	}
	if known && !p.Accepted() {
		exchanged = r.exchange(p, now) || exchanged
	}
	w := r.view.Load()
	d := w.Decide(r.visitor(w, p), now)
	if d.New && slides(w, p, now) {
		d = room.Decision{Action: room.Ask}
	}
	if d.New {
		*p = Pass{} // whatever place it held is gone
	}
	switch d.Action {
	case room.Enter:
		p.Shown = room.Shown{}
		if !r.enter(v, w, p, now) {
			n = r.judgeNew(v, p, now)
		}
		v.SetPass = v.SetPass || exchanged
		return n
	case room.Ask:
		if r.over(p.Ticket) {
			return r.judgeNew(v, p, now)
		}
		v.Pass = *p
		return anchorWord
	case room.TooEarly:
		r.tooEarly(v, w, p)
		return nothing
	case room.Refuse:
		v.ClearPass, v.View = known, w.View
		return nothing
	case room.Apply, room.Compete:
		c := contested
		if d.Action == room.Apply {
			c = reserved
		}
		if n, ok := r.apply(v, w, c, p, now); ok {
			return n
		}
	}
	r.stand(v, w, p, true, now)
	return nothing
}

// judgeNew is judge for somebody whose session is over.
func (r *Room) judgeNew(v *Verdict, p *Pass, now time.Time) need {
	*v, *p = Verdict{}, Pass{}
	return r.judge(v, p, true, now)
}

// exchange puts the pass of the session in the place of a waiting one that it was exchanged for,
// and reports whether there is one: it is as good. Should that session be lost, the visitor waits on,
// and is told no longer wait than before. A session that is over leaves no pass.
func (r *Room) exchange(p *Pass, now time.Time) bool {
	q := r.core.stripes.ofVisitor(p.Visitor).shown(visitKey{r.id, p.Visitor}, now)
	if !q.isKnown() {
		return false
	}
	if r.isOver(q) {
		*p = Pass{}
		return false
	}
	shown := p.Shown
	*p = q.pass
	p.Shown = shown
	return true
}

// takeForeign has who was let in by another mesh wait here, by the arrival, if the session
// may have gone on until now.
func (r *Room) takeForeign(p *Pass, now time.Time) {
	p.Foreign = false
	s := r.Settings()
	if p.Refresh = s.RefreshInterval; now.Sub(p.LastPoll) < askedFor*s.SessionDuration {
		p.LastPoll = now.Add(-p.Refresh)
	}
}

// visitor returns what a decision needs to know of the holder of a pass.
func (r *Room) visitor(w *view, p *Pass) room.Visitor {
	vis := room.Visitor{
		Arrival: p.Arrival, LastPoll: p.LastPoll, Refresh: p.Refresh,
		AcceptedAt: p.AcceptedAt, LeaseEnd: p.LeaseEnd,
	}
	if !p.Accepted() && !p.Arrival.IsZero() {
		vis.Place = r.place(w, p)
	}
	return vis
}

// place returns where a waiting visitor stands.
func (r *Room) place(w *view, p *Pass) time.Time {
	return w.Settings.Place(r.core.places, p.Visitor, p.Arrival)
}

// admit returns the verdict on a visitor who is let pass with a pass of ours.
func (r *Room) admit(p Pass) Verdict {
	p.Shown = room.Shown{}
	return Verdict{Admit: true, Pass: p, SetPass: true, View: r.view.Load().View}
}

// enter lets a visitor pass whose lease runs. The anchor is told later; the
// pass changes only when the anchor has agreed to an end that is worth it. It
// reports false if the origin has ended the session. This is what most requests
// come to, and verdicts are large: it fills in v rather than return another.
func (r *Room) enter(v *Verdict, w *view, p *Pass, now time.Time) bool {
	if w.Settings.DisableSessionRenewal {
		return r.enterOnce(v, w, p, now)
	}
	k := sessionKey{r.id, p.Ticket}
	next, ok := r.core.stripes.ofSession(k).checkIn(k, p.LeaseEnd, now)
	if next.over || ok && next.ticket != p.Ticket && r.over(next.ticket) {
		return false
	}
	if !ok && p.Ticket.Anchor == r.core.self.Node && r.due(p.LeaseEnd, now.Add(w.Settings.SessionDuration), now) {
		// The anchor is this node: it can agree at once.
		if end, in := r.extend(p.Ticket, p.LeaseEnd, now, now); in {
			next, ok = renewal{ticket: p.Ticket, end: end}, true
		}
	}
	other := ok && next.ticket != p.Ticket
	if other {
		// The pass may have been renewed since by the anchor, which others reach: it
		// shall not get any shorter.
		next = r.grown(next, now)
		other = !next.end.Before(p.LeaseEnd)
	}
	v.Admit, v.Pass, v.View = true, *p, w.View
	if ok && (other || r.due(p.LeaseEnd, next.end, now)) && next.end.After(now) {
		v.Pass.carry(next)
		v.SetPass = true
	}
	return true
}

// enterOnce is enter where sessions are not renewed. Nobody needs to hear of the
// visit, unless the origin may have ended the session: then the anchor knows.
func (r *Room) enterOnce(v *Verdict, w *view, p *Pass, now time.Time) bool {
	k := sessionKey{r.id, p.Ticket}
	s := r.core.stripes.ofSession(k)
	over := false
	if p.Ticket.Anchor != r.core.self.Node && slices.Contains(w.Settings.EnabledOriginCommands, room.Revoke) {
		next, _ := s.checkIn(k, p.LeaseEnd, now)
		over = next.over
	} else {
		over = s.over(k)
	}
	v.Admit, v.Pass, v.View = true, *p, w.View
	return !over
}

// due reports whether a new end is so much later that a cookie is worth it. An anchor
// with shorter sessions than this node never agrees to that much at once: there it is
// when the pass is about to end.
func (r *Room) due(old, end, now time.Time) bool {
	later, step := end.Sub(old), r.Settings().SessionDuration/renewAt
	return later >= step || later >= end.Sub(now)/renewAt && old.Sub(now) < step
}

// extend checks a session in at this node's own leases. What it changes in the
// count is booked by the loop.
func (r *Room) extend(t ticket.Ticket, passEnd, at, now time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rights == nil {
		return time.Time{}, false
	}
	end, d, err := r.rights.CheckIn(t, passEnd, at, now)
	r.delta = r.delta.Add(d)
	return end, err == nil
}

// wait queues a visitor, or keeps the place of one who waits.
func (r *Room) wait(w *view, p Pass, now time.Time) (v Verdict) {
	r.stand(&v, w, &p, true, now)
	return v
}

// stand is wait into a zero verdict, which does not count the visitor unless that is wanted. It uses p as it likes.
func (r *Room) stand(v *Verdict, w *view, p *Pass, counted bool, now time.Time) {
	v.SetPass, v.View = true, w.View
	isNew := p.Visitor == (VisitorID{})
	if isNew {
		p.Visitor = r.core.newVisitor()
		p.Room = r.id
		p.Arrival = now
	}
	v.New = isNew && counted
	v.Estimate, p.Shown = w.Estimate(r.place(w, p), p.Shown)
	last := p.LastPoll
	told := w.Told(p.Visitor, v.Estimate, now)
	if !isNew && counted {
		r.queue(visit{
			visitor: p.Visitor, room: p.Room, arrival: p.Arrival, at: now,
			refresh: w.Expected(now.Sub(last), p.Refresh, told), again: w.Settings.IsCounted(r.visitor(w, p), now.Add(againWithin)),
		})
	}
	p.LastPoll, p.Refresh = now, told
	v.Refresh, v.Pass = w.refresh(p), *p
}

// Hold returns the verdict on somebody who is to wait also where a place is free: p is a waiting
// pass of this room, or zero for somebody new. New is as of Decide. Whoever is not counted keeps
// the place as somebody does who is away, so that no place elsewhere stays free for them; such a
// verdict is never New. Any goroutine may call it.
func (r *Room) Hold(p Pass, counted bool, now time.Time) (v Verdict) {
	if p.Room != r.id {
		p = Pass{}
	}
	if p.Foreign {
		r.takeForeign(&p, now)
	}
	w := r.view.Load()
	d := w.Decide(r.visitor(w, &p), now)
	if d.New {
		p = Pass{}
	}
	switch {
	case d.New && w.Settings.QueueingMethod == room.Reject && !w.Event.Prequeueing:
		return Verdict{View: w.View}
	case d.Action == room.TooEarly:
		r.tooEarly(&v, w, &p)
		return v
	}
	r.stand(&v, w, &p, counted || !r.core.others.Load(), now)
	return v
}

// Queue counts a visitor who waits, as of the last poll in p. Decide does that by
// itself for all but those whose verdict is New: they are nobody yet, and leave no trace
// if it is not called. Any goroutine may call it.
func (r *Room) Queue(p Pass) {
	r.queue(visit{visitor: p.Visitor, room: p.Room, arrival: p.Arrival, at: p.LastPoll, refresh: p.Refresh})
}

// queue counts a visitor who waits.
func (r *Room) queue(v visit) { r.core.stripes.ofVisitor(v.visitor).poll(v) }

// tooEarly answers a poll that does not count. The pass stays as it is, so the
// minutes are those told last: were they fewer now, the next answer could be
// more, since nothing would remember these.
func (r *Room) tooEarly(v *Verdict, w *view, p *Pass) {
	e, _ := w.Estimate(r.place(w, p), p.Shown)
	e.Known = e.Known && p.Shown.Minutes > 0
	e.Minutes, e.P25, e.P75 = 0, 0, 0
	if e.Known {
		e.Minutes, e.P25, e.P75 = int(p.Shown.Minutes), int(p.Shown.P25), int(p.Shown.P75)
	}
	v.Pass, v.Estimate, v.Refresh, v.View = *p, e, w.refresh(p), w.View
}

// refresh returns when a waiting visitor is to ask again; 0: a room that rejects
// everybody sees nobody sooner for asking. In a pre-queue it does, and asking is what
// keeps the places that it gives.
func (w *view) refresh(p *Pass) time.Duration {
	if w.Settings.QueueingMethod == room.Reject && !w.Event.Prequeueing {
		return 0
	}
	return p.Refresh
}
