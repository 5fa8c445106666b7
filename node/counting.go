package node

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// What the loop does for one room: book, expire, look.

func newRoom(c *Core, s room.Settings) *Room {
	r := &Room{id: s.ID, core: c, chooser: room.NewChooser(c.key, s.ID), session: s.SessionDuration, configured: limitsOf(&s), abroad: noneAbroad}
	r.settings.Store(&s)
	r.view.Store(&view{ask: noLeaders, tickets: ownPart{r}, View: room.Build(s, room.Input{Nodes: []crdt.NodeID{c.self.Node}, Self: c.self.Node}, time.Time{})})
	return r
}

// open opens the leases. What an earlier start of this node had in use stays
// counted for a session, and its visitors find their place in it.
func (r *Room) open(now time.Time) {
	s, _ := r.settings.Load().At(now) // the view may be that of the room before
	cfg := r.rightsConfig(s.SessionDuration)
	cfg.Before = max(0, r.core.replica.PreviousActive(r.id))
	rights, d, err := ticket.OpenRights(cfg, r.core.storing.found[r.id], now)
	if err != nil {
		panic("node: rights that could be read before cannot be now: " + err.Error())
	}
	packed.Delete(&r.core.storing.found, r.id)
	r.stirred = briefOf(now)
	r.mu.Lock()
	r.rights = rights
	r.rights.SetRenewal(!s.DisableSessionRenewal)
	r.mu.Unlock()
	r.bookActive(d, now)
}

func (r *Room) rightsConfig(session time.Duration) ticket.RightsConfig {
	return ticket.RightsConfig{
		Self: r.core.self, Room: r.id, Session: session,
		Unlimited: r.settings.Load().Policy != room.Escrow,
		Code:      r.core.giftCode,
		Seqs:      func(n uint64) uint64 { return r.core.issued.Add(n) - n + 1 },
		Ended:     r.noteEnded(),
		LeaveOut:  r.core.leaveOut,
	}
}

func (r *Room) book(kind crdt.Kind, tick int64, p, n uint64, now time.Time) {
	if p|n != 0 {
		r.hasNews()
		r.core.replica.Add(crdt.Key{Room: r.id, Kind: kind, Tick: tick}, p, n, now)
	}
}

func (r *Room) bookActive(d ticket.Delta, now time.Time) {
	r.book(crdt.Active, 0, d.P, d.N, now)
}

// bookHeld has this node's row tell what it owns by now.
func (r *Room) bookHeld(now time.Time) {
	r.mu.Lock()
	held := r.rights.Held()
	r.mu.Unlock()
	if held == r.held {
		return
	}
	up, down := held.Sub(r.held).Max(ticket.Amount{}), r.held.Sub(held).Max(ticket.Amount{})
	r.held = held
	r.book(crdt.Held, 0, uint64(up.Places), uint64(down.Places), now)
	r.book(crdt.HeldRate, 0, uint64(up.Rate), uint64(down.Rate), now)
}

// bookCame has this node's row, and its history, tell how many have come who did not
// wait: all of a tick at once, for there may be thousands.
func (r *Room) bookCame(now time.Time) {
	r.book(crdt.Seen, crdt.TickOf(now), r.came, 0, now)
	r.core.cameAndEntered(r.id, r.came, now)
	r.came = 0
}

// bookSpent has this node's row tell how many of its rate rights were used. Where
// rights are the limit, who was let in counts with the node whose right that took, as
// places do: what a node has free can then be told from its row.
func (r *Room) bookSpent(spent uint64, now time.Time) {
	if r.limited() {
		r.book(crdt.Admitted, crdt.TickOf(now), spent-r.spent, 0, now)
	}
	r.spent = spent
}

// entered books a ticket that a request has taken.
func (r *Room) entered(e *entered, now time.Time) {
	r.openSession(e, now)
	if !r.limited() {
		r.book(crdt.Admitted, crdt.TickOf(now), 1, 0, now)
	}
	r.booked(e.gotten)
	if !e.waited {
		r.came++
		r.core.lately.add(&e.pass)
		return
	}
	r.core.letInHere(e, now)
	r.core.redemptions = append(r.core.redemptions, redemption{key: visitKey{r.id, e.pass.Visitor}, word: isInside, admission: admissionOf(e.pass)})
	// The owner counts one less only after all count one more.
	r.core.visits.hold(visit{
		visitor: e.pass.Visitor, room: r.id, arrival: e.pass.Arrival,
		at: e.pass.AcceptedAt, admitted: true, ticket: e.pass.Ticket, end: e.pass.LeaseEnd,
	}, now)
}

// openLease starts the lease of one of this node's own tickets. Where rights are the
// limit, nobody waits for the row to tell: the next expire has it tell of all at once.
func (r *Room) openLease(t ticket.Ticket, passEnd, at, now time.Time) time.Time {
	r.mu.Lock()
	end, d, err := r.rights.Enter(t, passEnd, at, now)
	if r.limited() {
		r.delta, d = r.delta.Add(d), ticket.Delta{}
	}
	r.mu.Unlock()
	if err != nil {
		panic("node: own ticket refused: " + err.Error())
	}
	r.bookActive(d, now)
	return end
}

// noteRenewal has an anchor hear of a visit.
func (r *Room) noteRenewal(t ticket.Ticket, passEnd, at time.Time) {
	if r.renewals == nil {
		r.ownAbroad().renewals = ticket.NewRenewals()
	}
	r.renewals.Note(t, passEnd, at)
}

// leaveStranded notes a session whose anchor is silent.
func (r *Room) leaveStranded(s ticket.Renewal) {
	if r.stranded == nil {
		r.ownAbroad().stranded = map[ticket.Ticket]ticket.Renewal{}
	}
	r.stranded[s.Ticket] = s
}

// checkedIn extends a session, here or at its anchor.
func (r *Room) checkedIn(in checkin, now time.Time) {
	k := in.key
	if next, ok := r.replaced[k.ticket]; ok {
		// The visitor has not taken up the new pass yet.
		if end, ok := r.extend(next.ticket, in.end, in.at, now); ok {
			r.replace(k.ticket, renewal{ticket: next.ticket, end: end})
		}
		return
	}
	if k.ticket.Anchor != r.core.self.Node {
		r.noteRenewal(k.ticket, in.end, in.at)
		return
	}
	if _, ok := r.extend(k.ticket, in.end, in.at, now); !ok {
		r.reanchor(k.ticket, in.end, in.at, now)
	}
}

// reanchor gives a session whose anchor cannot keep it a ticket of this node.
// The visitor is on the site already and was let pass, so no allowance is asked
// for; the old lease, wherever it is, is counted until it ends.
//
// What the origin has ended stays ended. Sessions that are not renewed need no
// anchor: their pass tells their end, and the old row counts them until then.
//
// Where rights are the limit it takes a free place. Without one the session lasts
// until the end that its pass has, unless a place comes free before.
func (r *Room) reanchor(old ticket.Ticket, passEnd, at, now time.Time) {
	if r.Settings().DisableSessionRenewal || r.over(old) {
		return
	}
	if !r.limited() {
		t := r.newTicket()
		r.replace(old, renewal{ticket: t, end: r.openLease(t, time.Time{}, at, now)})
	} else if next, ok := r.takeOver(at, now, true); ok {
		r.replace(old, next)
	} else {
		r.leaveStranded(ticket.Renewal{Ticket: old, PassEnd: passEnd, At: at})
	}
}

// replace has the requests of a session find its new ticket.
func (r *Room) replace(old ticket.Ticket, next renewal) {
	if before, ok := r.replaced[old]; ok && before.ticket != next.ticket {
		delete(r.replaces, before.ticket)
	}
	if r.replaced == nil {
		a := r.ownAbroad()
		a.replaced, a.replaces = map[ticket.Ticket]renewal{}, map[ticket.Ticket]ticket.Ticket{}
	}
	r.replaced[old] = next
	r.replaces[next.ticket] = old
	k := sessionKey{r.id, old}
	r.core.stripes.ofSession(k).renewed(k, next)
}

// forget drops what no pass can ask for any more.
func (r *Room) forget(now time.Time) {
	maps.DeleteFunc(r.replaced, func(_ ticket.Ticket, next renewal) bool {
		gone := now.After(next.end)
		if gone {
			delete(r.replaces, next.ticket)
		}
		return gone
	})
}

// expire ends what has run out.
func (r *Room) expire(now time.Time) {
	r.mu.Lock()
	d := r.delta.Add(r.rights.Expire(now))
	r.delta = ticket.Delta{}
	spent := r.rights.Spent()
	repaid := r.rights.TakeRepaid()
	over := r.overHere
	if r.overHere = nil; len(over) > 0 {
		r.overHere, r.core.over = r.core.over[:0], nil
	}
	r.mu.Unlock()
	r.core.endedHere(r.id, over, now)
	if len(over) > 0 && len(over) >= cap(over)/4 { // else it was for more than there are now
		r.core.over = over
	}
	for _, x := range repaid {
		r.replace(x.Old, renewal{ticket: x.New, end: x.End})
	}
	r.bookCame(now)
	r.bookSpent(spent, now)
	r.bookActive(d, now)
	gone := r.line.Expire(r.core.changes[:0], now)
	if len(r.owed) > 0 {
		gone = r.expiredOf(gone)
	}
	r.bookLine(gone, now)
	if r.keepsRights() {
		r.bookHeld(now)
		r.core.storing.touch(r)
	}
}

// visited counts a visitor who is owned here.
func (r *Room) visited(v visit, now time.Time) {
	if r.line == nil {
		r.line = room.NewLine(r.settings.Load(), r.core.places)
	}
	if v.admitted {
		_, known := r.line.Find(v.visitor)
		changes := r.line.Admit(r.core.changes[:0], v.visitor, v.at)
		if !known {
			changes = r.admittedFirst(changes, &v, now)
		}
		r.bookLine(changes, now)
		return
	}
	changes := r.line.Poll(r.core.changes[:0], v.visitor, v.arrival, v.at, v.refresh)
	r.bookLine(r.polledFirst(changes, &v, now), now)
}

func (r *Room) bookLine(changes []room.Change, now time.Time) {
	for _, ch := range changes {
		r.book(ch.Kind, ch.Tick, ch.P, ch.N, now)
	}
	r.core.changes = changes[:0]
}

// look builds the view from which requests decide.
func (r *Room) look(now time.Time) {
	if r.news || r.dated || now.Sub(r.viewed.time()) < r.every() {
		r.stirred = briefOf(now)
	}
	r.wake()
	r.viewed, r.news, r.dated, r.passed = briefOf(now), false, false, 0
	var upTo [classes]int64
	pending := int64(0)
	for c := range classes {
		upTo[c] = r.used[c].Load()
		pending += max(0, upTo[c]-r.collected[c])
	}
	s := r.settings.Load()
	k := r.wantCounters(s.Policy, now) // no event changes the policy
	v := r.core.builder.Build(s, r.input(pending, now), now)
	r.promise(v, k)
	r.until = briefOf(v.Until)
	r.idle = v.Active == 0 && v.Waiting == 0 && v.AdmittedMinute == 0 // most of a node's rooms, where there are thousands
	if !r.idle {
		r.stirred = r.viewed
	}
	// Under other policies a view depends on the time also where nobody is: whose turn it is.
	r.still = r.idle && s.Policy == room.Escrow && !v.Event.Prequeueing && now.Sub(r.stirred.time()) >= stillAfter
	r.adopt(v.Settings, now)
	r.hurry(v)
	r.expect(v, now)
	r.view.Store(r.allow(v, k, upTo, now))
}

// promise notes what other sites may take until they are heard from again.
func (r *Room) promise(v *room.View, k *counters) {
	if v.Settings.Policy == room.Escrow || len(v.Sites) < 2 {
		return
	}
	anywhere := ""
	if k != nil {
		anywhere = k.anywhereSite()
	}
	r.core.builder.Promise(&r.history, anywhere)
}

// expectBefore is how long before an event starts the disk is made ready for those who wait
// for that: several writes take less.
const expectBefore = 2 * time.Second

// expect has the disk ready for those who wait and may enter. One that takes longer for a
// write than a visitor is left without an answer would else let in next to nobody.
func (r *Room) expect(v *room.View, now time.Time) {
	if v.Settings.Policy != room.Escrow || !r.core.fit() || r.core.leave.on {
		return
	}
	n := v.Slots - v.SlotsNew
	if v.Event.Prequeueing && v.Until.Sub(now) <= expectBefore {
		n = v.Waiting // none of whom has a slot until then
	}
	if n > 0 {
		r.mu.Lock()
		open := r.rights != nil
		if open {
			r.rights.Expect(int64(n), now)
		}
		r.mu.Unlock()
		if open { // a node that starts has nothing to write yet
			r.core.storing.touch(r)
		}
	}
}

// allow adds to a view what may be taken from it, beyond what was used before it
// was built.
func (r *Room) allow(v *room.View, k *counters, used [classes]int64, now time.Time) *view {
	w := &view{View: v, upTo: used, tickets: ownPart{r}, from: k, ask: noLeaders}
	if k == nil || v.AllowNew >= room.Unlimited {
		w.upTo[reserved] = saturate(used[reserved], v.AllowWaiting)
		w.upTo[contested] = saturate(used[contested], v.AllowNew)
		return w
	}
	w.tickets, w.ask = k, k.loop.ask
	if k.loop.supply != nil {
		w.tickets = escrow{k}
		w.upTo[reserved] += int64(v.AllowWaiting)
		w.upTo[contested] += int64(v.AllowNew)
		return w
	}
	if !k.holdsBack(ticket.SiteCounter, now) {
		w.upTo[reserved] += int64(v.AllowWaiting)
		w.upTo[contested] += int64(v.AllowNew)
	}
	if !k.holdsBack(ticket.AnywhereCounter, now) {
		w.upTo[anywhere] += int64(v.AllowAnywhere)
	}
	return w
}

// A room that is nearly full is spoken of at once when it has moved by this part
// of its limit since it last was; others as the replica's intervals have it.
const (
	hurryFrom = 0.8
	hurryStep = 50
)

// hurry has what is new of a room go out at once if others had better know: this
// node's own counts to its site, and from a relay also its site's to other sites
// and theirs to its own.
func (r *Room) hurry(v *room.View) {
	if v.Utilization < hurryFrom {
		return
	}
	step := max(1, v.Settings.TotalActiveUsers/hurryStep)
	if v.Active-r.hurried >= step || r.hurried-v.Active >= step {
		r.hurried = v.Active
		r.core.replica.Urgent(r.id)
	}
}

func saturate(used int64, allow int) int64 {
	if allow >= room.Unlimited {
		return math.MaxInt64
	}
	return used + int64(allow)
}

// mineTicks is how many ticks back the rules look at what this node has admitted
// itself: a minute is more than they do.
const mineTicks = 6

// countsOf says which state of its row a node's own counts are of.
type countsOf struct {
	tick    int64
	changes uint64
}

// input gathers the counts. pending tickets have been taken but not booked yet:
// they count as if they were.
//
// The memory of its parts is used again by the next call, of whichever room.
func (r *Room) input(pending int64, now time.Time) *room.Input {
	c, in := r.core, &r.core.in
	in.Nodes, in.Self, in.Sites, in.Mine = c.nodes, c.self.Node, in.Sites[:0], crdt.Counts{Admitted: r.ours}
	in.Leaving = 0
	if of := (countsOf{crdt.TickOf(now), c.replica.OwnChanges(r.id)}); pending > 0 || r.mine != of {
		in.Mine.Reset()
		c.replica.OwnAdmitted(&in.Mine.Admitted, r.id, of.tick-mineTicks, of.tick+1)
		if r.mine = of; pending > 0 {
			r.mine = countsOf{} // what is pending comes on top
		}
	}
	add := func(counts *crdt.Counts, n int64) {
		counts.Active += n
		if n > 0 {
			if counts.Admitted == nil {
				counts.Admitted = map[int64]int64{}
			}
			counts.Admitted[crdt.TickOf(now)] += n
		}
	}
	add(&in.Mine, pending)
	r.ours = in.Mine.Admitted
	lent := r.lent(now)
	r.sites = c.replica.SitesInto(r.sites, r.id, now)
	for i := range r.sites {
		s := &r.sites[i]
		if s.Own {
			add(&s.Counts, pending)
			in.Leaving = r.siteLeaving(&s.Counts, now)
			left := false
			if k := r.counters.Load(); k != nil {
				left = k.leave(s.Counts.Waiting, now)
			}
			if left || pending > 0 {
				s.Reread()
			}
		}
		far := 0
		if n := lent[s.Site]; n > 0 {
			add(&s.Counts, int64(n))
			s.Reread()
			if !s.Own { // which of the own site's are in its rows is known
				far = n
			}
		}
		in.Sites = append(in.Sites, room.Site{
			Name: s.Site, Counts: s.Counts, Nodes: c.sizes[s.Site], Own: s.Own,
			Closed: s.Closed, Changed: s.Changed, Gone: slices.Contains(c.gone, s.Site), Lent: far,
		})
		delete(lent, s.Site)
	}
	if len(lent) > 0 { // to sites of which no summary has come yet
		for _, site := range slices.Sorted(maps.Keys(lent)) {
			var counts crdt.Counts
			add(&counts, int64(lent[site]))
			in.Sites = append(in.Sites, room.Site{Name: site, Counts: counts, Nodes: c.sizes[site], Lent: lent[site]})
		}
	}
	in.Frozen = r.history.Observe(r.settings.Load(), in.Sites, now)
	in.Away = false
	if k := r.counters.Load(); k != nil && k.loop.supply == nil {
		in.Away = c.sizes[k.anywhereSite()] == 0
	}
	return in
}
