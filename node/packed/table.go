// Package packed holds tables of many small entries of fixed size, in as little memory as
// they can do with: no pointers but those to the pieces that they lie in, no room to spare
// for growth, and none of the long pauses that copying a large table takes.
//
// Entries lie in pieces, in the order in which they were added, and places of those that are
// gone are used again. They are found by linear hashing (Litwin, 1980): there are as many
// buckets as entries, each the head of a chain, and with each entry that comes one bucket is
// split in two. So an entry takes its own size and eight bytes.
package packed

import (
	"iter"
	"math"
	"math/bits"
	"slices"
)

// Key is what entries are found by. Hash has to spread keys evenly over its low bits, and to
// be the same in every run: who chooses keys can make chains long, so they have to be
// nobody's choice.
type Key interface {
	comparable
	Hash() uint64
}

// Table maps keys to values. The zero value is empty and takes no memory beyond itself. It
// is not safe for concurrent use.
//
// A table from which entries are taken by Delete gives memory back only when it is empty, one from which they are
// taken by Remove always.
type Table[K Key, V any] struct {
	buckets []uint32 // the first entry of each chain, counted from 1; 0: there is none
	pieces  [][]entry[K, V]
	used    uint32 // entries that have been in use, from the first on
	free    uint32 // the first that is no more in use, chained by next and counted from 1
	len     int
}

// entry has next between key and value: a key that ends on half a word leaves room for it.
type entry[K Key, V any] struct {
	key   K
	next  uint32 // of the chain, counted from 1; 0: it is the last
	value V
}

// pieceLen is how many entries lie in one piece. The first grows up to that.
const pieceLen = 256

// Max is how many entries a table has at most; one more would panic.
const Max = math.MaxUint32 - 1

// Len returns how many entries there are.
func (t *Table[K, V]) Len() int { return t.len }

func (t *Table[K, V]) at(i uint32) *entry[K, V] {
	i--
	return &t.pieces[i/pieceLen][i%pieceLen]
}

// bucket returns where the chain of a hash begins. There has to be a bucket.
func (t *Table[K, V]) bucket(hash uint64) *uint32 {
	n := uint64(len(t.buckets))
	size := uint64(1) << bits.Len64(n-1)
	b := hash & (size - 1)
	if b >= n {
		b -= size / 2 // is not split yet
	}
	return &t.buckets[b]
}

// Number returns the number of a key's entry, by which it is found at once, and which it
// keeps until it is deleted; 0: there is none.
func (t *Table[K, V]) Number(key K) uint32 {
	if t.len == 0 {
		return 0
	}
	for i := *t.bucket(key.Hash()); i != 0; {
		e := t.at(i)
		if e.key == key {
			return i
		}
		i = e.next
	}
	return 0
}

// At returns the entry of a number. The value may be changed, and is good until the next
// Add or Delete.
func (t *Table[K, V]) At(number uint32) (K, *V) {
	e := t.at(number)
	return e.key, &e.value
}

// Find returns the value of a key; nil: there is none. It may be changed, and is good until
// the next Add or Delete.
func (t *Table[K, V]) Find(key K) *V {
	if i := t.Number(key); i != 0 {
		return &t.at(i).value
	}
	return nil
}

// Add returns the value of a key, which is zero if there was none.
func (t *Table[K, V]) Add(key K) *V { return &t.at(t.AddNumber(key)).value }

// AddNew returns the value, which is zero, of a key that is known not to be in the table:
// it is not looked for.
func (t *Table[K, V]) AddNew(key K) *V { return &t.at(t.addNew(key)).value }

// AddNumber is Add, and returns the number of the entry.
func (t *Table[K, V]) AddNumber(key K) uint32 {
	if i := t.Number(key); i != 0 {
		return i
	}
	return t.addNew(key)
}

func (t *Table[K, V]) addNew(key K) uint32 {
	t.split()
	i := t.place()
	t.len++
	b := t.bucket(key.Hash())
	e := t.at(i)
	*e = entry[K, V]{key: key, next: *b}
	*b = i
	return i
}

// place returns the number of an entry that is not in use.
func (t *Table[K, V]) place() uint32 {
	if i := t.free; i != 0 {
		t.free = t.at(i).next
		return i
	}
	if t.used == Max {
		panic("packed: the table is full")
	}
	i := int(t.used / pieceLen)
	switch {
	case i < len(t.pieces):
		if p := t.pieces[i]; len(p) == cap(p) {
			p = slices.Grow(p, min(len(p), pieceLen-len(p))) // the first piece
			t.pieces[i] = p[:len(p):min(cap(p), pieceLen)]
		}
	case i == 0:
		t.pieces = append(t.pieces, make([]entry[K, V], 0, 1))
	default:
		t.pieces = append(t.pieces, make([]entry[K, V], 0, pieceLen))
	}
	t.pieces[i] = append(t.pieces[i], entry[K, V]{})
	t.used++
	return t.used
}

// split makes one bucket more, and moves there what belongs there.
func (t *Table[K, V]) split() {
	if len(t.buckets) > t.len {
		return
	}
	n := uint64(len(t.buckets))
	t.buckets = append(t.buckets, 0)
	if n == 0 {
		return
	}
	half := uint64(1) << (bits.Len64(n) - 1)
	from, to := &t.buckets[n-half], &t.buckets[n]
	for i := *from; i != 0; i = *from {
		e := t.at(i)
		if e.key.Hash()&(2*half-1) != n {
			from = &e.next
			continue
		}
		*from, *to, e.next = e.next, i, *to
	}
}

// Delete removes a key, and reports whether it was there.
func (t *Table[K, V]) Delete(key K) bool {
	i := t.Number(key)
	if i == 0 {
		return false
	}
	e := t.unlink(i)
	*e = entry[K, V]{next: t.free}
	t.free = i
	if t.len == 0 {
		*t = Table[K, V]{}
	}
	return true
}

// Remove is Delete of the entry of a number. The last entry, of which it returns the number, has that number now, and
// the memory that is not needed any more is given back. It is for tables of which nothing is deleted otherwise.
func (t *Table[K, V]) Remove(number uint32) (last uint32) {
	e := t.unlink(number)
	if last = t.used; last != number {
		is := t.at(last)
		*t.pointer(is.key, last) = number
		*e = *is
	}
	if t.used--; t.used == 0 {
		*t = Table[K, V]{}
		return last
	}
	piece, at := int(t.used/pieceLen), t.used%pieceLen
	clear(t.pieces[piece][at:])
	t.pieces[piece] = t.pieces[piece][:at]
	if spare := piece + 1; spare < len(t.pieces) && at < pieceLen/2 { // not at once: some entries that come and go shall not cost a piece each time
		t.pieces[spare] = nil
		t.pieces = t.pieces[:spare]
	}
	t.join()
	return last
}

// unlink takes an entry out of its chain.
func (t *Table[K, V]) unlink(i uint32) *entry[K, V] {
	e := t.at(i)
	*t.pointer(e.key, i) = e.next
	t.len--
	return e
}

// pointer returns what points to the entry of a key.
func (t *Table[K, V]) pointer(key K, i uint32) *uint32 {
	at := t.bucket(key.Hash())
	for *at != i {
		at = &t.at(*at).next
	}
	return at
}

// join is split the other way round.
func (t *Table[K, V]) join() {
	n := uint64(len(t.buckets)) - 1
	if n <= uint64(t.len) {
		return
	}
	if chain := t.buckets[n]; chain != 0 {
		half := uint64(1) << (bits.Len64(n) - 1)
		end := &t.buckets[n-half]
		for *end != 0 {
			end = &t.at(*end).next
		}
		*end = chain
	}
	if t.buckets = t.buckets[:n]; n < uint64(cap(t.buckets)/4) {
		t.buckets = slices.Clone(t.buckets)
	}
}

// All yields all entries, in an order that depends on what was done with the table alone.
// What was yielded may be deleted meanwhile by Delete, and nothing else; nothing may be removed or added.
func (t *Table[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for b := 0; b < len(t.buckets); b++ {
			for i := t.buckets[b]; i != 0; {
				e := t.at(i)
				i = e.next
				if !yield(e.key, &e.value) {
					return
				}
			}
		}
	}
}
