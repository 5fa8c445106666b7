package packed

import (
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

type number uint64

func (n number) Hash() uint64 { h := uint64(n) * 0x9e3779b97f4a7c15; return h ^ h>>32 }

// same has many keys in few chains.
type same uint64

func (s same) Hash() uint64 { return uint64(s) % 3 }

// TestTableIsAMap has tables grow and shrink, and compares them with maps.
func TestTableIsAMap(t *testing.T) {
	for seed := range uint64(30) {
		compare[number](t, seed, 3000)
		compare[same](t, seed, 60)
	}
}

func compare[K interface {
	Key
	~uint64
}](t *testing.T, seed uint64, keys uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var table Table[K, int]
	want := map[K]int{}
	for i := range 20_000 {
		key := K(rng.Uint64N(keys))
		fill := i/4000%2 == 0 // in turn it grows, and shrinks to nothing or nearly
		switch v := table.Find(key); {
		case (v != nil) != (want[key] != 0) || v != nil && *v != want[key]:
			t.Fatalf("seed %d: key %d: found %v, want %d", seed, key, v, want[key])
		case fill == (rng.IntN(5) > 0):
			add := table.Add
			if v == nil && i%2 == 0 {
				add = table.AddNew
			}
			*add(key) = i + 1
			want[key] = i + 1
		default:
			_, known := want[key]
			if got := table.Delete(key); got != known {
				t.Fatalf("seed %d: deleted key %d: %v, want %v", seed, key, got, known)
			}
			delete(want, key)
		}
		if table.Len() != len(want) {
			t.Fatalf("seed %d: %d entries, want %d", seed, table.Len(), len(want))
		}
	}
	got := map[K]int{}
	for key, v := range table.All() {
		got[key] = *v
	}
	if !maps.Equal(got, want) {
		t.Fatalf("seed %d: all are %v, want %v", seed, got, want)
	}
	for key := range table.All() {
		table.Delete(key)
	}
	if table.Len() != 0 || table.pieces != nil {
		t.Errorf("seed %d: %d entries are left of which each was deleted", seed, table.Len())
	}
}

// TestRemoveKeepsATableDense: numbers go from one to the number of entries, each is found by its own, and what is left is
// as large as if the others had never come.
func TestRemoveKeepsATableDense(t *testing.T) {
	dense[number](t, 3000)
	dense[same](t, 60)
}

func dense[K interface {
	Key
	~uint64
}](t *testing.T, keys uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(keys, 1))
	var table Table[K, int]
	want := map[K]int{}
	for i := range 30_000 {
		key, fill := K(rng.Uint64N(keys)), i/6000%2 == 0
		n := table.Number(key)
		switch {
		case fill == (rng.IntN(5) > 0):
			*table.Add(key), want[key] = i+1, i+1
		case n != 0:
			last, of := uint32(table.Len()), K(0)
			if last != n {
				of, _ = table.At(last)
			}
			if got := table.Remove(n); got != last {
				t.Fatalf("the last entry had number %d, want %d", got, last)
			}
			if last != n && table.Number(of) != n {
				t.Fatalf("the last entry has number %d, want %d", table.Number(of), n)
			}
			delete(want, key)
		}
		if i%1000 != 999 && table.Len() > 0 {
			continue
		}
		got := map[K]int{}
		for key, v := range table.All() {
			if at := table.Find(key); at != v {
				t.Fatalf("key %d is found at %p, and is at %p", key, at, v)
			}
			got[key] = *v
		}
		if !maps.Equal(got, want) || table.Len() != len(want) {
			t.Fatalf("%d entries are %v, want %v", table.Len(), got, want)
		}
	}
	for table.Len() > 0 {
		if len(table.pieces) > table.Len()/pieceLen+2 || len(table.buckets) > table.Len()+1 || cap(table.buckets) > 4*table.Len()+4 {
			t.Fatalf("%d entries have %d pieces and %d buckets of %d", table.Len(), len(table.pieces), len(table.buckets), cap(table.buckets))
		}
		table.Remove(1 + uint32(rng.IntN(table.Len())))
	}
	if table.pieces != nil {
		t.Error("an empty table has memory")
	}
}

// TestAddKeepsWhatThereIs: Add of a key that is there returns its value.
func TestAddKeepsWhatThereIs(t *testing.T) {
	var table Table[number, int]
	*table.Add(7) = 1
	if got := *table.Add(7); got != 1 || table.Len() != 1 {
		t.Errorf("got %d of %d entries, want 1 of 1", got, table.Len())
	}
}

// TestOrderFollowsFromWhatWasDone: two tables with the same history yield alike.
func TestOrderFollowsFromWhatWasDone(t *testing.T) {
	keys := func() []number {
		var table Table[number, int]
		for i := range number(1000) {
			table.Add(i * 7 % 1009)
			table.Delete(i / 2)
		}
		var all []number
		for key := range table.All() {
			all = append(all, key)
		}
		return all
	}
	if !slices.Equal(keys(), keys()) {
		t.Error("the same writes lead to different orders")
	}
}

// TestEntriesTakeLittleMore than they are large, at any number of them.
func TestEntriesTakeLittleMore(t *testing.T) {
	for _, n := range []int{1000, 5000, 20_000, 33_000, 60_000} {
		each := math.Inf(1)
		for range 5 { // what else lives may grow meanwhile: the least is the table's own
			before := kept()
			var table Table[number, uint64]
			for i := range n {
				table.Add(number(i))
			}
			each = min(each, float64(kept()-before)/float64(n))
			runtime.KeepAlive(&table)
		}
		if each > 24+8 { // key, value, next with what aligns it, and a bucket with room to grow
			t.Errorf("%d entries take %.1f bytes each", n, each)
		}
	}
}

func kept() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC() // the first leaves what was pooled
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func BenchmarkTable(b *testing.B) {
	const n = 1 << 20
	var table Table[number, uint64]
	for i := range n {
		table.Add(number(i))
	}
	b.Run("find", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if table.Find(number(i*7919%n)) == nil {
				b.Fatal("lost")
			}
		}
	})
	b.Run("replace", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			table.Delete(number(i))
			table.Add(number(i + n))
		}
	})
}

func BenchmarkMap(b *testing.B) {
	const n = 1 << 20
	table := map[number]uint64{}
	for i := range n {
		table[number(i)] = 0
	}
	b.Run("find", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, ok := table[number(i*7919%n)]; !ok {
				b.Fatal("lost")
			}
		}
	})
	b.Run("replace", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			delete(table, number(i))
			table[number(i+n)] = 0
		}
	})
}
