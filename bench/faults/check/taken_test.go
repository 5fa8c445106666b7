package check

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/faults/record"
)

const guard = 400 * time.Millisecond

// both gives events to the measure of how full a room is and to the check of its
// limit.
func both(t *Taken, a *Active, events ...record.Located) {
	for _, e := range events {
		t.Add(e)
		a.Add(e)
	}
}

func TestTakenCountsPlacesThatRest(t *testing.T) {
	c, limit := Taken{Guard: guard}, Active{Limits: Limits{{Active: 2}}}
	both(&c, &limit, entry(1, 1, 1, time.Second), entry(2, 2, 1, 10*time.Second))
	both(&c, &limit, entry(3, 3, 2.3, time.Second)) // the place of 1 rests until 2.4
	if c.Now() != 3 || c.Peak != 3 {
		t.Errorf("within the guard: got %d taken, peak %d; want 3 and 3", c.Now(), c.Peak)
	}
	if limit.Peak != 2 || limit.Over != 0 {
		t.Errorf("the check of the limit: got peak %d, %v over; want 2 and none", limit.Peak, limit.Over)
	}
	both(&c, &limit, entry(4, 4, 3.71, time.Second)) // those of 1 and 3 are free again
	if c.Now() != 2 || c.Peak != 3 {
		t.Errorf("after the guard: got %d taken, peak %d; want 2 and 3", c.Now(), c.Peak)
	}
	if limit.Peak != 2 || limit.Over != 0 {
		t.Errorf("the check of the limit: got peak %d, %v over; want 2 and none", limit.Peak, limit.Over)
	}
}

func TestTakenEndsExactlyWithTheGuard(t *testing.T) {
	c := Taken{Guard: guard}
	c.Add(entry(1, 1, 1, time.Second))
	for _, at := range []struct {
		ns   int64
		want int
	}{{2*second + int64(guard) - 1, 1}, {2*second + int64(guard), 0}} {
		if c.pass(at.ns); c.Now() != at.want {
			t.Errorf("%d ns after the start: got %d taken, want %d", at.ns-second, c.Now(), at.want)
		}
	}
}

// A limit that is passed is passed whatever rests.
func TestTakenDoesNotHideALimitThatIsPassed(t *testing.T) {
	c, limit := Taken{Guard: guard}, Active{Limits: Limits{{Active: 1}}}
	both(&c, &limit, entry(1, 1, 1, time.Second), entry(2, 2, 1.5, time.Second))
	limit.Until(10 * second)
	if limit.Peak != 2 || limit.Over != 500*time.Millisecond || c.Peak != 2 {
		t.Errorf("got peak %d, %v over, %d taken; want 2, 500ms, 2", limit.Peak, limit.Over, c.Peak)
	}
}

func TestTakenCountsASessionFromItsLastRequest(t *testing.T) {
	renewed := entry(1, 1, 2, 1500*time.Millisecond) // the request before asked for that
	renewed.Kind = record.Renewed
	for _, of := range []struct {
		session time.Duration
		free    float64
	}{{0, 3.9}, {2 * time.Second, 4.4}} {
		c := Taken{Guard: guard, Session: of.session}
		c.Add(entry(1, 1, 1, 2*time.Second))
		c.Add(renewed)
		end := int64(of.free * float64(second))
		if c.pass(end - 1); c.Now() != 1 {
			t.Errorf("sessions of %v: the place is free before %v s", of.session, of.free)
		}
		if c.pass(end); c.Now() != 0 || c.Peak != 1 {
			t.Errorf("sessions of %v: got %d taken after %v s, peak %d; want 0 and 1", of.session, c.Now(), of.free, c.Peak)
		}
	}
}

func TestTakenGoesByTickets(t *testing.T) {
	c := Taken{Guard: guard}
	c.Add(entry(1, 1, 1, 4*time.Second))
	c.Add(entry(1, 1, 2, 3*time.Second)) // the same answer once more
	if c.Peak != 1 {
		t.Errorf("one ticket: got %d places", c.Peak)
	}
	on := entry(1, 9, 3, 4*time.Second)
	on.Kind = record.Reanchored
	c.Add(on)
	if c.Now() != 2 {
		t.Errorf("a session that goes on with another ticket: got %d places, want 2", c.Now())
	}
	borrowed := entry(2, 10, 3.5, 4*time.Second)
	borrowed.Kind = record.Borrowed
	c.Add(borrowed)
	over := entry(1, 9, 4, 0)
	over.Kind = record.Ended
	c.Add(over)
	if c.Now() != 1 || c.Peak != 2 {
		t.Errorf("one is over, one is borrowed: got %d places, peak %d; want 1 and 2", c.Now(), c.Peak)
	}
}
