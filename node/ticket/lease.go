package ticket

import (
	"errors"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// Guard is by how much the clocks of two nodes may differ. A lease lasts this
// much longer at its anchor than in any pass.
const Guard = 400 * time.Millisecond

const guardMS = int64(Guard / time.Millisecond)

// blockGuards is how many guards the block of a restarted anchor lasts beyond a
// session: one each for the clock that wrote the pass, for the one before the
// restart and for the one after it.
const blockGuards = 3

// Reasons for which an anchor does not extend a lease. They are final: the same
// ticket will not be extended later either.
var (
	ErrNotMine = errors.New("ticket of another anchor")
	ErrEnded   = errors.New("lease has ended")
	ErrFuture  = errors.New("ticket of a start that has not happened")
)

// Delta is a change of the count of active visitors, to be added to the cell of
// the anchor's row. The zero value changes nothing.
type Delta struct {
	P, N uint64
}

// Add returns both changes together.
func (d Delta) Add(o Delta) Delta { return Delta{d.P + o.P, d.N + o.N} }

// Leases is the lease table of one room at one anchor. Create it with newLeases.
// It is not safe for concurrent use.
//
// Invariant: InUse is P − N over every Delta that its methods returned.
type Leases struct {
	self    *crdt.Incarnation            // shared
	session int64                        // ms
	longest int64                        // ms; no lease is kept for a longer session than that
	fixed   bool                         // check-ins extend nothing
	strict  bool                         // a block that is full lets nobody in
	rules   Rules                        // left out
	leases  *packed.Table[seqKey, lease] // nil: there never was one
	newest  uint64                       // the highest number that ever had a lease
	expiry  timers[uint64]
	blocks  []*block // open ones, oldest first
	claims  map[Ticket]claim
	claimed timers[Ticket]
	loose   int // claims that live and whose block has closed
	stays   stays
	delta   Delta
}

// leaseEnd is when a lease ends, in Unix ms, and whether that is provisional:
// until its visitor is known to have come.
type leaseEnd int64

func (e leaseEnd) ms() int64         { return int64(e >> 1) }
func (e leaseEnd) provisional() bool { return e&1 != 0 }

// whileProvisional marks, in its number, the timer of a ticket whose lease is
// provisional. Nobody draws numbers as high.
const whileProvisional = 1 << 63

func firmEnd(ms int64) leaseEnd        { return leaseEnd(ms << 1) }
func provisionalEnd(ms int64) leaseEnd { return leaseEnd(ms<<1 | 1) }

// seqKey is the number of a ticket of this start. Numbers are drawn one after the other.
type seqKey uint64

// Hash is that of packed.Key: it spreads numbers, also those that are far apart alike, but
// has as many as a line of memory holds buckets lie side by side. They are drawn, and end,
// one after the other, and memory is what that waits for. If all that stay are such that end
// alike, chains are as long as that, and no longer.
func (k seqKey) Hash() uint64 {
	h := uint64(k/sideBySide) * 0x9e3779b97f4a7c15
	return (h^h>>32)*sideBySide | uint64(k%sideBySide)
}

// sideBySide is how many numbers in a row have neighbouring buckets, of four bytes each.
const sideBySide = 16

// lease is one lease of a ticket of this start. It is in halves, so that a table needs no
// room to align it.
type lease struct {
	high, low uint32 // of leaseEnd
	began     uint32 // see stays
}

func (l *lease) end() leaseEnd     { return leaseEnd(uint64(l.high)<<32 | uint64(l.low)) }
func (l *lease) setEnd(e leaseEnd) { l.high, l.low = uint32(uint64(e)>>32), uint32(e) }

// newLeases returns a table without leases. It keeps self, which nobody changes.
func newLeases(self *crdt.Incarnation, session time.Duration) *Leases {
	ms := session.Milliseconds()
	return &Leases{self: self, session: ms, longest: ms}
}

// SetSession changes how long a check-in lasts. Leases keep the end they have.
func (l *Leases) SetSession(session time.Duration) {
	l.session = session.Milliseconds()
	l.longest = max(l.longest, l.session)
}

// SetRenewal says whether check-ins extend leases; at first they do. Leases keep
// the end they have.
func (l *Leases) SetRenewal(on bool) { l.fixed = !on }

// InUse returns how many places are taken here, the block of a restart included.
func (l *Leases) InUse() int {
	n := l.loose
	if l.leases != nil {
		n += l.leases.Len()
	}
	for _, b := range l.blocks {
		n += b.size + b.extra
	}
	return n
}

// take returns what the call under way has changed.
func (l *Leases) take() Delta {
	d := l.delta
	l.delta = Delta{}
	return d
}

// Open starts the lease of a ticket that this anchor has just issued to a
// visitor who checked in at at, and returns its end. Opening it again is a
// check-in. A ticket of another anchor or start is ErrNotMine.
func (l *Leases) Open(t Ticket, at, now time.Time) (end time.Time, d Delta, err error) {
	return l.open(t, l.until(at, now))
}

// open is Open with a lease that ends at ms, in Unix ms.
func (l *Leases) open(t Ticket, ms int64) (end time.Time, d Delta, err error) {
	if t.Anchor != l.self.Node || t.Boot != l.self.Boot {
		return time.Time{}, Delta{}, ErrNotMine
	}
	ms = l.firm(t.Seq, ms).end().ms()
	return time.UnixMilli(ms), l.take(), nil
}

// enter is open for a visitor who was let in at at.
func (l *Leases) enter(t Ticket, ms int64, at time.Time) (end time.Time, d Delta, err error) {
	if t.Anchor != l.self.Node || t.Boot != l.self.Boot {
		return time.Time{}, Delta{}, ErrNotMine
	}
	own := l.firm(t.Seq, ms)
	l.stays.begin(own, at)
	return time.UnixMilli(own.end().ms()), l.take(), nil
}

// firm returns the lease of a ticket of this start whose visitor has come, and which ends
// at end or later. It is good until the next one starts or ends.
func (l *Leases) firm(seq uint64, end int64) *lease {
	own := l.find(seq)
	if own == nil {
		return l.start(seq, end)
	}
	own.setEnd(firmEnd(max(end, own.end().ms())))
	return own
}

// find returns the lease of a ticket of this start; nil: it has none. It is good until the next
// one is added or removed. Of a number higher than any before nothing has to be looked up.
func (l *Leases) find(seq uint64) *lease {
	if seq > l.newest || l.leases == nil {
		return nil
	}
	return l.leases.Find(seqKey(seq))
}

// add returns a new lease of a ticket of this start that has none.
func (l *Leases) add(seq uint64) *lease {
	if l.leases == nil {
		l.leases = new(packed.Table[seqKey, lease])
	}
	l.newest = max(l.newest, seq)
	return l.leases.AddNew(seqKey(seq))
}

// start starts the lease of a ticket of this start that has none, and whose visitor
// has come.
func (l *Leases) start(seq uint64, end int64) *lease {
	own := l.add(seq)
	own.setEnd(firmEnd(end))
	l.expiry.push(end, seq)
	l.delta.P++
	return own
}

// provide starts the lease of a ticket of this start that ends at end unless its
// visitor turns out to have come.
func (l *Leases) provide(seq uint64, end int64) {
	if l.find(seq) != nil {
		return
	}
	l.add(seq).setEnd(provisionalEnd(end))
	l.expiry.push(end, seq|whileProvisional)
	l.delta.P++
}

// until returns the end of a lease for a check-in at at, which is never later
// than now: nobody checks in ahead of time, only clocks differ.
func (l *Leases) until(at, now time.Time) int64 {
	return min(at.UnixMilli(), now.UnixMilli()) + l.session
}

// CheckIn extends the lease of a visitor who was let pass at at with a pass that
// ends at passEnd, and returns its new end. The lease never gets shorter, so
// check-ins may repeat and overtake one another. It fails with ErrNotMine,
// ErrEnded or ErrFuture, which are final.
func (l *Leases) CheckIn(t Ticket, passEnd, at, now time.Time) (end time.Time, d Delta, err error) {
	end, err = l.checkIn(t, passEnd, at, now)
	return end, l.take(), err
}

func (l *Leases) checkIn(t Ticket, passEnd, at, now time.Time) (time.Time, error) {
	switch {
	case t.Anchor == l.self.Node && t.Boot > l.self.Boot:
		return time.Time{}, ErrFuture
	case t.Anchor == l.self.Node && t.Boot == l.self.Boot:
		if own := l.find(t.Seq); own != nil {
			return l.renew(t.Seq, own, passEnd, at, now)
		}
	}
	return l.claim(t, passEnd, at, now)
}

// renew extends a lease of this start.
func (l *Leases) renew(seq uint64, own *lease, passEnd, at, now time.Time) (time.Time, error) {
	end := own.end()
	if now.UnixMilli() > end.ms()+l.guard() {
		return time.Time{}, ErrEnded
	}
	ms := end.ms()
	if end.provisional() {
		// What its visitor was promised is in the pass, whoever gave it.
		ms = l.promised(passEnd, now)
		l.expiry.push(ms, seq)
		l.stays.begin(own, at)
	}
	ms = l.extended(ms, at, now)
	own.setEnd(firmEnd(ms))
	return time.UnixMilli(ms), nil
}

// LeaseEnd returns when a lease of this start ends as things are; false if there is none.
func (l *Leases) LeaseEnd(t Ticket) (end time.Time, lasts bool) {
	if t.Anchor != l.self.Node || t.Boot != l.self.Boot {
		return time.Time{}, false
	}
	own := l.find(t.Seq)
	if own == nil {
		return time.Time{}, false
	}
	return time.UnixMilli(own.end().ms()), true
}

// promised returns the end of a pass. However far ahead the clock was that wrote
// it, it promised no more than a session from a moment that is past.
func (l *Leases) promised(passEnd, now time.Time) int64 {
	return min(passEnd.UnixMilli(), now.UnixMilli()+l.longest+guardMS)
}

// guard is how much longer a lease lasts here than in any pass.
func (l *Leases) guard() int64 {
	if l.rules&LeaseGuard != 0 {
		return 0
	}
	return guardMS
}

// extended returns the end of a lease after a check-in at at.
func (l *Leases) extended(end int64, at, now time.Time) int64 {
	if l.fixed {
		return end
	}
	return max(end, l.until(at, now))
}

// End ends a lease before its time, for a visitor who left. A lease that is not
// known, or has ended, changes nothing.
func (l *Leases) End(t Ticket, now time.Time) Delta {
	if own, known := l.remove(t); known {
		l.delta.N++
		if !own.end().provisional() {
			l.stays.end(own.began, now.UnixMilli(), now.UnixMilli(), true)
		}
	} else if l.endClaim(t) {
		l.stays.endUnknown(now.UnixMilli(), true)
	}
	return l.take()
}

// remove ends the lease of a ticket of this start, and returns what it was.
func (l *Leases) remove(t Ticket) (was lease, known bool) {
	if t.Anchor != l.self.Node || t.Boot != l.self.Boot {
		return lease{}, false
	}
	own := l.find(t.Seq)
	if own == nil {
		return lease{}, false
	}
	was = *own
	l.leases.Delete(seqKey(t.Seq))
	return was, true
}

// Expire ends every lease that the clock has passed by more than Guard. It
// costs time only for leases whose end was due when last looked at.
func (l *Leases) Expire(now time.Time) Delta {
	due := now.UnixMilli() - l.guard() - 1
	for {
		t, ok := l.expiry.pop(due)
		if !ok {
			break
		}
		own := l.find(t.key &^ whileProvisional)
		switch {
		case own == nil: // ended before its time
		case t.key&whileProvisional != 0 && !own.end().provisional(): // has another timer
		case own.end().ms() > due:
			l.expiry.push(own.end().ms(), t.key)
		default:
			was := *own
			l.leases.Delete(seqKey(t.key &^ whileProvisional))
			l.delta.N++
			if end := was.end(); !end.provisional() {
				l.stays.end(was.began, l.heard(end.ms()), now.UnixMilli(), false)
			}
		}
	}
	l.expireClaims(due)
	l.closeBlocks(now.UnixMilli())
	return l.take()
}
