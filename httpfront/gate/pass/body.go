package pass

import (
	"encoding/binary"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// The body of a pass:
//
//	flags 1 B
//	bound:    parts 1 B | sum 6 B, of what it is bound to
//	visitor 16 B | arrival | last poll | refresh
//	accepted: accepted at | lease end
//	ticket:   anchor 16 B | boot | block | seq
//	mesh 6 B, with accepted or ticket: of which mesh the session is
//	shown:    terms 4 B | minutes | quarter | three quarters, of who has no session
//
// Times are milliseconds since 1970 and the refresh interval is milliseconds,
// all as varints; 0 is the zero time. borrowed is a flag alone.
const (
	flagAccepted = 1 << iota
	flagTicket
	flagShown
	flagBorrowed
	flagBound
	flagsKnown  = 1<<iota - 1
	flagsInside = flagAccepted | flagTicket // of a session
)

// meshSize is enough that hardly any two meshes are taken for one.
const meshSize = 6

const (
	bodyMin = 1 + 16 + 3
	bodyMax = 1 + boundSize + 16 + 3*maxMilli + 2*maxMilli +
		16 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen32 +
		max(4+3*binary.MaxVarintLen16, meshSize)

	maxMilli   = 7 // bytes of a varint below milliLimit
	milliLimit = 1 << (7*maxMilli - 1)

	// refreshLimit keeps the interval far from the end of time.Duration.
	refreshLimit = 1 << 32
)

// appendBody appends a pass that is bound so, where bound is not empty. A session is of the mesh of.
func appendBody(b []byte, p node.Pass, bound []byte, of [meshSize]byte) []byte {
	var flags byte
	if len(bound) > 0 {
		flags |= flagBound
	}
	if p.Accepted() {
		flags |= flagAccepted
	}
	if !p.Ticket.IsZero() {
		flags |= flagTicket
	}
	if p.Shown != (room.Shown{}) && flags&flagsInside == 0 { // who is in was shown something long ago
		flags |= flagShown
	}
	if p.Borrowed {
		flags |= flagBorrowed
	}
	b = append(b, flags)
	b = append(b, bound...)
	b = append(b, p.Visitor[:]...)
	b = appendTime(b, p.Arrival)
	b = appendTime(b, p.LastPoll)
	b = appendMilli(b, min(p.Refresh.Milliseconds(), refreshLimit-1))
	if flags&flagAccepted != 0 {
		b = appendTime(b, p.AcceptedAt)
		b = appendTime(b, p.LeaseEnd)
	}
	if flags&flagTicket != 0 {
		b = append(b, p.Ticket.Anchor[:]...)
		b = binary.AppendUvarint(b, p.Ticket.Boot)
		b = binary.AppendUvarint(b, uint64(p.Ticket.Block))
		b = binary.AppendUvarint(b, p.Ticket.Seq)
	}
	if flags&flagsInside != 0 {
		b = append(b, of[:]...)
	}
	if flags&flagShown != 0 {
		b = binary.BigEndian.AppendUint32(b, p.Shown.Terms)
		b = binary.AppendUvarint(b, uint64(p.Shown.Minutes))
		b = binary.AppendUvarint(b, uint64(p.Shown.P25))
		b = binary.AppendUvarint(b, uint64(p.Shown.P75))
	}
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	return appendMilli(b, t.UnixMilli())
}

// appendMilli keeps v inside the range that bodyMax counts on. No clock that
// works gives anything outside of it.
func appendMilli(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(min(max(v, 0), milliLimit-1)))
}

// parseBody reads what appendBody wrote. Only a holder of a key can have written the bytes, so
// being exact here guards against mistakes of ourselves, not against forgers. A session of another
// mesh than of is none: what is left of it is the arrival. What the pass is bound to is a part of b.
func parseBody(b []byte, of [meshSize]byte) (p node.Pass, bound []byte, ok bool) {
	r := reader{b: b}
	flags := r.byte()
	if flags&flagBound != 0 {
		bound = r.take(boundSize)
	}
	r.read(p.Visitor[:])
	p.Arrival = r.time()
	p.LastPoll = r.time()
	p.Refresh = time.Duration(r.uvarint(refreshLimit-1)) * time.Millisecond
	if flags&flagAccepted != 0 {
		p.AcceptedAt = r.time()
		p.LeaseEnd = r.time()
	}
	if flags&flagTicket != 0 {
		r.read(p.Ticket.Anchor[:])
		p.Ticket.Boot = r.uvarint(1<<64 - 1)
		p.Ticket.Block = uint32(r.uvarint(1<<32 - 1))
		p.Ticket.Seq = r.uvarint(1<<64 - 1)
	}
	is := of
	if flags&flagsInside != 0 {
		r.read(is[:])
	}
	if flags&flagShown != 0 {
		var terms [4]byte
		r.read(terms[:])
		p.Shown.Terms = binary.BigEndian.Uint32(terms[:])
		p.Shown.Minutes = uint16(r.uvarint(1<<16 - 1))
		p.Shown.P25 = uint16(r.uvarint(1<<16 - 1))
		p.Shown.P75 = uint16(r.uvarint(1<<16 - 1))
	}
	p.Borrowed = flags&flagBorrowed != 0
	if is != of {
		p.LastPoll = p.LeaseEnd // as long as that, it would have been as good as a visitor who asks
		p.AcceptedAt, p.LeaseEnd, p.Ticket, p.Borrowed = time.Time{}, time.Time{}, ticket.Ticket{}, false
		p.Foreign = true
	}
	if r.bad || len(r.b) != 0 || flags&^flagsKnown != 0 || flags&flagShown != 0 && flags&flagsInside != 0 {
		return node.Pass{}, nil, false
	}
	return p, bound, true
}

// reader takes fields off the front of b. Once something is missing, it is bad
// and returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) byte() byte {
	var b [1]byte
	r.read(b[:])
	return b[0]
}

func (r *reader) read(dst []byte) { copy(dst, r.take(len(dst))) }

// take returns the next n bytes, and none if there are not so many.
func (r *reader) take(n int) (b []byte) {
	if len(r.b) < n {
		r.b, r.bad = nil, true
		return nil
	}
	b, r.b = r.b[:n], r.b[n:]
	return b
}

func (r *reader) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) time() time.Time {
	ms := int64(r.uvarint(milliLimit - 1))
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
