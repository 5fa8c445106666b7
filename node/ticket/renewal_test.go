package ticket

import (
	"fmt"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func theirs(anchor byte, seq uint64) Ticket {
	return Ticket{Anchor: crdt.NodeID{anchor}, Boot: 1, Seq: seq}
}

// sent names what Due returned as "anchor:seq…".
func sent(batches []Batch) string {
	out := ""
	for _, b := range batches {
		out += fmt.Sprintf("[%d:", b.Anchor[0])
		for _, item := range b.Items {
			out += fmt.Sprintf(" %d@%g", item.Ticket.Seq, item.At.Sub(epoch).Seconds())
		}
		out += "]"
	}
	return out
}

func wantSent(t *testing.T, r *Renewals, now float64, want string) {
	t.Helper()
	if got := sent(r.Due(at(now))); got != want {
		t.Errorf("at %g: sent %q, want %q", now, got, want)
	}
}

func TestRenewalsCoalesce(t *testing.T) {
	r := NewRenewals()
	r.Note(theirs(2, 7), at(60), at(1))
	r.Note(theirs(3, 5), at(60), at(1))
	r.Note(theirs(2, 6), at(60), at(1.1))
	r.Note(theirs(2, 7), at(60), at(1.2))
	r.Note(theirs(2, 7), at(60), at(0.9)) // older than what is known
	wantSent(t, r, 1.25, "[2: 6@1.1 7@1.2][3: 5@1]")
	wantSent(t, r, 1.3, "")
}

func TestRenewalsAreSentUntilAnswered(t *testing.T) {
	r := NewRenewals()
	r.Note(theirs(2, 1), at(60), at(0))
	var times []float64
	for ms := 0; ms <= 66_000; ms += 50 {
		if len(r.Due(epoch.Add(time.Duration(ms)*time.Millisecond))) > 0 {
			times = append(times, float64(ms)/1000)
		}
	}
	want := []float64{0, 0.3, 0.9, 2.1, 4.5, 9.3, 14.3, 19.3, 24.3, 29.3, 34.3, 39.3, 44.3, 49.3, 54.3, 59.3}
	if fmt.Sprint(times) != fmt.Sprint(want) {
		t.Errorf("sent at %v, want %v", times, want)
	}
	if r.Len() != 0 {
		t.Error("kept after the pass and its guard are past")
	}
}

func TestRenewalsAckAndTake(t *testing.T) {
	r := NewRenewals()
	x := theirs(2, 1)
	r.Note(x, at(60), at(0))
	wantSent(t, r, 0, "[2: 1@0]")
	r.Note(x, at(60), at(0.2)) // while the first is on its way
	if _, ok := r.Take(x); ok {
		t.Error("an end before the anchor agreed")
	}
	r.Acked(x, at(60.5))
	r.Acked(x, at(60.1)) // overtaken
	r.Acked(theirs(2, 9), at(99))
	if end, ok := r.Take(x); !ok || !end.Equal(at(60.5)) {
		t.Errorf("took %v, %v", end.Sub(epoch), ok)
	}
	if _, ok := r.Take(x); ok {
		t.Error("took the same end twice")
	}
	// The check-in noted meanwhile follows, a second after the first.
	wantSent(t, r, 0.9, "")
	wantSent(t, r, 1, "[2: 1@0.2]")
	r.Acked(x, at(60.2))
	wantSent(t, r, 30, "")
	if r.Len() != 1 {
		t.Error("forgotten while its lease runs")
	}
	wantSent(t, r, 66, "")
	if r.Len() != 0 {
		t.Error("kept although its lease is past")
	}
}

func TestRenewalsRefused(t *testing.T) {
	r := NewRenewals()
	r.Note(theirs(2, 1), at(60), at(0))
	wantSent(t, r, 0, "[2: 1@0]")
	if !r.Refused(theirs(2, 1)) || r.Refused(theirs(2, 1)) {
		t.Error("a ticket is refused once")
	}
	wantSent(t, r, 10, "")
	if got := r.Unreachable(at(10)); len(got) != 0 {
		t.Errorf("a refusal is an answer, got %v", got)
	}
}

func TestRenewalsUnreachable(t *testing.T) {
	r := NewRenewals()
	r.Note(theirs(2, 1), at(60), at(0))
	r.Note(theirs(3, 1), at(60), at(0))
	wantSent(t, r, 0, "[2: 1@0][3: 1@0]")
	wantSent(t, r, 0.3, "[2: 1@0][3: 1@0]")
	r.Acked(theirs(3, 1), at(60))
	if got := r.Unreachable(at(0.99)); len(got) != 0 {
		t.Errorf("too early: %v", got)
	}
	got := r.Unreachable(at(1))
	if len(got) != 1 || got[0].Ticket != theirs(2, 1) || !got[0].PassEnd.Equal(at(60)) {
		t.Fatalf("got %v, want the ticket of anchor 2", got)
	}
	if got := r.Unreachable(at(5)); len(got) != 0 {
		t.Errorf("told twice: %v", got)
	}
	// The anchor comes back and goes again: that is another silence.
	r.Due(at(5))
	r.Acked(theirs(2, 1), at(64))
	r.Note(theirs(2, 1), at(64), at(7))
	wantSent(t, r, 7, "[2: 1@7]")
	if got := r.Unreachable(at(8)); len(got) != 1 {
		t.Errorf("got %v after the second silence", got)
	}
	r.Forget(theirs(2, 1))
	wantSent(t, r, 20, "")
}

func TestRenewalsAreBounded(t *testing.T) {
	var r Renewals
	for seq := range uint64(MaxRenewals + 5) {
		r.Note(theirs(2, seq), at(60), at(0))
	}
	if r.Len() != MaxRenewals || r.Dropped() != 5 {
		t.Errorf("kept %d, dropped %d", r.Len(), r.Dropped())
	}
	n := 0
	for _, b := range r.Due(at(1)) {
		if len(b.Items) > MaxBatch {
			t.Fatalf("batch of %d", len(b.Items))
		}
		n += len(b.Items)
	}
	if n != MaxRenewals {
		t.Errorf("sent %d, want all %d", n, MaxRenewals)
	}
	r.Due(at(100))
	if r.Len() != 0 || r.wake.len() != 0 {
		t.Errorf("%d tickets, %d timers long after", r.Len(), r.wake.len())
	}
}

func BenchmarkRenewals(b *testing.B) {
	const tickets = 100_000
	r := NewRenewals()
	now := 0.0
	b.ReportAllocs()
	for b.Loop() {
		now += 2
		for seq := range uint64(tickets) {
			r.Note(theirs(byte(seq%5), seq), at(now+60), at(now))
		}
		r.Unreachable(at(now))
		for _, batch := range r.Due(at(now)) {
			for _, item := range batch.Items {
				r.Acked(item.Ticket, at(now+60))
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tickets, "ns/renewal")
}

// TestRenewalsOfTheLastMoment has a visitor check in just before the pass ends:
// that the anchor is silent must come out although the pass is past by then.
func TestRenewalsOfTheLastMoment(t *testing.T) {
	r := NewRenewals()
	x := theirs(2, 1)
	r.Note(x, at(60), at(59.9))
	wantSent(t, r, 59.9, "[2: 1@59.9]")
	r.Due(at(60.5))
	if got := r.Unreachable(at(61)); len(got) != 1 || got[0].Ticket != x {
		t.Errorf("unreachable after a second of silence = %v, want the ticket", got)
	}
	r.Due(at(80))
	if r.Len() != 0 {
		t.Error("kept for ever")
	}
}
