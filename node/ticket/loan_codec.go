package ticket

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// loanVersion 1 did not say how long sessions last, 2 recalled nothing.
const loanVersion = 3

// The least that one report, use, loan and acknowledgement takes.
const (
	minReport = 4
	minUsed   = 3
	minLoan   = 6
	minAck    = 2
)

// AppendLoanCall appends the encoding of c to dst: version, room, lender, how many
// tickets are to be lent, then of each report block, number, whether it is the
// last one, and of each use first, how many, and its age in ms, cut to whole ones:
// a use must not seem older than it is.
func AppendLoanCall(dst []byte, c LoanCall) []byte {
	w := newRoomWriter(dst, loanVersion, c.Room)
	w.incarnation(c.Lender)
	w.number(uint64(min(max(0, c.Borrow), maxCounted)))
	w.count(len(c.Reports), MaxLoans)
	for _, rep := range c.Reports {
		w.number(uint64(rep.Block))
		w.number(rep.Number)
		w.flag(rep.Final)
		w.count(len(rep.Used), MaxUsed)
		for _, u := range rep.Used {
			w.span(u.First, u.N)
			w.number(min(uint64(max(0, u.Age).Milliseconds()), maxAge))
		}
	}
	return w.buf.Bytes()
}

// DecodeLoanCall takes apart what AppendLoanCall wrote. A message that is not
// well formed is an error that wraps ErrMalformed.
func DecodeLoanCall(message []byte) (LoanCall, error) {
	r := newReader(message)
	var c LoanCall
	r.version(loanVersion)
	r.id(c.Room[:])
	c.Lender = r.incarnation()
	c.Borrow = int64(r.number(maxCounted))
	for range r.atMost(MaxLoans, minReport) {
		rep := Report{Room: c.Room, Lender: c.Lender}
		rep.Block = uint32(r.number(math.MaxUint32))
		rep.Number = r.number(maxCounted)
		rep.Final = r.flag()
		for range r.atMost(MaxUsed, minUsed) {
			var u Used
			u.First, u.N = r.span()
			u.Age = time.Duration(r.number(maxAge)) * time.Millisecond
			rep.Used = append(rep.Used, u)
		}
		c.Reports = append(c.Reports, rep)
	}
	if err := r.finish(); err != nil {
		return LoanCall{}, fmt.Errorf("loan call: %w", err)
	}
	return c, nil
}

// AppendLoanAnswer appends the encoding of a to dst: version, room, lender,
// borrower, the last block that is recalled, then of each loan block, first, how many,
// until when in Unix ms, how long a session lasts in ms, and what is left, then of each
// acknowledgement block and number.
func AppendLoanAnswer(dst []byte, a LoanAnswer) []byte {
	w := newRoomWriter(dst, loanVersion, a.Room)
	w.incarnation(a.Lender)
	w.incarnation(a.To)
	w.number(uint64(a.Recalled))
	w.count(len(a.Loans), MaxBatch)
	for _, l := range a.Loans {
		w.number(uint64(l.Block))
		w.number(l.First)
		w.number(l.N)
		w.millis(l.ValidUntil)
		w.session(l.Session)
		w.number(uint64(min(max(0, l.Left), maxCounted)))
	}
	w.count(len(a.Acks), MaxLoans)
	for _, ack := range a.Acks {
		w.number(uint64(ack.Block))
		w.number(ack.Number)
	}
	return w.buf.Bytes()
}

// DecodeLoanAnswer takes apart what AppendLoanAnswer wrote. A message that is not
// well formed is an error that wraps ErrMalformed.
func DecodeLoanAnswer(message []byte) (LoanAnswer, error) {
	r := newReader(message)
	var a LoanAnswer
	r.version(loanVersion)
	r.id(a.Room[:])
	a.Lender, a.To = r.incarnation(), r.incarnation()
	a.Recalled = uint32(r.number(math.MaxUint32))
	for range r.atMost(MaxBatch, minLoan) {
		l := Loan{Room: a.Room, Lender: a.Lender, To: a.To}
		l.Block = uint32(r.number(math.MaxUint32))
		l.First = r.number(math.MaxUint64)
		l.N = r.number(maxSpan)
		l.ValidUntil = time.UnixMilli(int64(r.number(maxMillis)))
		l.Session = r.session()
		l.Left = int64(r.number(maxCounted))
		if l.First > math.MaxUint64-l.N || (l.N == 0) != (l.Block == 0) {
			r.fail("loan %d of %d tickets from %d on", l.Block, l.N, l.First)
		}
		a.Loans = append(a.Loans, l)
	}
	for range r.atMost(MaxLoans, minAck) {
		ack := ReportAck{Room: a.Room, Lender: a.Lender}
		ack.Block = uint32(r.number(math.MaxUint32))
		ack.Number = r.number(maxCounted)
		a.Acks = append(a.Acks, ack)
	}
	if err := r.finish(); err != nil {
		return LoanAnswer{}, fmt.Errorf("loan answer: %w", err)
	}
	return a, nil
}

// newRoomWriter starts a message about a room.
func newRoomWriter(dst []byte, version uint64, room crdt.RoomID) writer {
	w := newBareWriter(dst, version)
	w.keep(w.enc.EncodeBytes(room[:]))
	return w
}

// count writes how many items follow.
func (w writer) count(n, most int) {
	if n > most {
		panic(fmt.Sprintf("ticket: message of %d items, at most %d fit", n, most))
	}
	w.keep(w.enc.EncodeArrayLen(n))
}

func (w writer) flag(on bool) {
	n := uint64(0)
	if on {
		n = 1
	}
	w.number(n)
}

// atMost reads the number of items that follow, of which each takes minItem bytes
// at least.
func (r *reader) atMost(most, minItem int) int {
	n := r.items(minItem)
	if n > most {
		r.fail("%d items, at most %d", n, most)
		return 0
	}
	return n
}

func (r *reader) flag() bool { return r.number(1) == 1 }
