package ticket

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// FarNews is how long a counter reckons with tickets that a node of another
	// site has booked: longer than it takes until that site's summary shows them,
	// which it does within 1.5 s where nothing is lost.
	FarNews = 3 * time.Second

	// FarKept is how long a counter reckons with those at most while the site is in reach and
	// nothing new comes from there: longer than it takes to notice that it is not.
	FarKept = 7 * time.Second

	// GrantKept is how long a counter reckons with the tickets of a node that it
	// does not hear from any more, unless that node's site is out of reach.
	GrantKept = 10 * time.Second

	// Parked is how long a counter may leave a call unanswered at most, because
	// what it asks for is on its way. The grant still has to arrive within
	// CallTimeout.
	Parked = 400 * time.Millisecond

	// maxMarks bounds the reports of one node that wait to be seen in its row.
	maxMarks = 16
)

// Accounts is what a counter of one room has granted to each node, as long as
// the counts do not show it yet. A counter reckons with those tickets as if the
// counts did, so that it never grants a place twice. The zero value is ready. It
// is not safe for concurrent use.
type Accounts struct {
	*accounts // nil: nobody has called
}

type accounts struct {
	open   map[account]*balance
	parked []account // that wait for an answer, in the order of their calls
	void   []Range   // granted, and given up by whoever asked
}

// Idle reports whether all that was granted shows in the counts, and nobody waits.
func (a *Accounts) Idle() bool {
	return a.accounts == nil || len(a.open) == 0 && len(a.parked) == 0 && len(a.void) == 0
}

type account struct {
	node  crdt.Incarnation
	scope Scope
}

// balance is one node's account. Its tickets that the counts do not show are
// got − shown, of earlier calls, and what the newest call was granted, of which
// nobody knows yet whether it arrived.
type balance struct {
	site  string
	last  Grant
	got   uint64
	shown uint64 // invariant: shown <= got
	marks []mark // reports that the counts do not show yet, oldest first
	heard time.Time
	asked *Call // the newest call, if it is parked
}

// Offer is what there is for a call.
type Offer struct {
	Given   Places  // never more than is wanted
	Tickets []Range // as Grant has it
	Retry   time.Duration

	// Wait has the call wait for what is on its way: nothing is given yet, and the
	// question comes again. A call that has waited for Parked gets what there is.
	Wait bool
}

// mark says that so many tickets are in the node's row as of seq.
type mark struct {
	booked, seq uint64
	at          time.Time
}

// Answer takes a call of a node and returns the grant; give says how much of
// what is wanted there is, and counts it as used. A call that comes again gets
// the answer that it got. One that is older than the newest gets none, as its
// caller has given it up, and neither does one that give has wait: ok is false.
func (a *Accounts) Answer(from crdt.Incarnation, site string, c Call, give func(Places) Offer, now time.Time) (g Grant, ok bool) {
	if a.accounts == nil {
		a.accounts = &accounts{open: make(map[account]*balance)}
	}
	k := account{from, c.Scope}
	b := a.open[k]
	switch {
	case b == nil:
		// What this node booked before is older than this account: either the
		// counts show it, or this counter is new and holds back until they do.
		b = &balance{site: site, shown: c.Booked}
		a.open[k] = b
	case c.Number == b.last.Number:
		return b.last, true
	case c.Number < b.last.Number, b.asked != nil && c.Number <= b.asked.Number:
		return Grant{}, false
	}
	a.unpark(k, b)
	if b.last.Number >= c.Void {
		a.void = append(a.void, b.last.Tickets...)
	}
	b.heard = now
	b.got = max(b.got, c.Got)
	b.report(mark{min(c.Booked, b.got), c.Seq, now})
	b.last.Given, b.last.Tickets = Places{}, nil // taken up, or given up, by now
	if o := give(c.Want); !o.Wait {
		return b.grant(c, o), true
	}
	b.asked = &c
	a.parked = append(a.parked, k)
	return Grant{}, false
}

// grant answers the newest call.
func (b *balance) grant(c Call, o Offer) Grant {
	b.asked = nil
	b.last = Grant{Room: c.Room, Scope: c.Scope, Number: c.Number, Given: o.Given, Tickets: o.Tickets, Retry: o.Retry}
	return b.last
}

// unpark forgets the parked call of an account.
func (a *Accounts) unpark(k account, b *balance) {
	if b.asked != nil {
		b.asked = nil
		a.parked = slices.DeleteFunc(a.parked, func(x account) bool { return x == k })
	}
}

// Answered is a grant and who it is for.
type Answered struct {
	To    crdt.NodeID
	Grant Grant
}

// Serve asks again for the calls that wait, in the order in which they came, and
// returns the grants of those that wait no longer.
func (a *Accounts) Serve(give func(from crdt.Incarnation, c Call) Offer, now time.Time) []Answered {
	if a.accounts == nil {
		return nil
	}
	var out []Answered
	a.parked = slices.DeleteFunc(a.parked, func(k account) bool {
		b := a.open[k]
		waited := now.Sub(b.heard)
		if waited >= CallTimeout {
			b.asked = nil // the caller has given up; its next call says so
			return true
		}
		o := give(k.node, *b.asked)
		if o.Wait && waited < Parked {
			return false
		}
		out = append(out, Answered{k.node.Node, b.grant(*b.asked, o)})
		return true
	})
	return out
}

// Waiting returns how many tickets the parked calls want.
func (a *Accounts) Waiting() (n int64) {
	if a.accounts == nil {
		return 0
	}
	for _, k := range a.parked {
		n += int64(a.open[k].asked.Want.Sum())
	}
	return n
}

// TakeVoid returns, once, the tickets of grants that were given up: nobody has
// them, and nobody will.
func (a *Accounts) TakeVoid() []Range {
	if a.accounts == nil {
		return nil
	}
	void := a.void
	a.void = nil
	return void
}

// Close closes the accounts of nodes that have been silent for GrantKept.
func (a *Accounts) Close(now time.Time) {
	if a.accounts == nil {
		return
	}
	for k, b := range a.open {
		if b.silent(now) {
			a.end(k, b)
		}
	}
}

func (a *Accounts) end(k account, b *balance) {
	a.unpark(k, b)
	delete(a.open, k)
}

// silent reports whether nothing has been heard from the node for GrantKept.
func (b *balance) silent(now time.Time) bool {
	away := now.Sub(b.heard)
	return away >= GrantKept || away <= -GrantKept
}

func (b *balance) report(m mark) {
	n := len(b.marks)
	switch {
	case m.booked <= b.shown, n > 0 && m.booked <= b.marks[n-1].booked:
	case n == maxMarks:
		b.marks[n-1] = m // seen later than it could be, never sooner
	default:
		b.marks = append(b.marks, m)
	}
}

// pending returns how many tickets the counts do not show.
func (b *balance) pending() int { return int(b.got-b.shown) + b.last.Given.Sum() }

// Far is what a counter knows of the counts of other sites. They come as summaries.
type Far struct {
	Away  func(site string) bool               // it is out of reach, or seems to be
	Shows func(site string, at time.Time) bool // its counts have all that it had booked by then
}

// Pending returns by site how many tickets have been granted that the counts do
// not show yet. known says up to where the row of a node of the own site is held
// here. Accounts that are of no use any more are closed.
func (a *Accounts) Pending(own string, known func(crdt.Incarnation) uint64, far Far, now time.Time) map[string]int {
	if a.accounts == nil {
		return nil
	}
	var by map[string]int
	for k, b := range a.open {
		n := 0
		switch {
		case b.site != own:
			n = b.pendingFar(far, now)
			if b.silent(now) && far.Shows(b.site, b.heard.Add(FarNews)) {
				n = 0
				a.end(k, b)
			}
		case b.silent(now):
			a.end(k, b)
		default:
			b.settle(func(m mark) bool { return known(k.node) >= m.seq })
			n = b.pending()
		}
		if n > 0 {
			if by == nil {
				by = make(map[string]int)
			}
			by[b.site] += n
		}
	}
	return by
}

// pendingFar is pending for a node of another site. While that is in reach its counts show
// soon what it has booked. They may never have come to show it if it is not.
func (b *balance) pendingFar(far Far, now time.Time) int {
	b.settle(func(m mark) bool { return far.Shows(b.site, m.at) })
	if far.Away(b.site) {
		return b.pending()
	}
	if b.silent(now) {
		return 0
	}
	n := b.pending()
	for i := len(b.marks) - 1; i >= 0; i-- {
		if now.Sub(b.marks[i].at) >= FarKept {
			return n - int(b.marks[i].booked-b.shown)
		}
	}
	return n
}

// settle moves on to the newest report that the counts show.
func (b *balance) settle(shows func(mark) bool) {
	n := 0
	for n < len(b.marks) && shows(b.marks[n]) {
		b.shown = b.marks[n].booked
		n++
	}
	b.marks = b.marks[:copy(b.marks, b.marks[n:])]
}

// Forget closes all accounts: this node is the counter no more.
func (a *Accounts) Forget() {
	if a.accounts == nil {
		return
	}
	clear(a.open)
	a.parked = nil
}
