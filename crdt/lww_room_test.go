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
				for _, p := range maps[1-i].Delta(maps[i].Digest(), 1<<30).Pieces {
					if _, err := maps[i].Apply(p, &clocks[i], now); err != nil {
						t.Fatalf("replica %d refuses what %d has taken: %v", i, 1-i, err)
					}
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
