package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// MaxMessage is the size of the largest message that is decoded, in bytes.
	MaxMessage = 256 << 10

	// MaxBatch is how many items a message carries at most: with every number at
	// its longest they still fit into MaxMessage.
	MaxBatch = 5000

	maxMillis = 1 << 46
)

// layout is the form of one kind of message: its version, and the least that an
// item takes, one byte per number.
type layout struct {
	version uint64
	minItem int
}

var (
	renewalLayout = layout{version: 1, minItem: 5}
	ackLayout     = layout{version: 2, minItem: 4} // 1 could not say that a session was ended
	endLayout     = layout{version: 1, minItem: 3}
)

// endedMS stands for the end of a lease that was ended before its time. No lease
// ends that early in 1970.
const endedMS = 1

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed message")

// Ack is an anchor's answer to one renewal, or to the news of an end.
type Ack struct {
	Ticket Ticket
	End    time.Time // of the lease; zero: refused
	Ended  bool      // refused, because the origin has ended the session; it goes on nowhere
}

// Acks is an anchor's answers, all for its own tickets.
type Acks struct {
	Room   crdt.RoomID
	Anchor crdt.NodeID
	Items  []Ack
}

// Ends is the news that the origin has ended sessions of one anchor.
type Ends struct {
	Room   crdt.RoomID // left to the caller
	Anchor crdt.NodeID
	Items  []Ticket
}

// AppendBatch appends the encoding of b to dst. Check-ins are sent as their age
// at now, so that the clocks of the two nodes need not agree.
func AppendBatch(dst []byte, b Batch, now time.Time) []byte {
	w := newWriter(dst, renewalLayout, b.Room, b.Anchor, len(b.Items))
	for _, item := range b.Items {
		w.ticket(item.Ticket)
		w.millis(item.PassEnd)
		w.number(uint64(max(0, now.Sub(item.At).Milliseconds())))
	}
	return w.buf.Bytes()
}

// DecodeBatch takes apart what AppendBatch wrote; now is the receiver's clock.
// A message that is not well formed is an error that wraps ErrMalformed.
func DecodeBatch(message []byte, now time.Time) (Batch, error) {
	r := newReader(message)
	b := Batch{}
	n := r.header(renewalLayout, &b.Room, &b.Anchor)
	b.Items = make([]Renewal, n)
	for i := range b.Items {
		b.Items[i] = Renewal{
			Ticket:  r.ticket(b.Anchor),
			PassEnd: time.UnixMilli(int64(r.number(maxMillis))),
			At:      now.Add(-time.Duration(r.number(maxAge)) * time.Millisecond),
		}
	}
	if err := r.finish(); err != nil {
		return Batch{}, fmt.Errorf("renewals: %w", err)
	}
	return b, nil
}

// maxAge is the oldest check-in that is taken, in ms: longer than any session.
const maxAge = uint64(48 * time.Hour / time.Millisecond)

// AppendAcks appends the encoding of a to dst.
func AppendAcks(dst []byte, a Acks) []byte {
	w := newWriter(dst, ackLayout, a.Room, a.Anchor, len(a.Items))
	for _, item := range a.Items {
		w.ticket(item.Ticket)
		if item.Ended {
			w.number(endedMS)
		} else {
			w.millis(item.End)
		}
	}
	return w.buf.Bytes()
}

// DecodeAcks takes apart what AppendAcks wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeAcks(message []byte) (Acks, error) {
	r := newReader(message)
	a := Acks{}
	n := r.header(ackLayout, &a.Room, &a.Anchor)
	a.Items = make([]Ack, n)
	for i := range a.Items {
		a.Items[i].Ticket = r.ticket(a.Anchor)
		switch ms := r.number(maxMillis); ms {
		case 0:
		case endedMS:
			a.Items[i].Ended = true
		default:
			a.Items[i].End = time.UnixMilli(int64(ms))
		}
	}
	if err := r.finish(); err != nil {
		return Acks{}, fmt.Errorf("acknowledgements: %w", err)
	}
	return a, nil
}

// AppendEnds appends the encoding of e to dst.
func AppendEnds(dst []byte, e Ends) []byte {
	w := newWriter(dst, endLayout, e.Room, e.Anchor, len(e.Items))
	for _, t := range e.Items {
		w.ticket(t)
	}
	return w.buf.Bytes()
}

// DecodeEnds takes apart what AppendEnds wrote. A message that is not well
// formed is an error that wraps ErrMalformed.
func DecodeEnds(message []byte) (Ends, error) {
	r := newReader(message)
	e := Ends{}
	n := r.header(endLayout, &e.Room, &e.Anchor)
	e.Items = make([]Ticket, n)
	for i := range e.Items {
		e.Items[i] = r.ticket(e.Anchor)
	}
	if err := r.finish(); err != nil {
		return Ends{}, fmt.Errorf("ends: %w", err)
	}
	return e, nil
}

// writer writes msgpack into memory, which does not fail.
type writer struct {
	buf *bytes.Buffer
	enc *msgpack.Encoder
}

// newWriter starts a message: version, room, anchor, items. Items follow as bare
// numbers.
func newWriter(dst []byte, form layout, room crdt.RoomID, anchor crdt.NodeID, items int) writer {
	if items > MaxBatch {
		panic(fmt.Sprintf("ticket: message of %d items, at most %d fit", items, MaxBatch))
	}
	w := newBareWriter(dst, form.version)
	w.keep(w.enc.EncodeBytes(room[:]))
	w.keep(w.enc.EncodeBytes(anchor[:]))
	w.keep(w.enc.EncodeArrayLen(items))
	return w
}

// newBareWriter starts a message with its version.
func newBareWriter(dst []byte, version uint64) writer {
	w := writer{buf: bytes.NewBuffer(dst)}
	w.enc = msgpack.NewEncoder(w.buf)
	w.enc.UseCompactInts(true)
	w.number(version)
	return w
}

func (w writer) keep(err error) {
	if err != nil {
		panic(fmt.Sprintf("ticket: writing to memory: %v", err))
	}
}

func (w writer) number(n uint64) { w.keep(w.enc.EncodeUint(n)) }

// millis writes a time; those before 1970, the zero time too, become 0.
func (w writer) millis(t time.Time) { w.number(uint64(min(max(0, t.UnixMilli()), maxMillis))) }

func (w writer) ticket(t Ticket) {
	w.number(t.Boot)
	w.number(uint64(t.Block))
	w.number(t.Seq)
}

// reader takes a message apart. Every length is held against what is left before
// anything is allocated. The first error sticks, and results are zero after it.
type reader struct {
	src *bytes.Reader
	dec *msgpack.Decoder
	err error
}

func newReader(message []byte) *reader {
	r := &reader{src: bytes.NewReader(message)}
	if len(message) > MaxMessage {
		r.fail("%d bytes, at most %d", len(message), MaxMessage)
	}
	r.dec = msgpack.NewDecoder(r.src)
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
}

// header reads what newWriter wrote and returns the number of items.
func (r *reader) header(form layout, room *crdt.RoomID, anchor *crdt.NodeID) int {
	r.version(form.version)
	r.id(room[:])
	r.id(anchor[:])
	return r.items(form.minItem)
}

func (r *reader) version(want uint64) {
	if v := r.number(math.MaxUint64); r.err == nil && v != want {
		r.fail("version %d, want %d", v, want)
	}
}

// items reads the number of items, of which each takes minItem bytes at least.
func (r *reader) items(minItem int) int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	switch {
	case err != nil:
		r.fail("number of items: %w", err)
	case n < 0 || n > MaxBatch || n > r.src.Len()/minItem:
		r.fail("%d items in %d bytes", n, r.src.Len())
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *reader) id(dst []byte) {
	if r.err != nil {
		return
	}
	n, err := r.dec.DecodeBytesLen()
	switch {
	case err != nil:
		r.fail("id: %w", err)
	case n != len(dst):
		r.fail("id of %d bytes", n)
	default:
		if err := r.dec.ReadFull(dst); err != nil {
			r.fail("id: %w", err)
		}
	}
}

// number reads a whole number of at most limit. What the library would convert
// silently, nil and floats and negative numbers, is refused.
func (r *reader) number(limit uint64) uint64 {
	if r.err != nil {
		return 0
	}
	code, err := r.dec.PeekCode()
	if err != nil {
		r.fail("number: %w", err)
		return 0
	}
	if code > 0x7f && (code < 0xcc || code > 0xcf) {
		r.fail("code %#x where a number was expected", code)
		return 0
	}
	n, err := r.dec.DecodeUint64()
	switch {
	case err != nil:
		r.fail("number: %w", err)
	case n > limit:
		r.fail("number %d, at most %d", n, limit)
	default:
		return n
	}
	return 0
}

func (r *reader) ticket(anchor crdt.NodeID) Ticket {
	return Ticket{
		Anchor: anchor,
		Boot:   r.number(math.MaxUint64),
		Block:  uint32(r.number(math.MaxUint32)),
		Seq:    r.number(math.MaxUint64),
	}
}

func (r *reader) finish() error {
	if r.err == nil && r.src.Len() > 0 {
		r.fail("%d bytes behind the end", r.src.Len())
	}
	return r.err
}
