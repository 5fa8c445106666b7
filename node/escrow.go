package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/ticket"
)

// Where the tickets of a room come from whose limit is rights: what requests see
// of it, and who serves them.
//
// Every ticket is handed out by the loop. All who want one while it does
// something else are served together, in the order of their places; those who
// have a place reserved before all others.

// escrow is where tickets come from under the policy of that name.
type escrow struct{ *counters }

var _ tickets = escrow{}

func (e escrow) take(w *view, c class, now time.Time) (class, outcome) {
	if c == contested && w.AllowNew <= 0 || now.UnixNano() < e.until[c].Load() {
		return c, refused
	}
	return c, asked
}

// applicant is a visitor who wants a ticket.
type applicant = ticket.Applicant[*pending]

// supply is what the loop keeps for a room whose limit is rights.
type supply struct {
	mover   ticket.Mover
	moved   brief         // when the mover was last asked
	looked  brief         // as of when idle is
	lenders brief         // when the stock last heard who may lend
	passed  uint8         // how often another room had its turn since the mover was asked
	idle    ticket.Amount // what other nodes seem to have free, as of the last look
	taken   int64         // of that, what was drawn from the stock since
	*demand
}

// demand is what there is of a supply once somebody has wanted a right. The zero value is
// that nobody has.
type demand struct {
	parked []parked       // visitors of this node who wait for rights on their way
	here   []parked       // scratch: those who are served
	ranges []ticket.Range // scratch: what they are served with
	calls  map[crdt.Incarnation]heardCall
	far    map[string]crdt.NodeID // the counters of other sites, as far as they have spoken
	dry    brief                  // until then nobody waits for any: none came the last time
	asked  brief                  // when the mover was last asked because visitors were waiting
	hungry brief                  // since when they have been, without a break
	unused []ticket.Range
}

// noDemand is shared by all rooms in which nobody has wanted a right, of which there may be
// thousands. It is for reading.
var noDemand = &demand{}

// own returns the supply with a demand that may be written to, which is made with its first
// use.
func (s *supply) own() *supply {
	if s.demand == noDemand {
		s.demand = new(demand)
	}
	return s
}

// parked is an applicant for whom rights may be on their way.
type parked struct {
	applicant
	since time.Time // zero: the loop has not looked since
}

// compare is the order in which they are served: who has a place reserved before all
// others, older places first.
func (p parked) compare(o parked) int {
	return cmp.Or(cmp.Compare(classOf(ticket.SiteCounter, p.Reserved), classOf(ticket.SiteCounter, o.Reserved)), p.Place.Compare(o.Place))
}

// heardCall is since when the newest call of a node has waited for an answer.
type heardCall struct {
	number uint64
	since  time.Time
}

// since returns since when a call has waited, and has the stock know what it wants
// when it comes.
func (s *supply) since(stock *ticket.Stock, from crdt.Incarnation, number uint64, want ticket.Places, now time.Time) time.Time {
	if is, ok := s.calls[from]; ok && is.number == number {
		return is.since
	}
	stock.Want(int64(want.Sum()), from.Node, now)
	s = s.own()
	if s.calls == nil || len(s.calls) > maxCallers {
		s.calls = map[crdt.Incarnation]heardCall{}
	}
	s.calls[from] = heardCall{number, now}
	return now
}

// maxCallers bounds the calls whose time is remembered; to forget one has it wait
// anew, and its caller give up first.
const maxCallers = 1024

// dryFor is how long nobody waits for rights after some did in vain.
const dryFor = viewInterval

// nearGives is how long the other nodes of a site have to lend what they have.
// What they seem to have after that they have not: a rate right is ready a little
// later than counts of the last minute say.
const nearGives = 100 * time.Millisecond

// wantedAgain is the least time between two looks for rights elsewhere because
// visitors wait.
const wantedAgain = 50 * time.Millisecond

// setByRights says whether rights are the limit of the room, or places that are
// counted out.
func (k *counters) setByRights(on bool) {
	if on == (k.loop.supply != nil) {
		return
	}
	k.retire()
	if !on {
		return
	}
	k.loop.supply = &supply{demand: noDemand}
}

// stock returns what is lent to this node, which is made when it is first of use: by
// somebody who wants a ticket, or another node that may lend.
func (k *counters) stock() *ticket.Stock {
	if k.loop.stock == nil {
		k.loop.stock = ticket.NewStock(k.room.core.self, k.room.id)
		k.loop.stock.LeaveOut(k.room.core.leaveOut)
	}
	return k.loop.stock
}

// serveByRights answers whoever applies here, and returns what is to be asked of
// the site's counter and answered to other nodes.
func (k *counters) serveByRights(now time.Time) []Message {
	c := k.room.core
	k.catchUp(now)
	to := k.loop.ask[ticket.SiteCounter]
	leads, nobody := to == c.self.Node, to == crdt.NodeID{}
	k.mu.Lock()
	d := k.desks[ticket.SiteCounter]
	own := k.takeParked()
	before := len(own)
	own = k.arrived(own)
	fresh := len(own) - before
	lost := d.GiveUp(now)
	if leads || nobody {
		lost = append(lost, d.Drain()...)
	}
	for _, a := range lost {
		own = append(own, parked{a, now})
	}
	k.here = leads || nobody || d.Alone()
	k.alone.Store(d.Alone() && !leads)
	if !k.here && k.suffices(len(own)+d.Queued(), now) {
		for _, a := range d.Recall() {
			own = append(own, parked{a, now})
		}
		k.here = true
	}
	var call ticket.Call
	calls := false
	if !leads && !nobody {
		if !k.here { // the counter is back, or wanted
			for _, p := range own {
				d = k.desk(ticket.SiteCounter)
				d.Apply(p.applicant)
			}
			clear(own)
			own = own[:0]
			k.remember(ticket.SiteCounter)
		}
		call, calls = d.Next(to, now)
	}
	k.mu.Unlock()
	var out []Message
	if calls {
		call.Room, call.Scope = k.room.id, ticket.SiteCounter
		out = append(out, c.message(to, kindCall, ticket.AppendCall(nil, call)))
	}
	if n := fresh + len(lost); leads && n > 0 { // those who were to be asked for elsewhere, too
		k.stock().Want(int64(n), c.self.Node, now)
	}
	k.serveHere(own, now)
	k.loop.supply.reuse(own)
	if leads {
		out = append(out, k.answerCalls(now)...)
	}
	if len(k.loop.supply.parked) > 0 || k.loop.accounts.Waiting() > 0 {
		out = append(out, k.seek(now)...)
	}
	return out
}

// answerCalls returns the answers to calls of other nodes that have waited.
func (k *counters) answerCalls(now time.Time) (out []Message) {
	for _, a := range k.loop.accounts.Serve(func(from crdt.Incarnation, call ticket.Call) ticket.Offer {
		return k.offer(from, call, now)
	}, now) {
		out = append(out, k.room.core.message(a.To, kindGrant, ticket.AppendGrant(nil, a.Grant)))
	}
	return out
}

// catchUp has the room's view be of now where the loop is late: nobody shall be turned away for that. Where counts are
// the limit a late node gives nothing, since others may have used what its view allows; rights are nobody else's.
func (k *counters) catchUp(now time.Time) {
	if r := k.room; r.outdated(r.view.Load(), now) {
		r.look(now)
	}
}

// suffices reports whether n visitors may be served here although another node is the
// counter: nobody waits in the room, so that there is nobody to overtake, and what this
// node has of its own is enough for all of them. Whoever is the counter then has
// nothing to decide, and to ask it would cost a call and a round trip.
func (k *counters) suffices(n int, now time.Time) bool {
	r := k.room
	w := r.view.Load()
	if n == 0 || w.Waiting > 0 || w.Event.Prequeueing || !r.core.fit() || r.core.leave.on || len(r.stranded) > 0 {
		return false
	}
	r.mu.Lock()
	free, covered := r.rights.Free(), r.rights.Covered()
	r.mu.Unlock()
	return int64(n) <= min(free.Places, free.Rate, covered, w.upTo[contested]-r.used[contested].Load())
}

// takeParked takes those who wait here, into memory that reuse takes back.
func (k *counters) takeParked() []parked {
	s := k.loop.supply
	if s.demand == noDemand {
		return nil
	}
	all := append(s.here[:0], s.parked...)
	s.here = nil
	clear(s.parked)
	s.parked = s.parked[:0]
	return all
}

// reuse keeps the memory of those who were served for the next, who come within the
// millisecond at a busy node. That of a crowd is let go.
func (s *supply) reuse(all []parked) {
	if n := cap(all); n > 0 && n <= maxReused {
		clear(all) // beyond it nothing was used
		s.own().here = all[:0]
	}
}

// maxReused is for how many visitors memory is kept.
const maxReused = 4096

// arrived appends those who have applied here. mu is held, and requests wait for it: where
// nobody is parked, as mostly, the two lists change places instead.
func (k *counters) arrived(all []parked) []parked {
	if len(all) == 0 {
		all, k.own = k.own, all
		return all
	}
	all = append(all, k.own...)
	if cap(k.own) > maxReused {
		k.own = nil
	}
	clear(k.own)
	k.own = k.own[:0]
	return all
}

// serveHere lets applicants of this node in as far as there are rights. The others
// wait for some, if any may be on their way; else they are turned away.
func (k *counters) serveHere(all []parked, now time.Time) {
	if len(all) == 0 {
		return
	}
	r := k.room
	if !slices.IsSortedFunc(all, parked.compare) { // they mostly come in the order of their places
		slices.SortStableFunc(all, parked.compare)
	}
	n := slices.IndexFunc(all, func(p parked) bool { return !p.Reserved })
	if n < 0 {
		n = len(all)
	}
	want := k.allowed(ticket.Places{Reserved: n, Contested: len(all) - n}, now)
	got := k.draw(k.loop.supply.ranges[:0], int64(want.Sum()), r.core.self.Node, now)
	k.loop.supply.own().ranges = got.ranges
	given := [classes]int64{}
	turned := [classes]bool{}
	limit := [classes]int{reserved: want.Reserved, contested: want.Contested}
	for i := range all {
		p := &all[i]
		c := classOf(ticket.SiteCounter, p.Reserved)
		g, ok := gotten{}, limit[c] > 0
		if ok {
			g, ok = got.next()
		}
		if !ok && p.since.IsZero() {
			p.since = now
		}
		switch {
		case ok:
			limit[c]--
			given[c]++
			g.class = c
			r.used[c].Add(1)
			k.letIn(p.Who, &g, now)
		case k.mayCome(p.since, now) && (p.Reserved || limit[c] > 0):
			k.loop.supply.own().parked = append(k.loop.supply.parked, *p)
		default:
			turned[c] = true
			k.turnedAway(c)
			k.waitedInVain(p.since, now)
			k.turnAway(p.Who, now)
		}
	}
	for c, is := range turned {
		if is {
			k.until[c].Store(now.Add(r.retry(now)).UnixNano())
		}
	}
}

// retry is how long whoever is refused need not ask again: until the next view.
func (r *Room) retry(now time.Time) time.Duration {
	return max(tickInterval, min(r.viewed.time().Add(viewInterval).Sub(now), viewInterval))
}

// allowed cuts down what is wanted to what the view allows: those who have a
// place reserved are let in by any right that there is, others only as far as
// the view has places for them, and as rights are left for the first.
func (k *counters) allowed(want ticket.Places, now time.Time) ticket.Places {
	r := k.room
	w := r.view.Load()
	if !r.core.fit() || r.core.leave.on || w.Over(now) || r.outdated(w, now) {
		return ticket.Places{}
	}
	kept := max(0, w.upTo[reserved]-r.used[reserved].Load()-int64(want.Reserved))
	left := max(0, w.upTo[contested]-r.used[contested].Load())
	rights := max(0, k.available(now)-int64(want.Reserved)-kept)
	if k.mayCome(now, now) {
		rights = left // more may come
	}
	want.Contested = int(min(int64(want.Contested), left, rights))
	return want
}

// available returns how many tickets there are here right now.
func (k *counters) available(now time.Time) int64 {
	r := k.room
	r.mu.Lock()
	free := r.rights.Free()
	r.mu.Unlock()
	n := max(0, min(free.Places, free.Rate))
	if k.leads() {
		n += k.loop.stock.Rest(now)
	}
	return n
}

// leads reports whether this node is the counter of its site.
func (k *counters) leads() bool {
	return k.loop.ask[ticket.SiteCounter] == k.room.core.self.Node
}

// mayCome reports whether rights may be on their way for somebody who has waited
// since then.
func (k *counters) mayCome(since, now time.Time) bool {
	s, r := k.loop.supply, k.room
	if now.Sub(since) >= ticket.Parked || now.Before(s.dry.time()) || !r.core.fit() || r.core.leave.on {
		return false
	}
	if k.leads() {
		if looked := s.looked.time(); now.Sub(looked) >= viewInterval || now.Before(looked) {
			k.lookElsewhere(r.standing(0, now), now) // it leads only since just now
		}
		known := s.taken + k.loop.stock.Rest(now)
		if k.loop.stock.Expecting(now) > 0 || min(s.idle.Places, s.idle.Rate) > known {
			return true
		}
	}
	r.mu.Lock()
	free := r.rights.Free()
	r.mu.Unlock()
	return free.Places > 0 && free.Rate > 0 // they wait for the disk
}

// waitedInVain has nobody wait for a while if somebody has in vain.
func (k *counters) waitedInVain(since, now time.Time) {
	if now.Sub(since) >= ticket.Parked {
		k.loop.supply.own().dry = briefOf(now.Add(dryFor))
	}
}

// offer is what there is for a call of another node. It waits if there are too few
// rights for all whom the view allows, and more may be on their way.
func (k *counters) offer(from crdt.Incarnation, call ticket.Call, now time.Time) ticket.Offer {
	r := k.room
	may := k.allowed(call.Want, now)
	o := ticket.Offer{Retry: r.retry(now)}
	since := k.loop.supply.since(k.stock(), from, call.Number, may, now)
	if int64(may.Sum()) > k.ready(now) {
		r.prepare(int64(may.Sum()), now)
		if o.Wait = k.mayCome(since, now); o.Wait {
			return o
		}
		k.waitedInVain(since, now)
	}
	got := k.draw(nil, int64(may.Sum()), from.Node, now)
	n := int(got.left())
	o.Given.Reserved = min(may.Reserved, n)
	o.Given.Contested = min(may.Contested, n-o.Given.Reserved)
	o.Tickets = got.ranges
	for c, n := range [...]int{reserved: o.Given.Reserved, contested: o.Given.Contested} {
		r.used[c].Add(int64(n))
		r.collected[c] += int64(n)
	}
	return o
}
