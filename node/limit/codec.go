package limit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/ropeline/ropeline/crdt"
)

// What nodes send each other. Times are spans, so that clocks need not agree, but for when
// a message was sent: see lag.

// counted is what a node has counted and its receiver has not heard of.
type counted struct {
	boot   uint64 // of the receiver's start that it is for
	sent   Millis // by the clock of its sender
	seq    uint64 // one more than of the last one to the same node
	age    Millis // how long ago the oldest of it was counted
	rounds rounds // in which its sender noted it for others
	groups []group[count]
}

// known is what a node knows of keys.
type known struct {
	sent   Millis // by the clock of its sender
	seq    uint64 // of the counted that it answers; 0: of none
	turn   uint64 // of the asked that it answers; 0: of none
	next   uint64 // cursor of the asked that is to follow; 0: that was all
	heard  []mark // what is in it at most, of what nodes tell as counts; none: it is not said
	groups []group[fact]
}

// asked is a question for all that a node knows of the keys that its receiver owns, a piece at a time.
type asked struct {
	turn   uint64
	cursor uint64
	before []crdt.NodeID // nodes of the own site among which the one that asks was told before
	nodes  []crdt.NodeID // those among which it is to be told
}

// rounds are the first and the last of some rounds in which a node notes for others what it has counted.
type rounds struct{ first, last uint64 }

// mark says up to which round a node has been heard.
type mark struct {
	node  crdt.NodeID
	boot  uint64
	round uint64
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
	codecVersion = 2

	// maxItems is how many keys one message has at most: with every number at its
	// longest it stays below the 256 KiB that a message may have.
	maxItems = 5000

	minCount, minFact = 2, 5 // bytes, one for each number
	minGroup          = 3
	minNode, minMark  = 2, 4

	// maxHeard is how many nodes one message names at most.
	maxHeard  = 1000
	maxNumber = 1<<64 - 1
	maxCount  = 1<<32 - 1
	maxTime   = 1 << 48 // of a clock, in milliseconds

	// maxAge is the longest span that is told: who was at the limit when a period began may
	// have to wait until the end of the next one.
	maxAge = Millis(2 * MaxPeriod / 1e6)
)

// ErrMalformed is wrapped by every error of decoding.
var ErrMalformed = errors.New("malformed message")

func (m *counted) encode() []byte {
	w := newWriter(m.boot, uint64(m.sent), m.seq, uint64(m.age), m.rounds.first, m.rounds.last, uint64(len(m.groups)))
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
	m.rounds = rounds{r.number(maxNumber), r.number(maxNumber)}
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
	w := newWriter(uint64(m.sent), m.seq, m.turn, m.next, uint64(len(m.heard)))
	for _, h := range m.heard {
		w.node(h.node)
		w.numbers(h.boot, h.round)
	}
	w.numbers(uint64(len(m.groups)))
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
	m.sent, m.seq, m.turn, m.next = Millis(r.number(maxTime)), r.number(maxNumber), r.number(maxNumber), r.number(maxNumber)
	if n := r.length(minMark); n > 0 {
		m.heard = make([]mark, n)
	}
	for i := range m.heard {
		m.heard[i] = mark{r.node(), r.number(maxNumber), r.number(maxNumber)}
	}
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

func (m *asked) encode() []byte {
	w := newWriter(m.turn, m.cursor)
	for _, ids := range [...][]crdt.NodeID{m.before, m.nodes} {
		w.numbers(uint64(len(ids)))
		for _, id := range ids {
			w.node(id)
		}
	}
	return w.buf.Bytes()
}

func decodeAsked(message []byte) (m asked, err error) {
	r := newReader(message)
	m.turn, m.cursor = r.number(maxNumber), r.number(maxNumber)
	for _, ids := range [...]*[]crdt.NodeID{&m.before, &m.nodes} {
		for range r.length(minNode) {
			*ids = append(*ids, r.node())
		}
	}
	return m, r.end("a question")
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

func (w *writer) node(id crdt.NodeID) {
	w.numbers(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
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
	r := &reader{in: in, dec: msgpack.NewDecoder(in), items: maxItems + MaxSlots + maxHeard}
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

func (r *reader) node() (id crdt.NodeID) {
	binary.BigEndian.PutUint64(id[:8], r.number(maxNumber))
	binary.BigEndian.PutUint64(id[8:], r.number(maxNumber))
	return id
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
