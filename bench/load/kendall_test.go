package load

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// kendallPlain is the definition, pair by pair.
func kendallPlain(ranks []rank) float64 {
	against, pairs := 0, 0
	for i, a := range ranks {
		for _, b := range ranks[:i] {
			pairs++
			if (a.first < b.first && a.second > b.second) || (a.first > b.first && a.second < b.second) {
				against++
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return float64(against) / float64(pairs)
}

func TestKendallAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few values, so that ties are common.
		ranks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rank {
			return rank{rapid.Int64Range(-3, 8).Draw(t, "first"), rapid.Int64Range(-3, 8).Draw(t, "second")}
		}), 0, 40).Draw(t, "ranks")
		want := kendallPlain(ranks)
		if got := kendall(ranks); math.Abs(got-want) > 1e-12 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestKendallKnown(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks []rank
		want  float64
	}{
		{"none", nil, 0},
		{"one", []rank{{1, 1}}, 0},
		{"same order", []rank{{1, 10}, {2, 20}, {3, 30}}, 0},
		{"reverse", []rank{{1, 30}, {2, 20}, {3, 10}}, 1},
		{"one swap", []rank{{1, 20}, {2, 10}, {3, 30}, {4, 40}}, 1.0 / 6},
		{"came together", []rank{{1, 30}, {1, 20}, {1, 10}}, 0},
		{"let in together", []rank{{3, 5}, {2, 5}, {1, 5}}, 0},
		{"never let in, came last", []rank{{1, 10}, {2, 20}, {3, math.MaxInt64}}, 0},
		{"never let in, came first", []rank{{1, math.MaxInt64}, {2, 20}, {3, 30}}, 2.0 / 3},
	} {
		if got := kendall(tc.ranks); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestPeakAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
			from := rapid.Int64Range(0, 20).Draw(t, "from")
			return span{from: duration(from), to: duration(from + rapid.Int64Range(1, 9).Draw(t, "length"))}
		}), 0, 30).Draw(t, "spans")
		want := 0
		for _, at := range spans { // the most is reached where some span begins
			n := 0
			for _, s := range spans {
				if s.from <= at.from && at.from < s.to {
					n++
				}
			}
			want = max(want, n)
		}
		if got := peak(spans); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}

func BenchmarkKendall(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	source := make([]rank, 100_000)
	for i := range source {
		source[i] = rank{int64(i), int64(i) + rng.Int64N(1000)}
	}
	ranks := make([]rank, len(source))
	b.ReportAllocs()
	for b.Loop() {
		copy(ranks, source)
		kendall(ranks)
	}
}
