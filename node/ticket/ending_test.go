package ticket

import (
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func TestEndsAreSentUntilAcknowledged(t *testing.T) {
	var e Endings
	other := Ticket{Anchor: crdt.NodeID{0xee}, Boot: 1, Seq: 9}
	e.Add(mine(2), at(60), at(0))
	e.Add(mine(1), at(60), at(0))
	e.Add(other, at(60), at(0))
	e.Add(mine(1), at(90), at(0)) // again
	got := e.Due(at(0))
	want := []Ends{{Anchor: other.Anchor, Items: []Ticket{other}}, {Anchor: self.Node, Items: []Ticket{mine(1), mine(2)}}}
	if other.Anchor.Compare(self.Node) > 0 {
		want[0], want[1] = want[1], want[0]
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("sent %+v, want %+v", got, want)
	}
	if again := e.Due(at(0).Add(resendFirst - time.Millisecond)); len(again) != 0 {
		t.Errorf("sent again before %v: %+v", resendFirst, again)
	}
	e.Acked(other)
	e.Acked(mine(1))
	if got := e.Due(at(0).Add(resendFirst)); len(got) != 1 || len(got[0].Items) != 1 || got[0].Items[0] != mine(2) {
		t.Errorf("sent %+v, want what is not acknowledged", got)
	}
	sends := 0
	for now := at(1); now.Before(at(200)); now = now.Add(50 * time.Millisecond) {
		sends += len(e.Due(now))
		if !now.After(at(60)) && e.Len() != 1 {
			t.Fatalf("given up at %v, before the lease can have ended", now)
		}
	}
	if e.Len() != 0 || e.wake.len() != 0 {
		t.Errorf("%d ends and %d timers are left after the lease has ended", e.Len(), e.wake.len())
	}
	if sends < 12 || sends > 20 {
		t.Errorf("sent %d times in a minute, want about one in %v", sends, resendLast)
	}
}

func TestEndsAreBounded(t *testing.T) {
	var e Endings
	for i := range MaxEndings + 3 {
		if ok := e.Add(mine(uint64(i)), at(10), at(0)); ok != (i < MaxEndings) {
			t.Fatalf("end %d taken = %v", i, ok)
		}
	}
	if e.Len() != MaxEndings || e.Dropped() != 3 {
		t.Errorf("kept %d and dropped %d, want %d and 3", e.Len(), e.Dropped(), MaxEndings)
	}
	total := 0
	for _, m := range e.Due(at(0)) {
		total += len(m.Items)
		if len(m.Items) > MaxBatch {
			t.Errorf("a message of %d items, at most %d fit", len(m.Items), MaxBatch)
		}
	}
	if total != MaxEndings {
		t.Errorf("sent %d, want %d", total, MaxEndings)
	}
}

func TestEndsRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, MaxBatch} {
		want := Ends{Room: crdt.RoomID{7}, Anchor: crdt.NodeID{9}, Items: make([]Ticket, n)}
		for i, item := range fullBatch(n).Items {
			want.Items[i] = item.Ticket
		}
		data := AppendEnds([]byte("x"), want)[1:]
		if len(data) > MaxMessage {
			t.Errorf("%d items take %d bytes, at most %d", n, len(data), MaxMessage)
		}
		got, err := DecodeEnds(data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d ends came back as %d, error %v", n, len(got.Items), err)
		}
		for cut := 0; cut < min(len(data), 300); cut++ {
			if _, err := DecodeEnds(data[:cut]); err == nil {
				t.Fatalf("%d ends cut to %d of %d bytes were accepted", n, cut, len(data))
			}
		}
	}
}

// TestFixedLeases: where sessions are not renewed, check-ins are answered and
// change nothing, and what was agreed before stays.
func TestFixedLeases(t *testing.T) {
	l, _ := leasesAfter(self, time.Minute, 2, at(0))
	l.Open(mine(1), at(0), at(0))
	l.CheckIn(mine(1), at(60), at(10), at(10))
	l.SetRenewal(false)
	for s := 11; s < 70; s += 10 {
		end, _, err := l.CheckIn(mine(1), at(60), at(float64(s)), at(float64(s)))
		if err != nil || !end.Equal(at(70)) {
			t.Fatalf("check-in after %d s: end %v, %v, want the end agreed before", s, end, err)
		}
	}
	earlier := Ticket{Anchor: self.Node, Boot: self.Boot - 1, Seq: 3}
	for range 2 { // as it shows up, and again
		if end, _, err := l.CheckIn(earlier, at(40), at(30), at(30)); err != nil || !end.Equal(at(40)) {
			t.Errorf("lease of an earlier start: end %v, %v, want that of its pass", end, err)
		}
	}
	l.SetRenewal(true)
	if end, _, err := l.CheckIn(mine(1), at(60), at(69), at(69)); err != nil || !end.Equal(at(129)) {
		t.Errorf("check-in with renewal on again: end %v, %v", end, err)
	}
}
