package pass

import (
	"encoding/binary"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// The body of a pass:
//
//	flags 1 B | visitor 16 B | arrival | last poll | refresh
//	accepted: accepted at | lease end
//	ticket:   anchor 16 B | boot | block | seq
//	shown:    terms 4 B | minutes | quarter | three quarters
//
// Times are milliseconds since 1970 and the refresh interval is milliseconds,
// all as varints; 0 is the zero time. borrowed is a flag alone. Version 1 had no
// shown, version 2 no borrowed.
const (
	flagAccepted = 1 << iota
	flagTicket
	flagShown
	flagBorrowed
)

// flagsKnown are the flags that a body may have, by version.
var flagsKnown = [...]byte{
	1: flagAccepted | flagTicket,
	2: flagAccepted | flagTicket | flagShown,
	3: flagAccepted | flagTicket | flagShown | flagBorrowed,
}

const (
	bodyMin = 1 + 16 + 3
	bodyMax = 1 + 16 + 3*maxMilli + 2*maxMilli +
		16 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen32 +
		4 + 3*binary.MaxVarintLen16

	maxMilli   = 7 // bytes of a varint below milliLimit
	milliLimit = 1 << (7*maxMilli - 1)

	// refreshLimit keeps the interval far from the end of time.Duration.
	refreshLimit = 1 << 32
)

func appendBody(b []byte, p node.Pass) []byte {
	var flags byte
	if p.Accepted() {
		flags |= flagAccepted
	}
	if !p.Ticket.IsZero() {
		flags |= flagTicket
	}
	if p.Shown != (room.Shown{}) {
		flags |= flagShown
	}
	if p.Borrowed {
		flags |= flagBorrowed
	}
	b = append(b, flags)
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

// parseBody reads what appendBody wrote, in this version or an earlier one. Only
// a holder of a key can have written the bytes, so being exact here guards against
// other versions of ourselves, not against forgers.
func parseBody(version byte, b []byte) (node.Pass, bool) {
	r := reader{b: b}
	var p node.Pass
	flags := r.byte()
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
	if flags&flagShown != 0 {
		var terms [4]byte
		r.read(terms[:])
		p.Shown.Terms = binary.BigEndian.Uint32(terms[:])
		p.Shown.Minutes = uint16(r.uvarint(1<<16 - 1))
		p.Shown.P25 = uint16(r.uvarint(1<<16 - 1))
		p.Shown.P75 = uint16(r.uvarint(1<<16 - 1))
	}
	p.Borrowed = flags&flagBorrowed != 0
	if r.bad || len(r.b) != 0 || flags&^flagsKnown[version] != 0 {
		return node.Pass{}, false
	}
	return p, true
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

func (r *reader) read(dst []byte) {
	if len(r.b) < len(dst) {
		r.b, r.bad = nil, true
		return
	}
	r.b = r.b[copy(dst, r.b):]
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
