package ticket

import (
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Put is one change of the durable state of a room: a value under a key. A nil
// Value deletes the key.
type Put struct {
	Key   string
	Value []byte
}

// RightsConfig says whose rights, of which room.
type RightsConfig struct {
	Self crdt.Incarnation
	Room crdt.RoomID

	// Session is how long a check-in lasts. Longer sessions keep rights aside for
	// longer after a restart.
	Session time.Duration

	// Unlimited is for rooms in which rights limit nothing: nothing is written
	// about how much is in use, and what turns up beyond a block is let in.
	Unlimited bool

	// LeaveOut names rules that are left out, for simulations that show what a
	// rule is for.
	LeaveOut Rules

	// Before is how many leases an earlier start had, as far as others remember. Rooms without
	// limits have no bound that says it; where there is one, it says less if the store is from a
	// backup, or if rights limited nothing when the earlier start ended.
	Before int64

	// Seqs takes n successive ticket numbers of this start and returns the first.
	// The caller draws its own tickets from the same numbers. Nil: numbers are
	// taken by nobody else, and begin with 1.
	Seqs func(n uint64) (first uint64)

	// Code returns the code of what this node has given another, all in all. Nil: gifts have none, and nobody
	// who returns a receipt for one can be believed.
	Code func(room crdt.RoomID, to crdt.NodeID, gave Amount) Code

	// Ended is told of each session that ends here, in the middle of a call of Rights: it
	// must not call back. Nil: nobody wants to know, and when sessions began is not kept.
	Ended func(Ended)
}

// Rights is what one node owns of one room: its ledger of rights, and the leases
// and loans that use them. Create it with OpenRights. It is not safe for
// concurrent use.
//
// What is written is decided by Writes and confirmed by Confirmed; nothing that
// another node or a visitor gets to see rests on a write before that.
type Rights struct {
	cfg    RightsConfig
	start  int64 // Unix ns; elapsed time counts from here
	clock  int64 // the newest elapsed time
	leases *Leases
	owed   Delta // to be returned by the next call that returns one

	book  book
	held  Amount // of book
	limit limits
	use   usage
	span  span
	*rare
}

// rare is what most rooms never have any of. The zero value has none.
type rare struct {
	loans loans
	out   outbox
	debts debts
	left  bool // the heir has taken over

	// estate is the nodes whose rights are recovered, until that is written.
	estate    []crdt.NodeID
	estateSum Amount

	// keepers says who answers for nodes that have left, as far as that was told.
	keepers map[crdt.NodeID]crdt.NodeID

	// taking is what leavers pass on, by leaver, until it is written.
	taking map[crdt.NodeID]takeover
}

// noRare is shared by all Rights that have none of it, of which there may be thousands. It
// is for reading.
var noRare = &rare{}

// ownRare returns what is to be written to, which is made with its first use.
func (r *Rights) ownRare() *rare {
	if r.rare == noRare {
		r.rare = new(rare)
	}
	return r.rare
}

// OpenRights returns the rights of a node that starts at now with what is stored.
// The delta is what counts as active from the start: as many places as were in
// use at most when it last ran.
func OpenRights(cfg RightsConfig, stored []Put, now time.Time) (*Rights, Delta, error) {
	b, err := openBook(stored)
	if err != nil {
		return nil, Delta{}, err
	}
	if cfg.Code == nil {
		cfg.Code = func(crdt.RoomID, crdt.NodeID, Amount) Code { return 0 }
	}
	r := &Rights{cfg: cfg, start: now.UnixNano(), book: b, rare: noRare}
	if r.cfg.Seqs == nil {
		next := uint64(1)
		r.cfg.Seqs = func(n uint64) uint64 { next += n; return next - n }
	}
	r.leases = newLeases(&r.cfg.Self, cfg.Session)
	r.leases.rules, r.leases.strict = cfg.LeaveOut, !cfg.Unlimited
	r.leases.stays.told = cfg.Ended
	r.openSpan(now)
	r.recount()
	r.boundRate()
	r.restart(now)
	if len(b.disk.accounts) > 0 || b.disk.leaving != nil {
		r.ownRare().out.open(&b.disk)
	}
	return r, r.leases.take(), nil
}

// boundRate has a store that says nothing of rate rights in use take all for it.
func (r *Rights) boundRate() {
	for _, l := range []*ledger{&r.book.disk, &r.book.next} {
		if l.bound.Rate == maxRights {
			l.bound.Rate = max(0, r.held.Rate)
		}
	}
	r.book.settle()
}

// restart counts what an earlier start may have in use, and has its rate rights
// cool: which of those were used, and when, nobody knows any more.
func (r *Rights) restart(now time.Time) {
	size, cools := r.book.disk.bound.Places, min(r.held.Rate, r.book.disk.bound.Rate)
	end := r.blockEnd(now)
	if r.cfg.Unlimited && size == 0 { // nothing was lent
		end = now.Add(r.longest() + blockGuards*Guard)
	}
	if r.cfg.Unlimited || r.cfg.Before > size { // the bound does not tell what was in use, of neither kind
		size, cools = max(size, r.cfg.Before), r.held.Rate
	}
	first := size == 0 && r.cfg.Self.Boot == 1 && len(r.AnswersFor()) == 0 // there is no earlier ticket
	if r.cfg.LeaveOut&RestartBlock == 0 && !first {
		r.leases.openBlock(int(size), r.leases.earlier(r.AnswersFor()...), end.UnixMilli())
	}
	if r.cfg.LeaveOut&RestartCools == 0 {
		r.use.cooling.add(cools, ms(NewFor))
	}
	if len(r.book.disk.recovered) > 0 {
		r.limit.mintAfter = r.unknownEnd(now).UnixNano()
	}
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// elapsed returns the time since the start in ms, by a clock that nobody sets.
func (r *Rights) elapsed(now time.Time) int64 {
	r.clock = max(r.clock, (now.UnixNano()-r.start)/int64(time.Millisecond))
	return r.clock
}

// recount brings held up to date after a change of the book.
func (r *Rights) recount() {
	r.held = r.book.held()
	if r.cfg.LeaveOut&ReceiveBeforeUse != 0 {
		r.held = r.book.minted().Add(r.book.next.received()).Sub(r.book.next.gave())
	}
}

// mark says that the value under a key has changed.
func (r *Rights) mark(key string) {
	r.book.mark(key)
	r.recount()
}

// Writes returns the next batch to be written at once, or nil: there is nothing
// to write, or a batch is under way, or the store has failed.
func (r *Rights) Writes() []Put {
	puts := r.book.writes()
	if puts != nil {
		r.recount()
	}
	return puts
}

// Confirmed says that the batch under way is durable.
func (r *Rights) Confirmed(now time.Time) {
	for _, p := range r.book.confirmed() {
		r.settled(p.Key, now)
	}
	r.follow()
	r.recount()
}

// settled does what waited for the value under a key to be durable.
func (r *Rights) settled(key string, now time.Time) {
	switch key {
	case keyMinted, keyBound, keySpan, keyLeaving, keyRetired, keySums:
		return
	}
	kind, ids, _ := splitKey(key)
	switch kind {
	case keyGave:
		if a, open := r.book.disk.accounts[ids[0]]; open {
			r.ownRare().out.gave(ids[0], a.gave)
		}
	case keyTaken:
		if _, taken := r.book.disk.taken[ids[0]]; taken {
			r.tookOver(ids[0], now)
		}
	case keyRecovered:
		if _, recovered := r.book.disk.recovered[ids[0]]; recovered {
			r.lock(ids[0], now)
		}
	}
}

// Failed says that nobody knows whether the batch under way is durable. From then
// on nothing is issued, lent or given until StoreBack. What was to be written
// stays to be written.
func (r *Rights) Failed(now time.Time) {
	r.book.lost()
	r.recount()
}

// StoreBack says that a new store holds what Stored returned.
func (r *Rights) StoreBack(now time.Time) { r.book.failed = false }

// Stored returns all that is confirmed: the content of a new store.
func (r *Rights) Stored() []Put { return r.book.stored() }

// Held returns the rights that this node owns for sure.
func (r *Rights) Held() Amount { return r.held }

// Minted returns what this node has minted at most; negative if it burnt more.
func (r *Rights) Minted() Amount {
	return r.book.disk.minted.Max(r.book.next.minted)
}

// Bound returns the confirmed bound of what is in use: places, and rate rights that
// are not ready. After a restart so much counts as in use.
func (r *Rights) Bound() Amount { return r.book.bound() }

// Covered returns how many tickets the confirmed bound allows besides what is in
// use, as of the newest call that was told the time. Negative: it is too low.
func (r *Rights) Covered() int64 { return r.covered(Amount{1, 1}) }

// Active returns how many places are taken by leases and blocks: P − N over all
// deltas, once Expire was called.
func (r *Rights) Active() int64 { return int64(r.leases.InUse()) }

// InUse returns how many places are taken: leases, blocks, loans, open tokens.
func (r *Rights) InUse() int64 {
	return int64(r.leases.InUse()) + r.use.tokens + r.loans.places
}

// rateInUse returns how many rate rights are not ready.
func (r *Rights) rateInUse(now time.Time) int64 {
	r.use.cooling.advance(r.elapsed(now))
	return r.inUse().Rate
}

// inUse returns all that the bound has to cover, as of the newest call that was told
// the time: rate rights may be ready by now that it counts as cooling.
func (r *Rights) inUse() Amount {
	return Amount{Places: r.InUse(), Rate: r.use.cooling.total + r.use.tokens + r.loans.rate}
}

// take returns what has changed since a call last returned a delta.
func (r *Rights) take() Delta {
	d := r.owed.Add(r.leases.take())
	r.owed = Delta{}
	return d
}

// Quiet reports whether nothing is in use, cools, is owed, or is on its way to the disk or
// to others: then time alone changes nothing, but for a bound that may be lowered.
func (r *Rights) Quiet(now time.Time) bool {
	return r.InUse() == 0 && r.rateInUse(now) == 0 && r.owed == Delta{} && r.leases.delta == Delta{} &&
		r.book.clean() && !r.stopped() && now.UnixNano() >= r.limit.mintAfter &&
		len(r.out.gifts) == 0 && len(r.out.acks) == 0 && len(r.loans.open) == 0 &&
		len(r.debts.ends) == 0 && len(r.debts.line) == 0 && len(r.debts.repaid) == 0 &&
		len(r.leases.claims) == 0 && len(r.estate) == 0 && len(r.taking) == 0
}

// Retire has the room refuse everything, for good.
func (r *Rights) Retire() {
	if !r.book.next.retired {
		r.book.next.retired = true
		r.mark(keyRetired)
	}
}

// Retired reports whether the room was retired.
func (r *Rights) Retired() bool { return r.book.next.retired }

// stopped reports whether nothing may be issued, lent or given.
func (r *Rights) stopped() bool {
	return r.book.failed || r.book.next.retired || r.book.next.leaving != nil
}
