package ticket

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// minRange is the least that one range takes: an id and four numbers.
const minRange = 2 + 16 + 4

// ranges writes how many ranges there are, at most MaxBatch, and of each the
// anchor, boot, block, first and how many.
func (w writer) ranges(all []Range) {
	if len(all) > MaxBatch {
		panic(fmt.Sprintf("ticket: message of %d ranges, at most %d fit", len(all), MaxBatch))
	}
	w.keep(w.enc.EncodeArrayLen(len(all)))
	for _, g := range all {
		w.keep(w.enc.EncodeBytes(g.Anchor[:]))
		w.number(g.Boot)
		w.number(uint64(g.Block))
		w.span(g.First, g.N)
	}
}

// ranges reads what ranges wrote.
func (r *reader) ranges() []Range {
	n := r.items(minRange)
	if n == 0 {
		return nil
	}
	all := make([]Range, n)
	for i := range all {
		g := &all[i]
		r.id(g.Anchor[:])
		g.Boot = r.number(math.MaxUint64)
		g.Block = uint32(r.number(math.MaxUint32))
		g.First, g.N = r.span()
	}
	return all
}

// span writes n successive ticket numbers.
func (w writer) span(first, n uint64) {
	w.number(first)
	w.number(n)
}

// span reads at least one and at most 2^40 successive ticket numbers, none of
// which wraps, nor do sums of as many as fit into a message.
func (r *reader) span() (first, n uint64) {
	first = r.number(math.MaxUint64)
	n = r.number(maxSpan)
	if r.err == nil && (n == 0 || first > math.MaxUint64-n) {
		r.fail("%d tickets from %d on", n, first)
	}
	return first, n
}

const maxSpan = 1 << 40

// session writes how long a session lasts, in ms.
func (w writer) session(d time.Duration) {
	w.number(min(uint64(max(0, d).Milliseconds()), maxAge))
}

func (r *reader) session() time.Duration {
	return time.Duration(r.number(maxAge)) * time.Millisecond
}

// total returns how many tickets ranges hold.
func total(all []Range) (n uint64) {
	for _, g := range all {
		n += g.N
	}
	return n
}

// incarnation writes a node and its boot number.
func (w writer) incarnation(id crdt.Incarnation) {
	w.keep(w.enc.EncodeBytes(id.Node[:]))
	w.number(id.Boot)
}

func (r *reader) incarnation() (id crdt.Incarnation) {
	r.id(id.Node[:])
	id.Boot = r.number(math.MaxUint64)
	return id
}
