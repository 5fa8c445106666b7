package limit

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// million is a table with a million live keys, and those.
func million(b testing.TB) (*Table, []Key, *Terms) {
	t := NewTable(64 << 20)
	r := &Terms{Period: 60_000, Requests: 1 << 30}
	t.Use(r)
	keys := make([]Key, 1_000_000)
	for i := range keys {
		keys[i] = Key(rand.Uint64())
		t.Take(keys[i], r, start)
	}
	keys = slices.DeleteFunc(keys, func(k Key) bool { // those few that gave way
		e, _ := t.find(k)
		return e == nil
	})
	if len(keys) < 999_000 {
		b.Fatalf("only %d keys are live", len(keys))
	}
	return t, keys, r
}

func BenchmarkTake(b *testing.B) {
	for _, of := range []int{1, 10_000, 1_000_000} {
		b.Run("keys="+strconv.Itoa(of), func(b *testing.B) {
			t, keys, r := million(b)
			keys = keys[:min(of, len(keys))]
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if t.Take(keys[i], r, start+1000).Limited {
					b.Fatal("a key is limited")
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

func BenchmarkTakeLimited(b *testing.B) {
	for _, of := range []int{1, 10_000, 1_000_000} {
		b.Run("keys="+strconv.Itoa(of), func(b *testing.B) {
			t, keys, r := million(b)
			few := *r
			few.Requests, few.Timeout = 1, 3_600_000
			keys = keys[:min(of, len(keys))]
			for _, k := range keys {
				t.Count(k, &few, start)
				t.Take(k, &few, start)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !t.Take(keys[i], &few, start+1000).Limited {
					b.Fatal("a key is not limited")
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}
