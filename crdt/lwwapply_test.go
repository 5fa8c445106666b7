package crdt

import (
	"fmt"
	"testing"
	"time"
)

// hear takes a delta that was made for what m has.
func (m *LWW) hear(d LWWDelta, clock *Clock, now time.Time) error {
	if d.Whole {
		_, err := m.ApplyWhole(d.Pieces, clock, now)
		return err
	}
	for _, p := range d.Pieces {
		if _, err := m.Apply(p, clock, now); err != nil {
			return err
		}
	}
	return nil
}

// TestWhatWonHasToCome: of two nodes that write one key, a third hears the one, and not the other that has won. It
// takes nothing before all has come, whoever brings that.
func TestWhatWonHasToCome(t *testing.T) {
	x, y := testNode(0), testNode(1)
	var clock Clock
	src, now := new(LWW), guardNow
	set := func(key string, by NodeID) Stamp {
		t.Helper()
		now = now.Add(time.Millisecond)
		at := clock.Now(now, by)
		if err := src.Set(key, make([]byte, 100), at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := set("before", x)
	to := src.Clone()
	lost := set("key", x)
	other := set("of its own", x)
	alone := src.DeltaOf(x, to.KnownOf(x), 0)
	set("key", y)

	own, all := src.DeltaOf(x, to.KnownOf(x), 0), src.Delta(to.Digest(), 0)
	if p := own.Pieces[0]; p.Hides != lost.packed() || len(p.Writes) != 1 {
		t.Errorf("it is told of %d writes, and %d is hidden, want %d", len(p.Writes), p.Hides, lost.packed())
	}
	for name, c := range map[string]struct {
		deltas []LWWDelta
		knows  Stamp
	}{
		"nothing has won":        {[]LWWDelta{alone}, other},
		"it alone":               {[]LWWDelta{own, own}, before},
		"before the other one":   {[]LWWDelta{own, src.DeltaOf(y, 0, 0)}, before},
		"after the other one":    {[]LWWDelta{src.DeltaOf(y, 0, 0), own}, before}, // nobody knows that this was all
		"with all that there is": {[]LWWDelta{all}, other},
		"before all there is":    {[]LWWDelta{own, all}, other},
		"cut before the other":   {[]LWWDelta{src.Delta(to.Digest(), 200)}, before},
	} {
		m := to.Clone()
		for _, d := range c.deltas {
			if err := m.hear(d, &clock, now); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, _, has := m.Get("of its own"); has != m.Holds(other) || m.KnownOf(x) != c.knows.packed() {
			t.Errorf("%s: its other write is there: %v, and known is %d, want %d", name, has, m.KnownOf(x), c.knows.packed())
		}
	}
}

// TestAChainOfDeltas tells a map in as many deltas as it takes: each goes on from the one before, and all is merged with the last.
func TestAChainOfDeltas(t *testing.T) {
	var clock Clock
	src, to, now := new(LWW), new(LWW), guardNow
	for i := range 40 {
		now = now.Add(time.Millisecond)
		if err := src.Set(fmt.Sprint("key ", i*7%13), make([]byte, 100), clock.Now(now, testNode(i%3))); err != nil {
			t.Fatal(err)
		}
	}
	var chain []LWWPiece
	got, sent := LWWDigest{}, 0
	for n := 1; ; n++ {
		d := src.DeltaAfter(to.Digest(), got, 400)
		for _, p := range d.Pieces {
			got[p.Writer], sent, chain = p.To, sent+len(p.Writes), append(chain, p)
		}
		if d.Whole {
			break
		}
		if n > 13 {
			t.Fatal("it does not come to an end")
		}
	}
	if aside, err := to.ApplyWhole(chain[1:], &clock, now); !aside || err != nil || to.Len() > 0 {
		t.Errorf("without the first one: left aside %v, %v, %d keys", aside, err, to.Len())
	}
	if aside, err := to.ApplyWhole(chain, &clock, now); aside || err != nil {
		t.Fatalf("left aside %v, %v", aside, err)
	}
	if sent != src.Len() || fmt.Sprint(to.Digest()) != fmt.Sprint(src.Digest()) || fmt.Sprint(content(to)) != fmt.Sprint(content(src)) {
		t.Errorf("%d writes were sent of %d, and %v is known of %v", sent, src.Len(), to.Digest(), src.Digest())
	}
}
