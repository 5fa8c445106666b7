package node

import (
	"sync"
	"sync/atomic"
	"time"
)

// How a request that another node has a say in waits for that word, without a
// goroutine or a clock of its own.

// need says whose word an answer waits for.
type need uint8

const (
	nothing    need = iota // this node's memory was enough
	anchorWord             // whether the session goes on
	ownersWord             // whether nobody else has redeemed the pass
	aTicket                // of class 0; those of the other classes follow
)

func needOf(c class) need { return aTicket + need(c) }

// whose returns whose word it is.
func (n need) whose() string {
	switch n {
	case nothing:
		return ""
	case anchorWord:
		return "anchor"
	case ownersWord:
		return "owner"
	}
	return "counter"
}

// maxPendings bounds the requests of one node that wait for another. Beyond it
// they are answered as if nobody had: those who wait go on waiting, in place.
const maxPendings = 1 << 16

// pendings counts the requests that wait, and wakes the loop for them.
type pendings struct {
	count atomic.Int64
	wake  chan struct{} // holds one: the loop takes all there is
	free  sync.Pool     // of *pending that nobody knows of any more
	heard sync.Pool     // of *hearing
}

// take returns a pending that is zero.
func (p *pendings) take() *pending {
	if w, ok := p.free.Get().(*pending); ok {
		return w
	}
	return new(pending)
}

// put takes back one that was answered. One that has waited for an anchor or an owner is left
// to the garbage: the table of questions knows it for a while.
func (p *pendings) put(w *pending) {
	switch {
	case w.number != 0:
		return
	case w.pass.blank():
		w.room, w.done, w.at, w.asks, w.claimed, w.leads = nil, nil, time.Time{}, false, false, visitKey{}
	default:
		*w = pending{}
	}
	p.free.Put(w)
}

// hearing is how one request at a time hears its answer in Decide.
type hearing struct {
	answer chan Verdict  // holds one
	done   func(Verdict) // sends it
}

// hear returns one to which nothing was sent.
func (p *pendings) hear() *hearing {
	if h, ok := p.heard.Get().(*hearing); ok {
		return h
	}
	h := &hearing{answer: make(chan Verdict, 1)}
	h.done = func(v Verdict) { h.answer <- v }
	return h
}

// hurry wakes the loop, if it is not about to look anyway.
func (p *pendings) hurry() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pending is one request that waits. It is large, and handed on from queue to queue:
// hence by pointer. It is filled in by one processor and used up by another, and for
// somebody new, as most are in a crowd, neither looks beyond the first fields of the pass.
type pending struct {
	room *Room
	done func(Verdict)
	at   time.Time // of the request

	// Of the last question that had a reply, or none in time.
	number  uint64
	asks    bool     // done has the say whether somebody new queues
	claimed bool     // it was to the visitor's owner: the request may be let in
	leads   visitKey // of the first request with a waiting pass that wants a ticket: the visitor of that pass, whoever this request is by later; zero: others do not wait for it

	pass  Pass       // zero: a new visitor
	asked time.Time  // when the last question was sent first
	same  []*pending // where it leads, the others with the same pass; guarded by the visitor's stripe
}

// of has a pending that is zero be of a request by a pass.
func (w *pending) of(p *Pass) {
	if !p.blank() {
		w.pass = *p
	}
}

// Decide answers one request at the time now. known reports whether p is a pass
// of this room that could be opened. An admitted visitor is answered from this
// node's memory. One whose pass has run out waits until the session's anchor has
// said whether the session goes on, a second at most; one who may enter a room
// of the policies counter and escrow until a counter has answered, mostly a round trip
// in the site, 600 ms per counter and call at most; one who may enter after waiting
// first until the visitor's owner has, 250 ms and a tick at most. Decide needs somebody who calls
// Flush when Wake says so, and Tick, as Node does.
//
// Who is new and has to wait is not counted: the caller calls Queue for a verdict that is
// New, or refuses the visitor, who then was never there.
func (r *Room) Decide(p Pass, known bool, now time.Time) (v Verdict) {
	n := r.begin(&v, &p, known, now)
	if n != nothing {
		r.ask(&v, n, now)
	}
	return v
}

// ask waits for the word that begin needs, and has v be the answer then. Most requests need none: what this takes on the
// stack shall not be theirs.
func (r *Room) ask(v *Verdict, n need, now time.Time) {
	ps, since := &r.core.pendings, time.Now()
	h, w := ps.hear(), ps.take()
	w.room, w.at, w.done, w.asks = r, now, h.done, true
	w.of(&v.Pass)
	if !r.core.pend(n, w) {
		*v = r.giveUp(n, w, now)
		return
	}
	ps.hurry()
	*v = <-h.answer
	ps.heard.Put(h) // nothing more will be sent to it
	v.Asked, v.Word = time.Since(since), n.whose()
}

// Begin answers one request like Decide as far as this node's memory goes. If
// another node has to be asked, ok is false and done is called exactly once,
// from Receive, Tick or Flush, with the answer, which may be before Begin returns. Wake says
// that Flush is to be called, which sends the question. done must not block, nor call back
// in. Who is new queues without being asked about.
func (r *Room) Begin(p Pass, known bool, now time.Time, done func(Verdict)) (v Verdict, ok bool) {
	n := r.begin(&v, &p, known, now)
	if n == nothing {
		return r.queued(v), true
	}
	ps := &r.core.pendings
	w := ps.take()
	w.room, w.at, w.done = r, now, done
	w.of(&v.Pass)
	if !r.core.pend(n, w) {
		return r.queued(r.giveUp(n, w, now)), true
	}
	ps.hurry()
	return Verdict{}, false
}

// queued returns v, and has its visitor queue who is new.
func (r *Room) queued(v Verdict) Verdict {
	if v.New {
		r.Queue(v.Pass)
	}
	return v
}

// answer hands v out.
func (w *pending) answer(v *Verdict) {
	if !w.asks && v.New {
		w.room.Queue(v.Pass)
	}
	w.done(*v)
}

// begin answers from memory into a zero verdict, or says whose word is needed.
// The verdict then holds the pass as the request was judged by. It uses p as it
// likes.
func (r *Room) begin(v *Verdict, p *Pass, known bool, now time.Time) need {
	n := r.judge(v, p, known, now)
	if n == anchorWord {
		n = r.recall(v, now)
	}
	return n
}

// recall goes on where the word of a session's anchor is needed, if this node has it: another node may have asked for it before, or
// this node is the anchor.
func (r *Room) recall(v *Verdict, now time.Time) (n need) {
	if as, ok := r.known(v.Pass, now); ok {
		*v = as
		return nothing
	}
	if asked := v.Pass; asked.Ticket.Anchor == r.core.self.Node {
		end, is := time.Time{}, over
		if e, ok := r.extend(asked.Ticket, asked.LeaseEnd, now, now); ok {
			end, is = e, goesOn
		} else if r.leaving() {
			is = silent
		}
		*v, n = r.answered(asked, end, is, now)
		return n
	}
	return anchorWord
}

// pend has a request wait. It reports whether it may.
func (c *Core) pend(n need, w *pending) bool {
	if !c.open.Load() {
		return false
	}
	taken := false
	if c.pendings.count.Add(1) <= maxPendings {
		switch k := w.room.counters.Load(); {
		case n == anchorWord:
			taken = c.asks.add(sessionKey{w.room.id, w.pass.Ticket}, w)
		case n == ownersWord:
			taken = c.redeems.add(visitKey{w.room.id, w.pass.Visitor}, w)
		case k != nil:
			taken = w.joins() || k.apply(w, class(n-aTicket))
		}
	}
	if !taken {
		c.pendings.count.Add(-1)
		if n >= aTicket { // else they get what w gets: settle is about to answer
			for _, o := range w.parts() {
				c.settle(o, &Verdict{Pass: o.pass}, n, o.at)
			}
		}
	}
	return taken
}

// settle goes on with a request once it has what it waited for: v is its answer,
// or the word that it needs next. It uses v as it likes, and nobody uses w after it.
func (c *Core) settle(w *pending, v *Verdict, n need, now time.Time) {
	c.pendings.count.Add(-1)
	if n != nothing {
		w.pass = v.Pass
		if c.pend(n, w) {
			return
		}
		*v = w.room.giveUp(n, w, now)
	}
	if !v.Admit && w.claimed {
		c.stripes.ofVisitor(w.pass.Visitor).giveUpClaim(claim{visitKey{w.room.id, w.pass.Visitor}, c.self.Node, w.number})
	}
	for _, o := range w.parts() {
		c.pendings.count.Add(-1)
		o.answer(v)
	}
	w.answer(v)
	c.pendings.put(w)
}

// joins has a request that wants a ticket wait for what another one with the same waiting
// pass gets, so that one pass sent a thousand times does not take a thousand tickets. It
// reports false if it is the first.
func (w *pending) joins() bool {
	if !w.waits() || w.leads != (visitKey{}) {
		return false
	}
	k := visitKey{w.room.id, w.pass.Visitor}
	return w.room.core.stripes.ofVisitor(k.visitor).join(k, w)
}

// parts returns who waits for what w gets.
func (w *pending) parts() []*pending {
	if w.leads == (visitKey{}) {
		return nil
	}
	return w.room.core.stripes.ofVisitor(w.leads.visitor).part(w)
}

// waits reports whether a request is of somebody who has waited.
func (w *pending) waits() bool { return !w.pass.Arrival.IsZero() && !w.pass.Accepted() }

// giveUp answers a request that nobody will help with.
func (r *Room) giveUp(n need, w *pending, now time.Time) Verdict {
	p := w.pass
	if n == anchorWord {
		var v Verdict
		if v, n = r.answered(p, time.Time{}, silent, now); n == nothing {
			return v
		}
		p = v.Pass
	}
	return r.wait(r.view.Load(), p, w.at)
}

// Flush returns what requests have made urgent since the last call. It is called
// when Wake says so, or right after Begin has returned false; Tick does the same
// for what is left.
func (c *Core) Flush(now time.Time) []Message {
	out := append(c.sendQuestions(now, false), c.sendRedeems(now, false)...)
	out = append(out, c.sendHot(now)...)
	return append(out, c.tellOwners()...)
}

// Wake receives when somebody in Decide waits for Flush.
func (c *Core) Wake() <-chan struct{} { return c.pendings.wake }

// Close answers whoever still waits for another node, and all who come later, as
// if that node were silent. It is the last call.
func (c *Core) Close(now time.Time) {
	for _, w := range c.asks.close() {
		c.settle(w, &Verdict{Pass: w.pass}, anchorWord, now)
	}
	for _, r := range c.order {
		if k := r.counters.Load(); k != nil {
			for _, w := range k.close() {
				c.settle(w, &Verdict{Pass: w.pass}, aTicket, now)
			}
		}
	}
	for _, w := range c.redeems.close() {
		c.settle(w, &Verdict{Pass: w.pass}, ownersWord, now)
	}
}
