// Package setassoc holds set-associative tables: they remember something about some keys, take
// a fixed amount of memory, and forget keys to make room for others. They are for facts that may
// be lost, about keys that anybody on the internet can bring any number of: a map would grow
// with a flood of keys, and an exact LRU list needs pointers and one lock for all.
//
// As in the cache of a processor, a key belongs to one set of a few slots. It can be found only
// there, and only the keys of that set compete for its slots: the one with the lowest priority
// is evicted. So a lookup reads one set, whatever the table holds, and sets are locked apart.
package setassoc

import (
	"fmt"
	"sync"
)

// Slot is what a table holds of one key. Its fields may be used while its lock is held.
type Slot[V any] struct {
	key   uint64
	Value V // in the middle, as Go pads a struct that ends with an empty one

	// Priority decides who is evicted: of the keys of a full set, the one with the lowest. A
	// new key has 0, and its user has to set it, or the next new key evicts it.
	Priority int64
}

// Table maps keys to slots. Keys have to be evenly spread over their low bits, and nobody
// outside may choose them: whoever can fill one set makes it forget. The zero value is not
// usable; see New.
//
// A table is safe for concurrent use.
type Table[V any] struct {
	locks []lock
	slots []Slot[V] // those of one set are neighbours
	sets  uint64
	ways  uint64
}

// lock guards every set whose number is the same modulo the number of locks.
type lock struct {
	sync.Mutex
	_ [56]byte // a cache line for each, so that cores do not slow each other down
}

// New returns an empty table of so many sets, each of so many slots (ways). More locks let
// more goroutines in at a time, and take 64 bytes each. Sets and locks have to be powers of 2.
func New[V any](sets, ways, locks int) *Table[V] {
	if !isPowerOf2(sets) || !isPowerOf2(locks) || ways < 1 {
		panic(fmt.Sprintf("setassoc: %d sets, %d ways, %d locks: sets and locks have to be powers of 2, and ways at least 1", sets, ways, locks))
	}
	return &Table[V]{locks: make([]lock, locks), slots: make([]Slot[V], sets*ways), sets: uint64(sets), ways: uint64(ways)}
}

func isPowerOf2(n int) bool { return n > 0 && n&(n-1) == 0 }

// Lock returns the slot of a key and the lock that guards it, which is held: unlock it as soon
// as possible. A key that the table does not hold gets a zero slot, for which another may be
// evicted.
//
// It takes no callback, and asks no method of V for the priority, because each of these is an
// indirect call, and a flood of new keys would make one for each slot of a set.
func (t *Table[V]) Lock(key uint64) (*Slot[V], *sync.Mutex) {
	n := key & (t.sets - 1)
	mu := &t.locks[n&uint64(len(t.locks)-1)].Mutex
	mu.Lock()
	set := t.slots[n*t.ways:][:t.ways]
	lowest := &set[0]
	for i := range set {
		s := &set[i]
		if s.key == key {
			return s, mu
		}
		if s.Priority < lowest.Priority {
			lowest = s
		}
	}
	*lowest = Slot[V]{key: key}
	return lowest, mu
}
