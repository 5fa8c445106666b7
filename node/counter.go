package node

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// Where the tickets of a room come from: what requests see of it.

// tickets is where a view's tickets come from.
type tickets interface {
	// take takes a ticket of a class for a visitor, if one is to be had here and
	// now. It returns the class that the ticket was taken from, or that has to be
	// asked for: who finds none of one class may be offered another. It is called
	// by many at once and does not wait.
	take(w *view, c class, now time.Time) (class, outcome)
}

// outcome is what became of an attempt to take a ticket.
type outcome uint8

const (
	refused outcome = iota
	granted
	asked // another node hands out what there is; apply there
)

// ownPart gives the tickets that a view allows this node by itself.
type ownPart struct{ *Room }

func (t ownPart) take(w *view, c class, now time.Time) (class, outcome) {
	if t.takeSome(w, c, 1, now) == 1 {
		return c, granted
	}
	return c, refused
}

// takeSome counts up to n tickets of a class, as far as the view allows them,
// and returns how many. A process that was stopped and goes on finds a view that
// is long past, before its loop has come round; nothing is taken from that, nor
// from one that an event has ended. Another node that asks has its own view of
// when that is.
func (r *Room) takeSome(w *view, c class, n int, now time.Time) int {
	if now.Sub(w.BuiltAt) > viewKept && w.upTo[c] != math.MaxInt64 || w.Over(now) {
		return 0
	}
	for {
		used := r.used[c].Load()
		some := min(int64(n), w.upTo[c]-used)
		if some <= 0 {
			return 0
		}
		if r.used[c].CompareAndSwap(used, used+some) {
			return int(some)
		}
	}
}

// counters gives the tickets of the site's counter, which is one of its nodes,
// and beyond those the tickets of the room's anywhere counter. What they refuse
// is remembered for as long as they say, so that a flood of visitors becomes a
// call per round trip.
type counters struct {
	room *Room

	// until is a time in Unix ns for each class: nobody applies before.
	until [classes]atomic.Int64

	inStock atomic.Int64 // what is lent to this node, for Status
	alone   atomic.Bool  // the counter does not answer

	mu     sync.Mutex                            // guards the following
	desks  [ticket.Scopes]*ticket.Desk[*pending] // nil: nobody has applied there; see desk
	own    []parked                              // who is served here, without a call; see here
	here   bool                                  // rights are the limit, and this node is the counter or alone
	hot    bool                                  // somebody applied, and the loop has not looked
	closed bool                                  // nobody answers any more

	loop counterLoop // owned by the loop
}

// desk returns the desk of a counter. mu is held.
func (k *counters) desk(s ticket.Scope) *ticket.Desk[*pending] {
	if k.desks[s] == nil {
		k.desks[s] = new(ticket.Desk[*pending])
	}
	return k.desks[s]
}

// scopeOf returns which counter hands out the tickets of a class.
func scopeOf(c class) ticket.Scope {
	if c == anywhere {
		return ticket.AnywhereCounter
	}
	return ticket.SiteCounter
}

func (k *counters) take(w *view, c class, now time.Time) (class, outcome) {
	if c == contested && w.AllowNew <= 0 {
		return k.takeAnywhere(w, now) // by the same counts, the site's counter has none either
	}
	is := k.takeOf(w, c, now)
	if is == refused && c == contested {
		return k.takeAnywhere(w, now)
	}
	return c, is
}

// takeAnywhere tries the anywhere counter. Visitors who wait have their places
// in their sites; what no site claims is for new ones, and for those who fare
// like them: who may compete.
func (k *counters) takeAnywhere(w *view, now time.Time) (class, outcome) {
	if w.AllowAnywhere <= 0 {
		return anywhere, refused
	}
	return anywhere, k.takeOf(w, anywhere, now)
}

func (k *counters) takeOf(w *view, c class, now time.Time) outcome {
	switch {
	case w.leads(scopeOf(c), k.room.core.self.Node):
		if k.room.takeSome(w, c, 1, now) == 1 {
			return granted
		}
		return refused
	case now.UnixNano() < k.until[c].Load():
		return refused
	}
	return asked
}

// apply has a request wait for a ticket of a class. It reports whether it may.
func (k *counters) apply(w *pending, c class) bool {
	v := k.room.view.Load()
	place := w.at
	if !w.pass.Arrival.IsZero() {
		place = k.room.place(v, &w.pass)
	}
	k.mu.Lock()
	closed, first := k.closed, !k.hot
	if !closed {
		a := applicant{Place: place, Reserved: c == reserved, Who: w}
		if k.here {
			k.own = append(k.own, parked{applicant: a})
		} else {
			k.desk(scopeOf(c)).Apply(a)
		}
		k.hot = true
	}
	k.mu.Unlock()
	if !closed && first {
		k.room.core.hot.add(k)
	}
	return !closed
}

// letIn lets in who waits for that, with a ticket.
func (k *counters) letIn(w *pending, g *gotten, now time.Time) {
	var as Verdict
	n := k.room.letIn(&as, g, &w.pass, now)
	k.room.core.settle(w, &as, n, now)
}

// applied goes on with a request that a counter has answered.
func (k *counters) applied(a applicant, c class, got bool, now time.Time) {
	r, w := k.room, a.Who
	if got {
		k.letIn(w, &gotten{class: c, lent: true, ticket: a.Ticket, session: a.Session}, now)
		return
	}
	if c == contested && k.loop.supply == nil {
		v := r.view.Load()
		switch c, is := k.takeAnywhere(v, now); is {
		case granted:
			k.letIn(w, &gotten{class: c}, now)
			return
		case asked:
			r.core.settle(w, &Verdict{Pass: w.pass}, needOf(c), now)
			return
		}
	}
	k.turnAway(w, now)
}

// turnAway answers a request that gets no ticket: the visitor waits. Where the
// settings have changed meanwhile and no counter has a say any more, or the visitor
// was let in with a copy of the pass, the request is judged anew.
func (k *counters) turnAway(w *pending, now time.Time) {
	r := k.room
	v := r.view.Load()
	if v.from == k && v.Settings.QueueingMethod != room.Reject && !r.redeemedLately(&w.pass, now) {
		as := r.wait(v, w.pass, w.at)
		r.core.settle(w, &as, nothing, now)
		return
	}
	as, n := r.decide(w.pass, w.pass.Room == r.id, now)
	r.core.settle(w, &as, n, now)
}

// gotten is a ticket that a visitor gets.
type gotten struct {
	class  class
	lent   bool          // by another counter
	ticket ticket.Ticket // zero: the next one of this node's own

	// session is how long the first pass with ticket may last at most, which its
	// anchor has said; 0: as this node has it.
	session time.Duration
}

// giveBack returns a ticket that was taken and not used.
func (r *Room) giveBack(g gotten) {
	if !g.lent {
		r.used[g.class].Add(-1)
	}
	if !g.ticket.IsZero() {
		r.giveBackRight(g.ticket)
	} else if k := r.counters.Load(); k != nil && g.lent {
		k.mu.Lock()
		k.desk(scopeOf(g.class)).Return(1)
		k.mu.Unlock()
	}
}

// booked notes that a ticket is counted in this node's row. Where rights are the
// limit, no counter needs to hear of that.
func (r *Room) booked(g gotten) {
	if !g.lent {
		r.collected[g.class]++
	} else if k := r.counters.Load(); k != nil && g.ticket.IsZero() {
		seq := r.core.replica.Known(r.core.self)
		k.mu.Lock()
		k.desk(scopeOf(g.class)).Booked(1, seq)
		k.mu.Unlock()
	}
}

// hotCounters are those at which somebody has applied since the loop looked.
// The zero value is ready.
type hotCounters struct {
	mu  sync.Mutex // guards the following
	all []*counters
}

func (h *hotCounters) add(k *counters) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, k)
}

func (h *hotCounters) take() []*counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	return all
}

// close returns all who wait at a desk. From then on nobody may.
func (k *counters) close() (all []*pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for i := range k.desks {
		for _, a := range k.desks[i].Drain() {
			all = append(all, a.Who)
		}
	}
	for _, a := range k.own {
		all = append(all, a.Who)
	}
	k.own = nil
	if s := k.loop.supply; s != nil && len(s.parked) > 0 {
		for _, p := range s.parked {
			all = append(all, p.Who)
		}
		s.parked = nil
	}
	return all
}

var (
	_ tickets = ownPart{}
	_ tickets = (*counters)(nil)
)

// counterLoop is what the loop keeps for the counters of one room.
type counterLoop struct {
	lead     ticket.Lead
	since    [ticket.Scopes]brief // this node is the counter; zero: it is not
	ask      *leaders
	far      crdt.NodeID // who is the counter in the site of the anywhere counter, as far as one there said
	accounts ticket.Accounts
	leaving  leaving
	supply   *supply       // nil: rights are not the limit
	stock    *ticket.Stock // what was lent to this node, ever; nil: nothing was. Another would take a loan twice
	handed   *crdt.NodeID  // whom this node has told to be the counter in its place; nil: nobody
}

// leaders are who the counters are; zero: nobody is. Nobody changes them: views have them, too,
// and so have other rooms with the same.
type leaders [ticket.Scopes]crdt.NodeID

// noLeaders is where a room has no counters.
var noLeaders = &leaders{}
