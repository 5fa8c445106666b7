package check

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

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
	if c.Peak != 1 || c.Now() != 1 || c.Borrowed != 1 {
		t.Errorf("got peak %d, %d now and %d borrowed, want 1, 1 and 1", c.Peak, c.Now(), c.Borrowed)
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

// numbers returns what is wrong with the numbers of calls.
func numbers(events ...record.Located) []string {
	slices.SortStableFunc(events, func(a, b record.Located) int { return cmp.Compare(a.At, b.At) })
	var t Tickets
	var n Numbers
	for _, e := range events {
		n.Add(e, t.Add(e))
	}
	return n.Wrong()
}

func TestNumbersGoUp(t *testing.T) {
	slow := entry(2, 1, 2, time.Second)
	slow.Took = 2 * time.Second // was under way when the other came
	other := entry(2, 1, 2, time.Second)
	other.Block++
	lost := entry(2, 1, 4, time.Second) // its first answer was lost, or is late
	first := lost
	first.At, first.Took = 5*second, 4500*time.Millisecond
	for _, c := range []struct {
		what   string
		events []record.Located
		wrong  int
	}{
		{"numbers that go up", []record.Located{entry(1, 1, 1, time.Second), entry(2, 4, 2, time.Second), entry(3, 5, 3, time.Second)}, 0},
		{"a number that is less than one that was given before", []record.Located{entry(1, 4, 1, time.Second), entry(2, 1, 2, time.Second)}, 1},
		{"calls beside each other", []record.Located{entry(1, 4, 1, time.Second), slow}, 0},
		{"of another block", []record.Located{entry(1, 4, 1, time.Second), other}, 0},
		{"an answer that is given again, to the call that came first", []record.Located{entry(1, 4, 1, time.Second), lost, first}, 0},
		{"an answer that is given again, to a later call", []record.Located{entry(1, 1, 1, time.Second), entry(2, 4, 2, time.Second), entry(1, 1, 3, time.Second)}, 0},
	} {
		if wrong := numbers(c.events...); len(wrong) != c.wrong {
			t.Errorf("%s: got %q, want %d", c.what, wrong, c.wrong)
		}
	}
}

// TestOrdersThatASearchFinds has a search for an order of the calls judge as Numbers and Active do: of histories drawn
// at random, good ones and bad, both say the same.
func TestOrdersThatASearchFinds(t *testing.T) {
	counter := porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(last, _, seq any) (bool, any) { return seq.(uint64) > last.(uint64), seq },
	}
	const limit = 2
	places := porcupine.Model{
		Init: func() any { return 0 },
		Step: func(taken, change, _ any) (bool, any) {
			n := taken.(int) + change.(int)
			return n <= limit, n
		},
	}
	found := map[string]int{}
	check := func(t *rapid.T) {
		seqs := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 20), 1, 8, rapid.ID).Draw(t, "numbers") // few, so that a search ends
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(seqs)
		}
		active := Active{Limits: Limits{{Active: limit}}}
		var events []record.Located
		var numbered, taking []porcupine.Operation
		for i, seq := range seqs {
			// Moments of all calls and ends differ, as those of a clock that counts nanoseconds do.
			e := entry(uint64(i+1), seq, 0, 0)
			e.At = int64(i)*300_000 + 1000*rapid.Int64Range(0, 900).Draw(t, "at") + int64(3*i)
			e.Took = time.Duration(rapid.Int64Range(1, 400).Draw(t, "took")) * time.Microsecond
			e.Left = time.Duration(rapid.Int64Range(1, 1500).Draw(t, "stay"))*time.Microsecond + 100
			events = append(events, e)
			numbered = append(numbered, porcupine.Operation{ClientId: i, Call: e.Called(), Return: e.At, Output: e.Seq})
			taking = append(taking, porcupine.Operation{ClientId: i, Call: e.Called(), Return: e.At, Input: 1, Output: 0},
				porcupine.Operation{ClientId: len(seqs) + i, Call: e.Ends(), Return: e.Ends(), Input: -1, Output: 0})
		}
		if got, want := len(numbers(events...)) == 0, porcupine.CheckOperations(counter, numbered); got != want {
			t.Fatalf("an order of numbers: %v, a search finds one: %v", got, want)
		} else {
			found[fmt.Sprint("numbers ", got)]++
		}
		for _, e := range events { // which numbers has put in order
			active.Add(e)
		}
		if got, want := active.Beyond == 0, porcupine.CheckOperations(places, taking); got != want {
			t.Fatalf("an order of places: %v, a search finds one: %v", got, want)
		} else {
			found[fmt.Sprint("places ", got)]++
		}
	}
	for range 100 { // the draws of one may be good ones only
		if rapid.Check(t, check); len(found) == 4 {
			return
		}
	}
	t.Errorf("good ones or bad ones were not tried: %v", found)
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
