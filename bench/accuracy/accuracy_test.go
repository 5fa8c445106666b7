package accuracy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ropeline/ropeline/node/limit"
)

func TestExactIsTheSlidingCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const period = 1000
	var e exact
	var all []limit.Millis
	at := limit.Millis(0)
	for range 20_000 {
		at += limit.Millis(rng.ExpFloat64() * 20)
		if rng.IntN(500) == 0 {
			at += 2 * period
		}
		all = append(all, at)
		want := 0
		for _, a := range slices.Backward(all) {
			if at-a >= period {
				break
			}
			want++
		}
		if got := e.count(at, period); got != want {
			t.Fatalf("at %d: got %d, want %d", at, got, want)
		}
	}
}

// Streams of which it is known what is wrong about them.
func TestMeasure(t *testing.T) {
	type request struct {
		source   int
		at       limit.Millis
		estimate float64
	}
	all := []request{
		{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, // right
		{1, 3, 1}, {1, 4, 3}, // one that is refused too early
		{2, 5, 1}, {2, 6, 2}, {2, 7, 2}, {2, 8, 2}, // two that are let pass
	}
	i := 0
	a := measureAll(1000, []int{2}, 3, func(each func(int, limit.Millis)) {
		for _, r := range all {
			each(r.source, r.at)
		}
	}, func(int, limit.Millis) float64 { i++; return all[i-1].estimate })
	want := against{Limit: 2, Allowed: 2, Refused: 1, Over: 2, Found: 1, Missed: 1, WorstMissed: 1, FalsePositives: 1}
	if a.Limits[0] != want {
		t.Errorf("got %+v, want %+v", a.Limits[0], want)
	}
	if got, want := a.MeanDifference, (0.5+1.0/3+0.5)/9; math.Abs(got-want) > 1e-12 {
		t.Errorf("got a mean difference of %v, want %v", got, want)
	}
}

// A crowd asks as often as it should, and a few of it do most of that.
func TestCrowd(t *testing.T) {
	for _, spell := range []limit.Millis{0, 20_000} {
		c := crowd{Sources: 2000, Requests: 400_000, Span: 600_000, Spell: spell, Tail: 1.2, Seed: 3}
		by := make([]int, c.Sources)
		last := make([]limit.Millis, c.Sources)
		total, slots := 0, 0
		c.walk(func(limit.Millis) { slots++ }, func(s int, at limit.Millis) {
			if at < last[s] || at >= c.Span || at/slot != limit.Millis(slots-1) {
				t.Fatalf("source %d asks at %d, after %d, in slot %d", s, at, last[s], slots)
			}
			last[s] = at
			by[s]++
			total++
		})
		if total < c.Requests*8/10 || total > c.Requests*12/10 || slots != int(c.Span/slot) {
			t.Errorf("got %d requests in %d slots", total, slots)
		}
		slices.Sort(by)
		top := 0
		for _, n := range by[c.Sources-c.Sources/100:] {
			top += n
		}
		if top < total/5 {
			t.Errorf("the busiest hundredth of sources asks %d of %d times; want a fifth at least", top, total)
		}
	}
}

// The estimates of one node, and of many, are near what is true.
func TestEstimates(t *testing.T) {
	for _, sites := range [][]int{{1}, {2, 2}} {
		c := crowd{Sources: 500, Requests: 200_000, Span: 400_000, Spell: 60_000, Tail: 1.2, Seed: 1}
		e, err := newEstimates(sites, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		a := measureAll(limit.Millis(period.Milliseconds()), []int{1000}, c.Sources, func(each func(int, limit.Millis)) { c.walk(e.pass, each) }, e.count)
		if a.MeanDifference > 0.2 || a.Limits[0].FalsePositives > 0 || a.Limits[0].Found == 0 {
			t.Errorf("%v: got %+v", sites, a)
		}
	}
}
