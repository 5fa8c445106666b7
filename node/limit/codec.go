package limit

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// What nodes send each other. Times are spans, so that clocks need not agree, but for when
// a message was sent: see lag.

// counted is what a node has counted and its receiver has not heard of.
type counted struct {
	boot   uint64 // of the receiver's start that it is for
	sent   Millis // by the clock of its sender
	seq    uint64 // one more than of the last one to the same node
	age    Millis // how long ago the oldest of it was counted
	groups []group[count]
}

// known is what a node knows of keys.
type known struct {
	sent   Millis // by the clock of its sender
	seq    uint64 // of the counted that it answers; 0: of none
	groups []group[fact]
}

// group is what concerns one rule.
type group[T any] struct {
	sum, terms uint64 // of Counter
	items      []T
}

type count struct {
	key Key
	n   uint32
}

type fact struct {
	key               Key
	previous, current uint32
	elapsed           Millis // of the period
	limited           Millis // for how long the key is still limited; 0: it is not
}

const (
	codecVersion = 1

	// maxItems is how many keys one message has at most: with every number at its
	// longest it stays below the 256 KiB that a message may have.
	maxItems = 5000

	minCount, minFact = 2, 5 // bytes, one for each number
	minGroup          = 3
	maxNumber         = 1<<64 - 1
	maxCount          = 1<<32 - 1
	maxTime           = 1 << 48 // of a clock, in milliseconds

	// maxAge is the longest span that is told: who was at the limit when a period began may
	// have to wait until the end of the next one.
	maxAge = Millis(2 * MaxPeriod / 1e6)
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed message")

func (m *counted) encode() []byte {
	w := newWriter(m.boot, uint64(m.sent), m.seq, uint64(m.age), uint64(len(m.groups)))
	for _, g := range m.groups {
		w.numbers(g.sum, g.terms, uint64(len(g.items)))
		for _, i := range g.items {
			w.numbers(uint64(i.key), uint64(i.n))
		}
	}
	return w.buf.Bytes()
}

func decodeCounted(message []byte) (m counted, err error) {
	r := newReader(message)
	m.boot, m.sent, m.seq, m.age = r.number(maxNumber), Millis(r.number(maxTime)), r.number(maxNumber), r.millis()
	m.groups = make([]group[count], r.length(minGroup))
	for i := range m.groups {
		g := &m.groups[i]
		g.sum, g.terms = r.number(maxNumber), r.number(maxNumber)
		g.items = make([]count, r.length(minCount))
		for j := range g.items {
			g.items[j] = count{Key(r.number(maxNumber)), uint32(r.number(maxCount))}
		}
	}
	return m, r.end("counts")
}

func (m *known) encode() []byte {
	w := newWriter(uint64(m.sent), m.seq, uint64(len(m.groups)))
	for _, g := range m.groups {
		w.numbers(g.sum, g.terms, uint64(len(g.items)))
		for _, i := range g.items {
			w.numbers(uint64(i.key), uint64(i.previous), uint64(i.current), uint64(i.elapsed), uint64(i.limited))
		}
	}
	return w.buf.Bytes()
}

func decodeKnown(message []byte) (m known, err error) {
	r := newReader(message)
	m.sent, m.seq = Millis(r.number(maxTime)), r.number(maxNumber)
	m.groups = make([]group[fact], r.length(minGroup))
	for i := range m.groups {
		g := &m.groups[i]
		g.sum, g.terms = r.number(maxNumber), r.number(maxNumber)
		g.items = make([]fact, r.length(minFact))
		for j := range g.items {
			g.items[j] = fact{
				Key(r.number(maxNumber)), uint32(r.number(maxCount)), uint32(r.number(maxCount)), r.millis(), r.millis(),
			}
		}
	}
	return m, r.end("what is known")
}

// writer writes numbers.
type writer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

func newWriter(header ...uint64) *writer {
	w := &writer{}
	w.enc = msgpack.NewEncoder(&w.buf)
	w.numbers(codecVersion)
	w.numbers(header...)
	return w
}

func (w *writer) numbers(all ...uint64) {
	for _, n := range all {
		w.enc.EncodeUint(n) // a bytes.Buffer never fails to take it
	}
}

// reader reads what writer wrote. After the first mistake it reads zeros.
type reader struct {
	in    *bytes.Reader
	dec   *msgpack.Decoder
	items int // that may still come, and groups
	err   error
}

func newReader(message []byte) *reader {
	in := bytes.NewReader(message)
	r := &reader{in: in, dec: msgpack.NewDecoder(in), items: maxItems + MaxSlots}
	if v := r.number(maxNumber); v != codecVersion && r.err == nil {
		r.err = fmt.Errorf("version %d instead of %d", v, codecVersion)
	}
	return r
}

func (r *reader) number(limit uint64) uint64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeUint64()
	if err == nil && n > limit {
		err = fmt.Errorf("%d is more than %d", n, limit)
	}
	if r.err = err; err != nil {
		return 0
	}
	return n
}

func (r *reader) millis() Millis { return Millis(r.number(uint64(maxAge))) }

// length reads how many elements come, of which each takes so many bytes at least.
func (r *reader) length(bytes int) int {
	n := int(r.number(uint64(r.items)))
	if n > r.in.Len()/bytes {
		r.err = fmt.Errorf("%d elements in %d bytes", n, r.in.Len())
		return 0
	}
	r.items -= n
	return n
}

func (r *reader) end(what string) error {
	if r.err == nil && r.in.Len() > 0 {
		r.err = fmt.Errorf("%d bytes behind the end", r.in.Len())
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrMalformed, r.err)
	}
	return nil
}
