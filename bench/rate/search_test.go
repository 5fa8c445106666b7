package rate

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// machine is one with a known capacity, which other programs disturb.
type machine struct {
	capacity float64
	disturb  func(try int) bool // nil: never
	tries    int
	highest  float64 // that was tried
}

func (m *machine) try(rate float64) (bool, error) {
	m.tries++
	m.highest = max(m.highest, rate)
	return rate <= m.capacity && (m.disturb == nil || !m.disturb(m.tries)), nil
}

// TestSearchFindsTheCapacity begins far above and far below it.
func TestSearchFindsTheCapacity(t *testing.T) {
	for _, capacity := range []float64{1000, 1700, 25_000, 88_888, 160_000, 1_200_000} {
		for _, closed := range []float64{5_000, 18_788, 160_000, 300_000} {
			m := &machine{capacity: capacity}
			got, err := searchBelow(closed).run(m.try)
			if err != nil || got > capacity || got < capacity/fine {
				t.Errorf("capacity %v, closed %v: got %v, %v", capacity, closed, got, err)
			}
			if m.tries > 120 {
				t.Errorf("capacity %v, closed %v: it took %d tries", capacity, closed, m.tries)
			}
		}
	}
}

// TestSearchOnABusyMachine has every other try fail by chance, and, with another machine, all of the first ones.
func TestSearchOnABusyMachine(t *testing.T) {
	const capacity, runs = 120_000, 200
	near := 0
	for seed := range uint64(runs) {
		dice := rand.New(rand.NewPCG(seed, 1))
		m := &machine{capacity: capacity, disturb: func(int) bool { return dice.IntN(2) == 0 }}
		got, err := searchBelow(160_000).run(m.try)
		if err != nil || got > capacity || got == 0 {
			t.Fatalf("seed %d: got %v, %v", seed, got, err)
		}
		if got >= capacity/(fine*fine) {
			near++
		}
	}
	if near < runs*9/10 {
		t.Errorf("%d of %d are near the capacity", near, runs)
	}
	for first := range 60 { // beyond, it has gone down to the least rate, and back twice
		m := &machine{capacity: capacity, disturb: func(try int) bool { return try <= first }}
		if got, err := searchBelow(160_000).run(m.try); err != nil || got > capacity || got < capacity/fine {
			t.Errorf("the first %d tries were disturbed: got %v, %v", first, got, err)
		}
	}
}

func TestSearchWhereNothingHolds(t *testing.T) {
	lowest := 160_000.0
	got, err := searchBelow(160_000).run(func(rate float64) (bool, error) { lowest = min(lowest, rate); return false, nil })
	if got != 0 || err != nil || lowest != leastTried {
		t.Errorf("got %v, %v, after %v/s, want nothing after %v/s", got, err, lowest, leastTried)
	}
	broken := errors.New("broken")
	if got, err := searchBelow(160_000).run(func(rate float64) (bool, error) { return false, broken }); got != 0 || !errors.Is(err, broken) {
		t.Errorf("got %v, %v, want the error", got, err)
	}
}

// TestSearchEnds has everything hold, and then everything by chance.
func TestSearchEnds(t *testing.T) {
	m := &machine{capacity: 1e12}
	if got, err := searchBelow(160_000).run(m.try); err != nil || got < 160_000 || m.highest > mostTried {
		t.Errorf("got %v, %v, having tried %v/s", got, err, m.highest)
	}
	dice, tries := rand.New(rand.NewPCG(3, 3)), 0
	_, err := searchBelow(160_000).run(func(float64) (bool, error) { tries++; return dice.IntN(3) == 0, nil })
	if s := searchBelow(160_000); err != nil || tries > s.rates*s.tries {
		t.Errorf("it took %d tries, %v", tries, err)
	}
}
