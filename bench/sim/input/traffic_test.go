package input

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/sim"
)

// checkTraffic checks what every traffic must keep, and deals some of it out.
func checkTraffic(t *testing.T, traffic *Traffic) {
	t.Helper()
	end := time.Duration(0)
	for _, s := range traffic.spans {
		if s.from < end || s.length <= 0 || s.visitors < 0 {
			t.Fatalf("span %+v after %v", s, end)
		}
		end = s.from + s.length
	}
	if traffic.Span() != end || end > MaxTime+time.Minute || traffic.Len() < 1 {
		t.Fatalf("%d visitors in %v, counted %v", traffic.Len(), traffic.Span(), end)
	}
	last, n := time.Duration(0), 0
	for at := range traffic.Times(chance(1)) {
		if at < last || at >= end {
			t.Fatalf("arrival at %v after %v, until %v", at, last, end)
		}
		if last, n = at, n+1; n == 1000 {
			return
		}
	}
	if n != traffic.Len() {
		t.Fatalf("%d of %d visitors came", n, traffic.Len())
	}
}

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func all(traffic *Traffic, seed uint64) []time.Duration {
	return slices.Collect(traffic.Times(chance(seed)))
}

func TestArrivals(t *testing.T) {
	traffic := &Traffic{spans: []span{{0, time.Minute, 3}, {time.Minute, time.Minute, 0}, {5 * time.Minute, time.Second, 3*maxDrawn + 1}}}
	moments := all(traffic, 7)
	if len(moments) != 3*maxDrawn+4 || !slices.IsSorted(moments) {
		t.Fatalf("got %d moments, sorted %v; want %d in order", len(moments), slices.IsSorted(moments), 3*maxDrawn+4)
	}
	if moments[2] >= time.Minute || moments[3] < 5*time.Minute || moments[len(moments)-1] >= 5*time.Minute+time.Second {
		t.Errorf("got %v, %v … %v, which are outside the spans", moments[2], moments[3], moments[len(moments)-1])
	}
	// The part of a large span that is dealt out first takes its part of the time.
	if half := moments[3+3*maxDrawn/2] - 5*time.Minute; half < 490*time.Millisecond || half > 510*time.Millisecond {
		t.Errorf("half of a second's visitors have come after %v", half)
	}
	if !slices.Equal(moments, all(traffic, 7)) {
		t.Error("the same seed makes other moments")
	}
	if slices.Equal(moments, all(traffic, 8)) {
		t.Error("another seed makes the same moments")
	}
}

// Moments are even: of visitors in a span, every tenth of it gets a tenth.
func TestArrivalsAreEven(t *testing.T) {
	traffic := &Traffic{spans: []span{{0, time.Minute, 50_000}}}
	var tenths [10]int
	for _, at := range all(traffic, 1) {
		tenths[at*10/time.Minute]++
	}
	for i, n := range tenths {
		if n < 4700 || n > 5300 { // more than four standard deviations
			t.Errorf("tenth %d got %d of 50000", i, n)
		}
	}
}

func TestScaled(t *testing.T) {
	traffic := openTrace(t, "worldcup98-0707.csv")
	scaled, err := traffic.Scaled(0.01)
	if err != nil {
		t.Fatal(err)
	}
	if n := scaled.Len(); n != 296_622 {
		t.Errorf("got %d visitors of 29662241 at a hundredth", n)
	}
	for i, s := range scaled.spans {
		if off := float64(s.visitors) - float64(traffic.spans[i].visitors)/100; off < -1 || off > 1 {
			t.Errorf("minute %d got %d of %d", i, s.visitors, traffic.spans[i].visitors)
		}
	}
	sparse := &Traffic{spans: make([]span, 1000)}
	for i := range sparse.spans {
		sparse.spans[i] = span{time.Duration(i) * time.Second, time.Second, 1}
	}
	if few, err := sparse.Scaled(0.1); err != nil || few.Len() != 100 {
		t.Errorf("got %v, %v, want a hundred of a thousand", few, err)
	}
	for x, want := range map[float64]string{0: "leaves nobody", 1e-9: "leaves nobody", -1: "leaves nobody", 10: "at most 3.4"} {
		if _, err := traffic.Scaled(x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("scale %g: got %v, want an error with %q", x, err, want)
		}
	}
}

func TestFrom(t *testing.T) {
	traffic := &Traffic{spans: []span{{0, time.Minute, 60}, {time.Minute, time.Minute, 100}, {5 * time.Minute, time.Minute, 7}}}
	later, err := traffic.From(75 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := []span{{0, 45 * time.Second, 75}, {225 * time.Second, time.Minute, 7}}
	if !slices.Equal(later.spans, want) || traffic.Len() != 167 {
		t.Errorf("got %+v, want %+v", later.spans, want)
	}
	checkTraffic(t, later)
	if all, err := traffic.From(0); err != nil || !slices.Equal(all.spans, traffic.spans) {
		t.Errorf("got %+v, %v, want all of it", all, err)
	}
	if _, err := traffic.From(6 * time.Minute); err == nil || !strings.Contains(err.Error(), "before 6m0s") {
		t.Errorf("got %v, want an error that says when the last ones come", err)
	}
}

func BenchmarkArrivals(b *testing.B) {
	traffic, err := openTrace(b, "worldcup98-0707.csv").Scaled(0.1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	next, stop := iter.Pull(traffic.Times(chance(1)))
	for b.Loop() {
		if _, ok := next(); !ok {
			stop()
			next, stop = iter.Pull(traffic.Times(chance(1)))
		}
	}
	stop()
}

var _ sim.Arrivals = (*Traffic)(nil)
