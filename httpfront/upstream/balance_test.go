package upstream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_800_000_000, 0)

func weights(ws ...int64) []member {
	ms := make([]member, len(ws))
	for i, w := range ws {
		ms[i].weight = w
	}
	return ms
}

// order returns the next n choices as letters.
func order(ms []member, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(choose(ms, start, time.Second, 0, 0))
	}
	return string(b)
}

func TestTurnsAreSmooth(t *testing.T) {
	for want, of := range map[string][]int64{
		"aaa": {1}, "abcabc": {1, 1, 1}, "babbab": {1, 2}, "ababa": {3, 2},
		"aabacaa" + "aabacaa": {5, 1, 1}, // as in the commit that describes it
	} {
		equal(t, fmt.Sprint("weights ", of), order(weights(of...), len(want)), want)
	}
}

func drawMembers(t *rapid.T) []member {
	return weights(rapid.SliceOfN(rapid.Int64Range(1, 20), 1, 8).Draw(t, "weights")...)
}

// TestWeightsAreKeptExactly counts one whole round.
func TestWeightsAreKeptExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMembers(t)
		total := 0
		for _, m := range ms {
			total += int(m.weight)
		}
		chosen := order(ms, total)
		for i, m := range ms {
			if n := strings.Count(chosen, string(rune('a'+i))); n != int(m.weight) || m.current != 0 {
				t.Fatalf("origin %d of weight %d was chosen %d times of %d and is left with %d", i, m.weight, n, total, m.current)
			}
		}
	})
}

// TestChoicePrefersWhatIsBest draws what is out, full and tried.
func TestChoicePrefersWhatIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMembers(t)
		all := indexes(1)<<len(ms) - 1
		set := func(name string) indexes { return indexes(rapid.Uint64().Draw(t, name)) & all }
		tried, full, down, ejected, due := set("tried"), set("full"), set("down"), set("ejected"), set("due")
		for i := range ms {
			ms[i].ejection = time.Second
			ms[i].down = down.has(i)
			if ejected.has(i) {
				ms[i].until = start.Add(time.Nanosecond)
			}
			if due.has(i) {
				ms[i].until = start
			}
		}
		out := (down | ejected&^due)
		i := choose(ms, start, time.Second, tried, full)
		worse := []indexes{tried, out, full} // the worst first
		rank := func(i int) int {
			if at := slices.IndexFunc(worse, func(set indexes) bool { return set.has(i) }); at >= 0 {
				return len(worse) - at
			}
			return 0
		}
		for other := range ms {
			if rank(other) < rank(i) {
				t.Fatalf("chose %d (tried %v, out %v, full %v) though there is %d", i, tried.has(i), out.has(i), full.has(i), other)
			}
		}
		if due.has(i) && !down.has(i) && (!ms[i].trying || !ms[i].until.Equal(start.Add(time.Second))) {
			t.Fatalf("the trial of %d is not noted: %+v", i, ms[i].health)
		}
	})
}

func TestWhenAllAreOutAllAreTried(t *testing.T) {
	ms := weights(1, 1, 1)
	for i := range ms {
		ms[i].down = true
	}
	equal(t, "all", order(ms, 6), "abcabc")
	ms[1].down = false
	equal(t, "with one that is in", order(ms, 3), "bbb")
}

func TestAnOriginOnTrialGetsOneRequest(t *testing.T) {
	ms := weights(1, 1)
	ms[0].until, ms[0].ejection = start, 10*time.Second
	equal(t, "requests to the origin on trial", strings.Count(order(ms, 100), "a"), 1)
	ms[0].succeed(start)
	if got := order(ms, 200); !strings.Contains(got, "a") {
		t.Errorf("after its success it gets nothing: %s", got)
	}
}

// TestAnOriginReturnsSlowly looks at its share of the requests over time.
func TestAnOriginReturnsSlowly(t *testing.T) {
	const slow = 10 * time.Second
	ms := weights(4, 4)
	ms[0].since = start
	last := 0
	for _, at := range []struct {
		age      time.Duration
		min, max int // of 1000 requests
	}{{0, 90, 92}, {time.Second, 90, 92}, {5 * time.Second, 330, 335}, {slow - time.Millisecond, 495, 500}, {slow, 500, 500}, {time.Hour, 500, 500}} {
		ms[0].current, ms[1].current = 0, 0
		n := 0
		for range 1000 {
			if choose(ms, start.Add(at.age), slow, 0, 0) == 0 {
				n++
			}
		}
		if n < at.min || n > at.max || n < last {
			t.Errorf("after %v it gets %d of 1000, want %d to %d and no less than before", at.age, n, at.min, at.max)
		}
		last = n
	}
}
