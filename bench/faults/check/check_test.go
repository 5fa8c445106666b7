package check

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

const second = int64(time.Second)

// entry is a visitor who enters at a second and stays for some.
func entry(visitor uint64, seq uint64, at float64, stay time.Duration) record.Located {
	return record.Located{Node: "a1", Event: record.Event{
		Kind: record.Entered, Room: 1, Anchor: 7, Boot: 3, Seq: seq, Visitor: visitor << 32,
		At: int64(at * float64(second)), Took: time.Millisecond, Left: stay,
	}}
}

func TestTicketsFindsDuplicates(t *testing.T) {
	var c Tickets
	for i := range uint64(5000) {
		c.Add(entry(i+1, i+1, 1, time.Second))
	}
	c.Add(entry(9, 9, 2, time.Second)) // the same answer once more
	if c.Given != 5000 || c.Repeated != 1 || c.Doubles != 0 {
		t.Fatalf("got %+v, want 5000 given, 1 repeated", c)
	}
	other := entry(77, 1, 2, time.Second)
	other.Boot++ // a number of another start
	c.Add(other)
	double := entry(4711, 4999, 3, time.Second)
	double.Block = 12 // blocks share the numbers of their start
	c.Add(double)
	if c.Given != 5001 || c.Doubles != 1 || len(c.Duplicates) != 1 {
		t.Errorf("got %d given, %d doubles, %q; want 5001 and 1", c.Given, c.Doubles, c.Duplicates)
	}
}

func TestActivePeakAndTimeOver(t *testing.T) {
	c := Active{Limits: Limits{{Active: 2}}}
	c.Add(entry(1, 1, 1, 10*time.Second))
	c.Add(entry(2, 2, 2, 10*time.Second))
	c.Add(entry(1, 1, 3, 10*time.Second)) // goes on until 13
	c.Add(entry(3, 3, 10, time.Second))   // one too many, until 11
	c.Add(entry(4, 4, 12.5, time.Second)) // 2 has gone
	c.Until(20 * second)
	if c.Peak != 3 || c.Over != time.Second || c.Now() != 0 {
		t.Errorf("got peak %d, %v over, %d now; want 3, 1s, 0", c.Peak, c.Over, c.Now())
	}
}

func TestActiveCountsBorrowedApart(t *testing.T) {
	c := Active{Limits: Limits{{Active: 1}}}
	c.Add(entry(1, 1, 1, 10*time.Second))
	b := entry(2, 2, 2, 10*time.Second)
	b.Kind = record.Borrowed
	c.Add(b)
	if c.Peak != 1 || c.PeakBorrowed != 1 {
		t.Errorf("got peak %d and %d borrowed, want 1 and 1", c.Peak, c.PeakBorrowed)
	}
	on := entry(2, 2, 11.5, 10*time.Second)
	on.Kind = record.Borrowed // goes on as it did
	c.Add(on)
	if c.Peak != 1 || c.PeakBorrowed != 1 {
		t.Errorf("got peak %d and %d borrowed after a renewal, want 1 and 1", c.Peak, c.PeakBorrowed)
	}
	repaid := entry(2, 3, 12, 10*time.Second)
	repaid.Kind = record.Reanchored
	c.Add(repaid)
	if c.Peak != 1 || c.Now() != 1 {
		t.Errorf("got peak %d, %d now, want 1 and 1", c.Peak, c.Now())
	}
}

func TestActiveEndsWithTheSession(t *testing.T) {
	c := Active{Limits: Limits{{Active: 1}}}
	c.Add(entry(1, 1, 1, 10*time.Second))
	over := entry(1, 1, 2, 0)
	over.Kind = record.Ended
	c.Add(over)
	c.Add(entry(2, 2, 3, 10*time.Second))
	if c.Peak != 1 {
		t.Errorf("got peak %d, want 1", c.Peak)
	}
}

func TestRateCountsOnlyWhatIsCertain(t *testing.T) {
	var c Rate
	c.Add(entry(1, 1, 0.5, time.Second))
	c.Add(entry(2, 2, 60.4, time.Second))
	if c.Peak != 2 {
		t.Errorf("got %d within 59.9 s, want 2", c.Peak)
	}
	c.Add(entry(3, 3, 60.6, time.Second)) // 1 is more than a minute ago
	if c.Peak != 2 {
		t.Errorf("got %d, want 2", c.Peak)
	}
	slow := entry(4, 4, 61, time.Second)
	slow.Took = 61 * time.Second // let in at any time since the start
	c.Add(slow)
	if c.Peak != 2 {
		t.Errorf("got %d with one that was slow, want 2", c.Peak)
	}
	c.Add(entry(5, 5, 61.5, time.Second))
	if c.Peak != 3 {
		t.Errorf("got %d, want 3", c.Peak)
	}
}

func history(events ...record.Located) *History {
	return historyFrom(0, events...)
}

func historyFrom(from int64, events ...record.Located) *History {
	var t Tickets
	h := NewHistory(from, 100*second)
	for _, e := range events {
		h.Add(e, t.Add(e))
	}
	return h
}

func TestNumbersGoUp(t *testing.T) {
	if v := history(entry(1, 1, 1, time.Second), entry(2, 4, 2, time.Second), entry(3, 5, 3, time.Second)).Numbers(); !v.OK {
		t.Errorf("numbers that go up: %s", v.Why)
	}
	if v := history(entry(1, 4, 1, time.Second), entry(2, 1, 2, time.Second)).Numbers(); v.OK {
		t.Error("a number that is less than one that was given before is taken for good")
	}
	slow := entry(2, 1, 2, time.Second)
	slow.Took = 2 * time.Second // was under way when the other came
	if v := history(entry(1, 4, 1, time.Second), slow).Numbers(); !v.OK {
		t.Errorf("calls beside each other: %s", v.Why)
	}
}

func TestPlacesComeBack(t *testing.T) {
	events := []record.Located{
		entry(1, 1, 1, 4*time.Second), entry(2, 2, 2, 4*time.Second),
		entry(3, 3, 5.1, 4*time.Second), entry(4, 4, 6.1, 4*time.Second),
	}
	if v := history(events...).Places(2); !v.OK {
		t.Errorf("two at a time: %s", v.Why)
	}
	if v := history(events...).Places(1); v.OK {
		t.Error("two at a time are taken for one")
	}
	renewed := entry(1, 1, 4, 4*time.Second)
	renewed.Kind = record.Renewed // so that 1 is still there when 3 comes
	if v := history(append(events[:2:2], renewed, events[2])...).Places(2); v.OK {
		t.Error("three at a time are taken for two")
	}
}

func TestPlacesTakenBeforeTheSpan(t *testing.T) {
	h := historyFrom(3*second,
		entry(1, 1, 1, time.Second), entry(2, 2, 2, 4*time.Second), entry(3, 3, 4, 4*time.Second))
	if h.Calls() != 1 {
		t.Fatalf("got %d calls, want 1", h.Calls())
	}
	if v := h.Places(2); !v.OK {
		t.Errorf("one from before and one: %s", v.Why)
	}
	if v := h.Places(1); v.OK {
		t.Error("the one from before is forgotten")
	}
}

// Hundreds of calls at one time leave a search without an idea of the order far
// too many orders.
func TestNumbersAmongManyCallsAtOneTime(t *testing.T) {
	var events []record.Located
	for i := range uint64(3000) {
		e := entry(i+1, (i/500)*500+500-i%500, 1+float64(i)/1000, time.Second)
		e.Took = 900 * time.Millisecond
		events = append(events, e)
	}
	began := time.Now()
	if v := history(events...).Numbers(); !v.OK {
		t.Errorf("calls beside each other: %s", v.Why)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The client that lost its answer asks again, and is told the same number.
func TestAnAnswerThatIsGivenAgainIsNoCall(t *testing.T) {
	h := historyFrom(3*second, entry(1, 1, 1, 9*time.Second), entry(2, 2, 4, time.Second), entry(1, 1, 5, 5*time.Second))
	if v := h.Numbers(); !v.OK || h.Calls() != 1 {
		t.Errorf("%d calls: %s", h.Calls(), v.Why)
	}
}

func TestMovesFindWhatNobodyGave(t *testing.T) {
	var c Moves
	move := func(kind record.Kind, from, to uint64, places, rate int64) {
		c.Add(record.Located{Node: "a1", Event: record.Move{From: from, To: to, Places: places, Rate: rate}.Event(kind, 1)})
	}
	move(record.Gave, 1, 2, 10, 100)
	move(record.Received, 1, 2, 10, 100)
	move(record.Gave, 1, 2, 12, 100)
	move(record.Gave, 1, 2, 12, 100)     // sent again
	move(record.Received, 1, 2, 10, 100) // late
	move(record.Gave, 2, 1, 5, 0)
	if c.Count != 3 || len(c.Wrong) != 0 {
		t.Fatalf("got %d transfers, %q; want 3 and nothing wrong", c.Count, c.Wrong)
	}
	move(record.Received, 1, 2, 12, 101)
	if len(c.Wrong) != 1 {
		t.Errorf("got %q, want one rate right too many", c.Wrong)
	}
}

// Whoever borrowed may have been repaid at any time: nobody can say when there was
// a place for that.
func TestBorrowersHaveNoPlaceInAHistory(t *testing.T) {
	borrowed := entry(1, 9, 2, 4*time.Second)
	borrowed.Kind = record.Borrowed
	if v := history(entry(1, 1, 1, 4*time.Second), borrowed, entry(2, 2, 3, 4*time.Second)).Places(1); !v.OK {
		t.Errorf("one borrows, one has a place: %s", v.Why)
	}
}

// TestActiveFollowsLimitsThatChange: one that is raised holds when it is asked for, one that is
// lowered until 2 s after a node has said so; who is inside then stays, and may go on.
func TestActiveFollowsLimitsThatChange(t *testing.T) {
	raised := Limits{{Active: 1}, {Asked: 5 * second, Told: 6 * second, Active: 2}}
	lowered := Limits{{Active: 2}, {Asked: 5 * second, Told: 6 * second, Active: 1}}
	for _, c := range []struct {
		name   string
		limits Limits
		at     float64 // when the second comes in
		want   int
	}{
		{"before it is raised", raised, 4.9, 1},
		{"as it is raised", raised, 5.1, 0},
		{"before it is lowered", lowered, 4.9, 0},
		{"less than 2 s after it was", lowered, 7.9, 0},
		{"more than 2 s after it was", lowered, 8.1, 1},
	} {
		a := Active{Limits: c.limits}
		a.Add(entry(1, 1, 1, 30*time.Second))
		a.Add(entry(2, 2, c.at, 3*time.Second))
		goesOn := entry(2, 2, c.at+4, 10*time.Second) // a moment after it was over
		goesOn.Kind = record.Reanchored
		a.Add(goesOn)
		if a.Beyond != c.want || (a.Over > 0) != (c.want > 0) {
			t.Errorf("%s: %d beyond for %v, want %d", c.name, a.Beyond, a.Over, c.want)
		}
	}
	r := Rate{Limits: Limits{{PerMinute: 2}, {Asked: 5 * second, Told: 5 * second, PerMinute: 1}}}
	for i, at := range []float64{66, 66.5, 67.5} {
		r.Add(entry(uint64(i)+1, uint64(i)+1, at, time.Second))
		if want := []int{0, 0, 2}[i]; r.Beyond != want {
			t.Errorf("entry %d: %d beyond the rate, want %d", i+1, r.Beyond, want)
		}
	}
}
