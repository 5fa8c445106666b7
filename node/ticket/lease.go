package ticket

import (
	"errors"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
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

// Leases is the lease table of one room at one anchor. Create it with NewLeases.
// It is not safe for concurrent use.
//
// Invariant: InUse is P − N over every Delta that its methods returned.
type Leases struct {
	self    crdt.Incarnation
	session int64            // ms
	fixed   bool             // check-ins extend nothing
	ends    map[uint64]int64 // ticket number of this start → end, Unix ms
	expiry  timers[uint64]
	block   block
	delta   Delta // of the call under way
}

// block stands for the leases that this anchor had given before it restarted
// and knows nothing of. All of it is in use until it closes; from then on only
// the claims that still live are.
type block struct {
	size   int
	end    int64 // Unix ms
	closed bool
	// claims are the tickets that showed up: a ticket is counted once, also when
	// its lease ends before the block does. An ended one is claimEnded.
	claims map[earlier]int64
	live   int // claims that have not ended
	extra  int // claims beyond size: more leases than the anchor reckoned with
	expiry timers[earlier]
}

// earlier names a ticket of an earlier start.
type earlier struct {
	boot, seq uint64
	block     uint32
}

const claimEnded = math.MinInt64

// NewLeases returns the table of an anchor that starts at now. restartBlock is
// how many leases it may have had before, as far as its last confirmed state
// tells; 0 for a node that never ran. They count as in use from the start.
func NewLeases(self crdt.Incarnation, session time.Duration, restartBlock int, now time.Time) (*Leases, Delta) {
	size := max(0, restartBlock)
	l := &Leases{
		self:    self,
		session: session.Milliseconds(),
		ends:    make(map[uint64]int64),
		// The block opens at size 0 too: a visitor whose lease was missed in the
		// reckoning is let in and counted on top rather than refused.
		block: block{
			size:   size,
			end:    now.Add(session + blockGuards*Guard).UnixMilli(),
			claims: make(map[earlier]int64),
		},
	}
	return l, Delta{P: uint64(size)}
}

// SetSession changes how long a check-in lasts. Leases keep the end they have.
func (l *Leases) SetSession(session time.Duration) { l.session = session.Milliseconds() }

// SetRenewal says whether check-ins extend leases; at first they do. Leases keep
// the end they have.
func (l *Leases) SetRenewal(on bool) { l.fixed = !on }

// InUse returns how many places are taken here, the block of a restart included.
func (l *Leases) InUse() int { return len(l.ends) + l.block.inUse() }

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
	if t.Anchor != l.self.Node || t.Boot != l.self.Boot {
		return time.Time{}, Delta{}, ErrNotMine
	}
	old, known := l.ends[t.Seq]
	ms := l.until(at, now)
	if known {
		ms = max(ms, old)
	} else {
		l.expiry.push(ms, t.Seq)
		l.delta.P++
	}
	l.ends[t.Seq] = ms
	return time.UnixMilli(ms), l.take(), nil
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
	case t.Anchor != l.self.Node:
		return time.Time{}, ErrNotMine
	case t.Boot > l.self.Boot:
		return time.Time{}, ErrFuture
	case t.Boot < l.self.Boot:
		return l.claim(t, passEnd, at, now)
	}
	ms, known := l.ends[t.Seq]
	if !known || now.UnixMilli() > ms+guardMS {
		return time.Time{}, ErrEnded
	}
	ms = l.extended(ms, at, now)
	l.ends[t.Seq] = ms
	return time.UnixMilli(ms), nil
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
func (l *Leases) End(t Ticket) Delta {
	if t.Anchor != l.self.Node {
		return Delta{}
	}
	if t.Boot != l.self.Boot {
		l.endClaim(earlier{t.Boot, t.Seq, t.Block})
		return l.take()
	}
	if _, known := l.ends[t.Seq]; known {
		delete(l.ends, t.Seq)
		l.delta.N++
	}
	return l.take()
}

// Expire ends every lease that the clock has passed by more than Guard. It
// costs time only for leases whose end was due when last looked at.
func (l *Leases) Expire(now time.Time) Delta {
	due := now.UnixMilli() - guardMS - 1
	for {
		t, ok := l.expiry.pop(due)
		if !ok {
			break
		}
		end, known := l.ends[t.key]
		switch {
		case !known: // ended before its time
		case end > due:
			l.expiry.push(end, t.key)
		default:
			delete(l.ends, t.key)
			l.delta.N++
		}
	}
	l.expireClaims(due)
	if ms := now.UnixMilli(); !l.block.closed && ms > l.block.end {
		l.closeBlock()
	}
	return l.take()
}
