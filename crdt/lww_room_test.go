package crdt

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestWhatIsTakenHereIsTakenByAll fills maps to the brim, by their bytes and by their keys, with two
// replicas that write at once, and hear of each other now and then: whatever one takes, the other takes, and what is written again goes
// on to be taken by both.
func TestWhatIsTakenHereIsTakenByAll(t *testing.T) {
	for name, c := range map[string]struct{ value, first, every int }{"bytes": {60 << 10, 950, 7}, "keys": {0, MaxKeys - 16_000, 2000}} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			var maps [2]LWW
			var clocks [2]Clock
			set := func(i int, key string, value []byte) error {
				return maps[i].Set(key, value, clocks[i].Now(now, NodeID{byte(i + 1)}))
			}
			hear := func(i int) {
				t.Helper()
				if err := maps[i].hear(maps[1-i].Delta(maps[i].Digest(), 1<<30), &clocks[i], now); err != nil {
					t.Fatalf("replica %d refuses what %d has taken: %v", i, 1-i, err)
				}
			}
			for i := range maps {
				if err := set(i, fmt.Sprintf("limit/%d", i), []byte("40")); err != nil {
					t.Fatal(err)
				}
			}
			for n := range c.first {
				if err := set(0, fmt.Sprintf("first/%d", n), make([]byte, c.value)); err != nil {
					t.Fatal(err)
				}
			}
			hear(1)
			refused := [2]bool{}
			for n := 0; !refused[0] || !refused[1]; n++ {
				for i := range maps {
					if err := set(i, fmt.Sprintf("%d/%d", i, n), make([]byte, c.value)); errors.Is(err, ErrFull) {
						refused[i] = true
					} else if err != nil {
						t.Fatal(err)
					}
				}
				if n%c.every == c.every-1 {
					hear(0)
					hear(1)
				}
			}
			for i := range maps {
				if err := set(i, fmt.Sprintf("limit/%d", i), []byte("600")); err != nil {
					t.Errorf("a value that is longer by a byte: %v", err)
				}
			}
			hear(0)
			hear(1)
			for i := range maps {
				if got, _, _ := maps[i].Get(fmt.Sprintf("limit/%d", 1-i)); string(got) != "600" {
					t.Errorf("replica %d has %q, want 600", i, got)
				}
			}
		})
	}
}

// TestOneKindOfWritesKeepsNoOtherOut fills a map with what is new, then with facts, then with changes:
// each leaves room for those after it, and what is there can be written again and deleted all the time.
func TestOneKindOfWritesKeepsNoOtherOut(t *testing.T) {
	for name, c := range map[string]struct {
		value int
		first int
	}{"keys": {1, MaxKeys - 10}, "bytes": {30 << 10, 1800}} {
		t.Run(name, func(t *testing.T) {
			var m LWW
			var clock Clock
			now := time.Unix(1_700_000_000, 0)
			next := func() Stamp { return clock.Now(now, NodeID{1}) }
			n := 0
			add := func(as Weight) error {
				n++
				return m.SetAll([]Write{{Key: fmt.Sprintf("key/%032x", n), Value: make([]byte, c.value)}}, as, next)
			}
			for range c.first {
				if err := add(New); err != nil {
					t.Fatal(err)
				}
			}
			for _, as := range []Weight{New, Fact, Change} {
				taken := 0
				var err error
				for ; err == nil && taken < 1<<15; taken++ {
					err = add(as)
				}
				if !errors.Is(err, ErrFull) || taken < 5 || add(as) == nil {
					t.Errorf("%d more of weight %d are taken, then %v", taken-1, as, err)
				}
				for _, value := range [][]byte{make([]byte, c.value), make([]byte, c.value+1), nil} {
					if err := m.SetAll([]Write{{Key: fmt.Sprintf("key/%032x", 1+as), Value: value}}, New, next); err != nil {
						t.Errorf("of weight %d there is no room for more, and a key that is there cannot be made %d bytes long: %v", as, len(value), err)
					}
				}
			}
		})
	}
}
