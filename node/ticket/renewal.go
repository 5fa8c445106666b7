package ticket

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// Silence is how long an anchor may leave a renewal unanswered before it is
	// taken to be out of reach.
	Silence = time.Second

	// renewGap is the least time between two renewals of one ticket: a visitor
	// who loads a page with its pictures checks in once.
	renewGap = time.Second

	// Unanswered renewals are sent again after resendFirst, then ever more
	// seldom up to resendLast. The first ones fit into Silence more than once, so
	// that a single lost message does not look like a lost anchor.
	resendFirst = 300 * time.Millisecond
	resendLast  = 5 * time.Second

	// sweepEvery is how often tickets are looked through for those of no use.
	sweepEvery = 5 * time.Second

	// unansweredKept is how long an unanswered check-in is kept at least.
	unansweredKept = 3 * Silence

	// MaxRenewals bounds the tickets that Renewals keeps. Beyond it, visitors go
	// on until the end of their pass and are then asked for at their anchor.
	MaxRenewals = 1 << 18
)

// Renewal is one check-in on its way to an anchor.
type Renewal struct {
	Ticket  Ticket
	PassEnd time.Time // end of the lease, as the pass says
	At      time.Time // when the visitor was let pass
}

// Batch is renewals for one anchor, at most MaxBatch of them.
type Batch struct {
	Room   crdt.RoomID // left to the caller
	Anchor crdt.NodeID
	Items  []Renewal
}

// Renewals carries the check-ins of visitors whose anchor is another node to
// that anchor, each until it is answered. The zero value is ready; a nil one has none, and
// takes none. It is not safe for concurrent use.
type Renewals struct {
	entries map[Ticket]*renewing
	wake    timers[Ticket]
	flying  []flight // first sends, in order
	swept   int64    // Unix ms
	dropped uint64
}

// renewing is one ticket's way to its anchor. Times are Unix ms.
type renewing struct {
	passEnd int64
	at      int64 // newest check-in
	sentAt  int64 // the check-in that was sent last
	sent    int64 // when that was; 0: never
	first   int64 // first send that is unanswered; 0: none is
	next    int64 // next send; 0: nothing to send
	end     int64 // acknowledged and not taken yet; 0: none
	tries   int   // sends since the last answer
}

// flight says that the renewal of a ticket went unanswered from first on.
type flight struct {
	first  int64
	ticket Ticket
}

// NewRenewals returns Renewals that know of no ticket.
func NewRenewals() *Renewals { return &Renewals{} }

// Len returns how many tickets are kept.
func (r *Renewals) Len() int {
	if r == nil {
		return 0
	}
	return len(r.entries)
}

// Dropped returns how many check-ins were not taken because of MaxRenewals.
func (r *Renewals) Dropped() uint64 {
	if r == nil {
		return 0
	}
	return r.dropped
}

func (r *Renewals) entry(t Ticket) *renewing {
	if r == nil {
		return nil
	}
	return r.entries[t]
}

// Note takes a check-in at at with a pass that ends at passEnd. Check-ins of one
// ticket become one. It reports whether there was room.
func (r *Renewals) Note(t Ticket, passEnd, at time.Time) bool {
	e := r.entries[t]
	ms := at.UnixMilli()
	if e == nil {
		if len(r.entries) >= MaxRenewals {
			r.dropped++
			return false
		}
		if r.entries == nil {
			r.entries = make(map[Ticket]*renewing)
		}
		e = &renewing{}
		r.entries[t] = e
	} else if ms <= e.at {
		return true
	}
	e.at = ms
	e.passEnd = max(e.passEnd, passEnd.UnixMilli())
	if e.next == 0 {
		r.schedule(t, e, max(ms, e.sent+renewGap.Milliseconds()))
	}
	return true
}

// schedule sets when a ticket is sent next. Timers set before it are dropped when
// they fire.
func (r *Renewals) schedule(t Ticket, e *renewing, next int64) {
	e.next = next
	r.wake.push(next, t)
}

// keptUntil is when an entry is of no use any more: no pass with that ticket can
// be valid unless its anchor says so, and asking is then for requests to do. A
// visitor who checked in just before the end of the pass has a session ahead: an
// anchor that does not answer is noticed before that is forgotten.
func (e *renewing) keptUntil() int64 {
	until := max(e.passEnd, e.end) + guardMS
	if e.first != 0 || e.next != 0 {
		until = max(until, e.at+unansweredKept.Milliseconds())
	}
	return until
}

// Due returns what shall be sent now, ordered by anchor and ticket.
func (r *Renewals) Due(now time.Time) []Batch {
	if r == nil {
		return nil
	}
	ms := now.UnixMilli()
	if ms >= r.swept+sweepEvery.Milliseconds() || ms < r.swept {
		r.swept = ms
		r.sweep(ms)
	}
	var due []Renewal
	for {
		w, ok := r.wake.pop(ms)
		if !ok {
			break
		}
		e := r.entries[w.key]
		switch {
		case e == nil || e.next != w.at: // gone, answered or moved
		case ms > e.keptUntil():
			delete(r.entries, w.key)
		default:
			due = append(due, r.send(w.key, e, ms))
		}
	}
	return batches(due)
}

// sweep forgets the tickets that are of no use any more. Idle ones have no timer:
// with one per renewal, timers would outnumber tickets by far.
func (r *Renewals) sweep(ms int64) {
	for t, e := range r.entries {
		if ms > e.keptUntil() {
			delete(r.entries, t)
		}
	}
}

func (r *Renewals) send(t Ticket, e *renewing, ms int64) Renewal {
	if e.first == 0 {
		e.first = ms
		r.flying = append(r.flying, flight{ms, t})
	}
	wait := resendFirst << min(e.tries, 8)
	e.tries++
	e.sent, e.sentAt = ms, e.at
	r.schedule(t, e, ms+min(wait, resendLast).Milliseconds())
	return Renewal{Ticket: t, PassEnd: time.UnixMilli(e.passEnd), At: time.UnixMilli(e.at)}
}

func batches(due []Renewal) []Batch {
	slices.SortFunc(due, func(a, b Renewal) int { return compare(a.Ticket, b.Ticket) })
	var out []Batch
	for i, item := range due {
		last := len(out) - 1
		if i == 0 || out[last].Anchor != item.Ticket.Anchor || len(out[last].Items) == MaxBatch {
			out = append(out, Batch{Anchor: item.Ticket.Anchor})
			last++
		}
		out[last].Items = append(out[last].Items, item)
	}
	return out
}

func compare(a, b Ticket) int {
	return cmp.Or(bytes.Compare(a.Anchor[:], b.Anchor[:]), cmp.Compare(a.Boot, b.Boot),
		cmp.Compare(a.Block, b.Block), cmp.Compare(a.Seq, b.Seq))
}

// Acked takes the anchor's answer that a lease now ends at end. If that is later than
// in the newest pass that was seen it is kept for Take until then. An answer for a ticket that is not kept is dropped.
func (r *Renewals) Acked(t Ticket, end time.Time) {
	e := r.entry(t)
	if e == nil {
		return
	}
	if ms := end.UnixMilli(); ms > e.passEnd { // else no pass gets any later by it
		e.end = max(e.end, ms)
	}
	e.first, e.tries = 0, 0
	e.next = 0
	if e.at > e.sentAt {
		r.schedule(t, e, e.sent+renewGap.Milliseconds())
	}
}

// Refused takes the anchor's answer that a lease has ended, or was never its
// own. The ticket is forgotten; it reports whether it was kept.
func (r *Renewals) Refused(t Ticket) bool { return r.Forget(t) }

// Forget drops a ticket, because its visitor has another one. It reports
// whether it was kept.
func (r *Renewals) Forget(t Ticket) bool {
	known := r.entry(t) != nil
	if known {
		delete(r.entries, t)
	}
	return known
}

// Take returns the newest end that the anchor has agreed to, once; it belongs in
// the visitor's next cookie.
func (r *Renewals) Take(t Ticket) (end time.Time, ok bool) {
	e := r.entry(t)
	if e == nil || e.end == 0 {
		return time.Time{}, false
	}
	end = time.UnixMilli(e.end)
	// The entry lives on as long as before: it holds back the next renewal.
	e.passEnd = max(e.passEnd, e.end)
	e.end = 0
	return end, true
}

// Unreachable returns the tickets whose anchor has left them unanswered for
// Silence, each once per silence. Their visitors want another anchor. Until one
// is found, and Forget called, the renewals go on being sent: the anchor may
// come back.
func (r *Renewals) Unreachable(now time.Time) []Renewal {
	if r == nil {
		return nil
	}
	limit := now.Add(-Silence).UnixMilli()
	var out []Renewal
	n := 0
	for ; n < len(r.flying) && r.flying[n].first <= limit; n++ {
		f := r.flying[n]
		if e := r.entries[f.ticket]; e != nil && e.first == f.first {
			out = append(out, Renewal{f.ticket, time.UnixMilli(e.passEnd), time.UnixMilli(e.at)})
		}
	}
	r.flying = r.flying[n:] // who grows it next copies only what is left
	return out
}
