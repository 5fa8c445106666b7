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
//	flags 1 B | visitor 16 B | arrival | last poll | refresh
//	accepted: accepted at | lease end
//	ticket:   anchor 16 B | boot | block | seq
//	shown:    terms 4 B | minutes | quarter | three quarters
//	mesh:     6 B, of a session: which mesh it is of; then there is no shown
//
// Times are milliseconds since 1970 and the refresh interval is milliseconds,
// all as varints; 0 is the zero time. borrowed is a flag alone. Version 1 had no
// shown, version 2 no borrowed, version 3 no mesh.
const (
	flagAccepted = 1 << iota
	flagTicket
	flagShown
	flagBorrowed
	flagMesh
)

// meshSize is enough that hardly any two meshes are taken for one.
const meshSize = 6

// flagsKnown are the flags that a body may have, by version.
var flagsKnown = [...]byte{
	1: flagAccepted | flagTicket,
	2: flagAccepted | flagTicket | flagShown,
	3: flagAccepted | flagTicket | flagShown | flagBorrowed,
	5: flagAccepted | flagTicket | flagBorrowed | flagMesh,
}

const (
	bodyMin = 1 + 16 + 3
	bodyMax = 1 + 16 + 3*maxMilli + 2*maxMilli +
		16 + 2*binary.MaxVarintLen64 + binary.MaxVarintLen32 +
		max(4+3*binary.MaxVarintLen16, meshSize)

	maxMilli   = 7 // bytes of a varint below milliLimit
	milliLimit = 1 << (7*maxMilli - 1)

	// refreshLimit keeps the interval far from the end of time.Duration.
	refreshLimit = 1 << 32
)

// session reports whether a pass says that its visitor was let in.
func session(p *node.Pass) bool { return p.Accepted() || !p.Ticket.IsZero() }

// appendBody appends a pass. A session is of the mesh of; zero: of one in which passes do
// not say so.
func appendBody(b []byte, p node.Pass, of [meshSize]byte) []byte {
	var flags byte
	if session(&p) && of != [meshSize]byte{} {
		flags |= flagMesh
	}
	if p.Accepted() {
		flags |= flagAccepted
	}
	if !p.Ticket.IsZero() {
		flags |= flagTicket
	}
	if p.Shown != (room.Shown{}) && flags&flagMesh == 0 { // who is in was shown something long ago
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
	if flags&flagMesh != 0 {
		b = append(b, of[:]...)
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
// other versions of ourselves, not against forgers. A session of another mesh than of is
// none: what is left of it is the arrival.
func parseBody(version byte, b []byte, of [meshSize]byte) (node.Pass, bool) {
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
	var is [meshSize]byte
	if flags&flagMesh != 0 {
		r.read(is[:])
	}
	if is != of && session(&p) {
		p.LastPoll = p.LeaseEnd // as long as that, it would have been as good as a visitor who asks
		p.AcceptedAt, p.LeaseEnd, p.Ticket, p.Borrowed = time.Time{}, time.Time{}, ticket.Ticket{}, false
		p.Foreign = true
	}
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
