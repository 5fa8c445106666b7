package setassoc

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// FuzzTable compares a table with a list of all keys of each set, last used first. When the
// priority is the time of the last use, a set of n slots holds the first n of its list. Each
// byte is a key that is used.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 0, 4, 8, 12, 16, 0, 4}, uint8(3))
	f.Add([]byte("\x00\x01\x02\x03\x10\x11\x12\x13\x00\x01\x02\x03"), uint8(0))
	f.Add([]byte("the quick brown fox jumps over the lazy dog"), uint8(7))
	f.Fuzz(func(t *testing.T, keys []byte, n uint8) {
		const sets = 4
		ways := int(n%8) + 1
		table := New[int](sets, ways, 2)
		var used [sets][]byte
		uses := map[byte]int{} // since the key is in the table
		for i, key := range keys {
			list := &used[key%sets]
			at := slices.Index(*list, key)
			if at >= ways || at < 0 {
				uses[key] = 0
			}
			if at >= 0 {
				*list = slices.Delete(*list, at, at+1)
			}
			*list = slices.Insert(*list, 0, key)

			s, mu := table.Lock(uint64(key))
			if s.Value != uses[key] {
				t.Fatalf("use %d, key %d, %d ways: got %d uses, want %d", i, key, ways, s.Value, uses[key])
			}
			s.Value++
			s.Priority = int64(i) + 1
			mu.Unlock()
			uses[key]++
		}
	})
}

// TestLowestPriorityIsEvicted fills one set with random priorities, and has one new key come
// with the highest: all but one are still there.
func TestLowestPriorityIsEvicted(t *testing.T) {
	const sets, ways = 16, 8
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 1000 {
		table := New[bool](sets, ways, 4)
		priorities := r.Perm(ways)
		key := func(i int) uint64 { return uint64(1+i)*sets + 5 }
		for i := range ways + 1 {
			s, mu := table.Lock(key(i))
			if s.Value {
				t.Fatalf("round %d: key %d is there before it came", round, i)
			}
			s.Value, s.Priority = true, math.MaxInt64
			if i < ways {
				s.Priority = 1 + int64(priorities[i])
			}
			mu.Unlock()
		}
		for p := ways - 1; p >= 0; p-- { // the lowest last: asking for it evicts another
			s, mu := table.Lock(key(slices.Index(priorities, p)))
			if s.Value != (p > 0) {
				t.Errorf("round %d: the key with priority %d of %v is there: %v", round, p, priorities, s.Value)
			}
			mu.Unlock()
		}
	}
}

// TestConcurrentUsesAreAllCounted has goroutines count the same keys, as many as there are slots.
func TestConcurrentUsesAreAllCounted(t *testing.T) {
	const sets, ways, goroutines, rounds = 8, 4, 4, 200
	table := New[int](sets, ways, 2)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				for key := range uint64(sets * ways) {
					s, mu := table.Lock(key)
					s.Value++
					s.Priority = 1
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for key := range uint64(sets * ways) {
		s, mu := table.Lock(key)
		if s.Value != goroutines*rounds {
			t.Errorf("key %d: got %d uses, want %d", key, s.Value, goroutines*rounds)
		}
		mu.Unlock()
	}
}

// TestSetsAreLockedApart looks at which lock guards each set, and whether it is held.
func TestSetsAreLockedApart(t *testing.T) {
	const sets, locks = 16, 4
	table := New[int](sets, 2, locks)
	guards := map[*sync.Mutex]int{}
	for set := range uint64(sets) {
		_, mu := table.Lock(set)
		if mu.TryLock() {
			t.Fatalf("the lock of set %d is not held", set)
		}
		mu.Unlock()
		guards[mu]++
	}
	for _, n := range guards {
		if n != sets/locks {
			t.Errorf("a lock guards %d sets, want %d", n, sets/locks)
		}
	}
}

// TestSizes holds that a slot is no larger than its parts, and that a lock fills a cache line.
func TestSizes(t *testing.T) {
	if a, b, c := unsafe.Sizeof(Slot[struct{}]{}), unsafe.Sizeof(Slot[[6]uint64]{}), unsafe.Sizeof(lock{}); a != 16 || b != 64 || c != 64 {
		t.Errorf("a slot takes %d bytes without a value and %d with 48, and a lock %d, want 16, 64 and 64", a, b, c)
	}
	table := New[struct{}](8, 4, 2)
	if len(table.slots) != 32 || len(table.locks) != 2 {
		t.Errorf("got %d slots and %d locks, want 32 and 2", len(table.slots), len(table.locks))
	}
}

func TestNewRefusesOtherSizes(t *testing.T) {
	for _, n := range [][3]int{{0, 1, 1}, {3, 1, 1}, {1, 0, 1}, {1, 1, 0}, {4, 1, 3}, {-8, 1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d sets, %d ways, %d locks: got a table", n[0], n[1], n[2])
				}
			}()
			New[int](n[0], n[1], n[2])
		}()
	}
}
