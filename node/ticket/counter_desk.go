package ticket

import (
	"errors"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// CallTimeout is how long a counter has to answer before its applicants are
	// turned away.
	CallTimeout = 600 * time.Millisecond

	// callResend is after how long a call is sent again. It fits into CallTimeout
	// three times, so that a lost message does not look like a lost counter.
	callResend = 150 * time.Millisecond

	// reportGap is the least time between a call and one that only tells. The
	// sooner a counter hears that tickets are booked, the shorter it reckons with
	// them twice: rows are pushed every 250 ms.
	reportGap = 50 * time.Millisecond

	// LostRetry is how long nobody applies after a call that was not answered.
	LostRetry = 250 * time.Millisecond
)

// ErrNotAsked says that a grant answers no call of this desk that is under way.
// It may be late, or come twice; it changes nothing.
var ErrNotAsked = errors.New("grant for a call that is not under way")

// ErrTooMuch says that a counter granted more than was asked for.
var ErrTooMuch = errors.New("grant of more than was wanted")

// Applicant is one visitor who wants a ticket of a counter.
type Applicant[T any] struct {
	Place    time.Time // in the order of the queue
	Reserved bool      // the kind of ticket
	Who      T
	Ticket   Ticket        // what was granted; zero if the node numbers its tickets itself
	Session  time.Duration // with it, as Range has it
}

// Desk is where the visitors of one node apply for the tickets of one counter of
// one room. All who apply while a call is under way go together in the next one.
// The zero value is ready; a nil one is a desk at which nobody has applied, for all but
// Apply, Booked and Return. It is not safe for concurrent use.
type Desk[T any] struct {
	queue   []Applicant[T] // for the next call, as they came
	spare   []Applicant[T] // memory for the next queue; Granted may have returned what it holds
	asking  []Applicant[T] // of the call under way
	call    Call           // under way if on
	on      bool
	to      crdt.NodeID // whom the call went to
	began   time.Time   // first sent
	sent    time.Time   // last sent
	number  uint64      // of the newest call
	got     uint64      // as Call has it
	booked  uint64
	seq     uint64
	told    uint64 // booked as the counter knows it
	void    bool   // a call was given up, and the counter does not know
	taken   uint64 // the newest call of which a grant was taken up
	alone   bool   // the counter has not answered
	refused [2]time.Time
}

func kind(reserved bool) int {
	if reserved {
		return 0
	}
	return 1
}

// Apply has somebody wait for the next call.
func (d *Desk[T]) Apply(a Applicant[T]) { d.queue = append(d.queue, a) }

// Queued returns how many wait for the next call.
func (d *Desk[T]) Queued() int {
	if d == nil {
		return 0
	}
	return len(d.queue)
}

// Recall takes back those who wait for the next call, as they came: they are served without
// it. What it returns is good until Apply is called.
func (d *Desk[T]) Recall() []Applicant[T] {
	if d == nil {
		return nil
	}
	all := d.queue
	d.queue = d.queue[:0]
	return all
}

// RefusedUntil returns until when whoever wants a ticket of a kind is refused
// without a call; a time that is past if they are not.
func (d *Desk[T]) RefusedUntil(reserved bool) time.Time {
	if d == nil {
		return time.Time{}
	}
	return d.refused[kind(reserved)]
}

// Next returns the call that shall be sent to to now, which is who the counter
// is by now. What was asked of another is asked anew.
func (d *Desk[T]) Next(to crdt.NodeID, now time.Time) (Call, bool) {
	if d == nil {
		return Call{}, false
	}
	if d.on && d.to != to {
		d.queue = append(d.asking, d.queue...)
		d.drop()
	}
	switch {
	case len(d.queue) > 0 && (!d.on || len(d.asking) == 0):
		d.asking, d.queue = d.queue, d.reuse()
	case d.on && now.Sub(d.sent) < callResend:
		return Call{}, false
	case d.on:
		d.sent = now
		return d.call, true
	case d.booked == d.told && !d.void || now.Sub(d.sent) < reportGap:
		return Call{}, false
	}
	d.number++
	if d.to != to {
		d.alone = false
	}
	d.on, d.to, d.began, d.sent = true, to, now, now
	d.call = Call{Number: d.number, Void: d.taken + 1, Got: d.got, Booked: d.booked, Seq: d.seq}
	for _, a := range d.asking {
		if a.Reserved {
			d.call.Want.Reserved++
		} else {
			d.call.Want.Contested++
		}
	}
	return d.call, true
}

// reuse returns the memory of the last answer, if it is not that of a crowd.
func (d *Desk[T]) reuse() []Applicant[T] {
	spare := d.spare
	if d.spare = nil; cap(spare) > maxSpare {
		return nil
	}
	clear(spare) // beyond it nothing was used
	return spare[:0]
}

// maxSpare bounds the applicants for whom a desk keeps memory between two calls.
const maxSpare = 4096

// drop forgets the call under way: whatever it is granted, nobody takes up.
func (d *Desk[T]) drop() {
	d.on, d.void, d.asking = false, true, nil
}

// Granted takes an answer and returns who has a ticket now and who has none. What it
// returns is good until Next is called.
// After CallTimeout it comes too late, also where GiveUp was not called in time:
// a process that was stopped finds grants of long ago, and their places are
// somebody else's by now.
// Where tickets are fewer than applicants, older places go first.
func (d *Desk[T]) Granted(from crdt.NodeID, g Grant, now time.Time) (in, out []Applicant[T], err error) {
	if d == nil || !d.on || from != d.to || g.Number != d.call.Number || now.Sub(d.began) >= CallTimeout {
		return nil, nil, ErrNotAsked
	}
	if g.Given.Reserved > d.call.Want.Reserved || g.Given.Contested > d.call.Want.Contested {
		return nil, nil, ErrTooMuch
	}
	d.got += uint64(g.Given.Sum())
	d.taken, d.alone = d.number, false
	d.told = max(d.told, d.call.Booked)
	retry := now.Add(min(max(0, g.Retry), MaxRetry))
	short := [2]bool{g.Given.Reserved < d.call.Want.Reserved, g.Given.Contested < d.call.Want.Contested}
	for k, s := range short {
		if s {
			d.refused[k] = retry
		}
	}
	asked := d.asking
	d.on, d.void, d.asking = false, false, nil
	byPlace(asked)
	in = asked[:0]
	left := [2]int{g.Given.Reserved, g.Given.Contested}
	tickets := drawer{g.Tickets, 0}
	for _, a := range asked {
		if k := kind(a.Reserved); left[k] > 0 {
			left[k]--
			a.Ticket, a.Session = tickets.next()
			in = append(in, a)
		} else {
			out = append(out, a)
		}
	}
	// What was refused to some is refused to those who came meanwhile.
	keep := d.queue[:0]
	for _, a := range d.queue {
		if short[kind(a.Reserved)] {
			out = append(out, a)
		} else {
			keep = append(keep, a)
		}
	}
	clear(d.queue[len(keep):])
	d.queue, d.spare = keep, asked
	return in, out, nil
}

// byPlace puts older places first. Most applicants come in that order.
func byPlace[T any](all []Applicant[T]) {
	older := func(a, b Applicant[T]) int { return a.Place.Compare(b.Place) }
	if !slices.IsSortedFunc(all, older) {
		slices.SortStableFunc(all, older)
	}
}

// drawer hands out the tickets of ranges one by one.
type drawer struct {
	rest []Range
	used uint64 // of the first
}

// next returns the next ticket, or the zero one if there are none left.
func (d *drawer) next() (t Ticket, session time.Duration) {
	if len(d.rest) == 0 {
		return t, 0
	}
	t, session = d.rest[0].Ticket(d.used), d.rest[0].Session
	if d.used++; d.used >= d.rest[0].N {
		d.rest, d.used = d.rest[1:], 0
	}
	return t, session
}

// Alone reports whether the counter that this desk calls has left a call
// unanswered and has not answered any since. A desk that is alone goes on calling,
// so that it notices when the counter is back.
func (d *Desk[T]) Alone() bool { return d != nil && d.alone }

// GiveUp turns everybody away if a call has not been answered for CallTimeout.
func (d *Desk[T]) GiveUp(now time.Time) []Applicant[T] {
	if d == nil || !d.on || now.Sub(d.began) < CallTimeout {
		return nil
	}
	d.refused[0], d.refused[1] = now.Add(LostRetry), now.Add(LostRetry)
	d.alone = true
	return d.Drain()
}

// Drain returns all who wait for an answer, older places first, and forgets them
// and the call.
func (d *Desk[T]) Drain() []Applicant[T] {
	if d == nil {
		return nil
	}
	all := append(d.asking, d.queue...)
	d.queue = nil
	if d.on {
		d.drop()
	}
	byPlace(all)
	return all
}

// Idle reports whether nobody waits for an answer, and the counter knows all that it is to be
// told.
func (d *Desk[T]) Idle() bool {
	return d == nil || !d.on && !d.alone && !d.void && len(d.queue) == 0 && len(d.asking) == 0 && d.booked == d.told
}

// Booked says that tickets of this desk are counted in this node's row as of seq.
func (d *Desk[T]) Booked(tickets int, seq uint64) {
	d.booked = min(d.booked+uint64(tickets), d.got)
	d.seq = max(d.seq, seq)
}

// Return says that tickets of this desk were not used after all. They are told
// of like booked ones: no row counts them, and so their places are free.
func (d *Desk[T]) Return(tickets int) { d.Booked(tickets, 0) }
