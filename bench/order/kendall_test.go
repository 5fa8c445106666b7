package order

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// kendallPlain is the definition, pair by pair.
func kendallPlain(ranks []Rank) float64 {
	against, pairs := 0, 0
	for i, a := range ranks {
		for _, b := range ranks[:i] {
			pairs++
			if (a.First < b.First && a.Second > b.Second) || (a.First > b.First && a.Second < b.Second) {
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
		ranks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Rank {
			return Rank{rapid.Int64Range(-3, 8).Draw(t, "first"), rapid.Int64Range(-3, 8).Draw(t, "second")}
		}), 0, 40).Draw(t, "ranks")
		want := kendallPlain(ranks)
		if got := Error(ranks); math.Abs(got-want) > 1e-12 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestKendallKnown(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks []Rank
		want  float64
	}{
		{"none", nil, 0},
		{"one", []Rank{{1, 1}}, 0},
		{"same order", []Rank{{1, 10}, {2, 20}, {3, 30}}, 0},
		{"reverse", []Rank{{1, 30}, {2, 20}, {3, 10}}, 1},
		{"one swap", []Rank{{1, 20}, {2, 10}, {3, 30}, {4, 40}}, 1.0 / 6},
		{"came together", []Rank{{1, 30}, {1, 20}, {1, 10}}, 0},
		{"let in together", []Rank{{3, 5}, {2, 5}, {1, 5}}, 0},
		{"never let in, came last", []Rank{{1, 10}, {2, 20}, {3, math.MaxInt64}}, 0},
		{"never let in, came first", []Rank{{1, math.MaxInt64}, {2, 20}, {3, 30}}, 2.0 / 3},
	} {
		if got := Error(tc.ranks); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func BenchmarkKendall(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	source := make([]Rank, 100_000)
	for i := range source {
		source[i] = Rank{int64(i), int64(i) + rng.Int64N(1000)}
	}
	ranks := make([]Rank, len(source))
	b.ReportAllocs()
	for b.Loop() {
		copy(ranks, source)
		Error(ranks)
	}
}
