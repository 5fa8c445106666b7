package room

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What events must be like.
const (
	MaxEvents   = 5                  // of one room
	minEvent    = time.Minute        // from start to end
	minPrequeue = 5 * time.Minute    // from the start of the pre-queue to that of the event
	maxPrequeue = crdt.MaxPlaceAhead // counts of places further ahead are not believed
)

func (c *checks) events(events []Event) {
	if len(events) > MaxEvents {
		c.add("events", strconv.Itoa(len(events)), fmt.Sprintf("at most %d events", MaxEvents))
	}
	for i := range events {
		e := &events[i]
		field := func(name string) string { return fmt.Sprintf("events[%d].%s", i, name) }
		judge(c, field(""), EventFields, e)
		c.times(field, e)
		c.overrides(field, e)
		for j := range events[:i] {
			if overlap(e, &events[j]) {
				c.add(field("event-start-time"), stamp(e.Start), fmt.Sprintf("no time that events[%d], with its pre-queue, takes: %s to %s",
					j, stamp(events[j].begin()), stamp(events[j].End)))
			}
		}
	}
}

func (c *checks) times(field func(string) string, e *Event) {
	if e.Start.IsZero() {
		c.add(field("event-start-time"), "", "a time")
	}
	if e.End.Sub(e.Start) < minEvent {
		c.add(field("event-end-time"), stamp(e.End), fmt.Sprintf("a time at least %v after the start, %s", minEvent, stamp(e.Start)))
	}
	if e.PrequeueStart.IsZero() {
		if e.Shuffle {
			c.add(field("shuffle-at-event-start"), "true", "false where there is no prequeue-start-time")
		}
		return
	}
	if length := e.Start.Sub(e.PrequeueStart); length < minPrequeue || length > maxPrequeue {
		c.add(field("prequeue-start-time"), stamp(e.PrequeueStart), fmt.Sprintf("a time %v to %v before the start, %s", minPrequeue, maxPrequeue, stamp(e.Start)))
	}
}

func (c *checks) overrides(field func(string) string, e *Event) {
	total, perMinute := e.TotalActiveUsers, e.NewUsersPerMinute
	const together = "both limits, or neither: they are overridden together"
	switch {
	case total != nil && perMinute == nil:
		c.add(field("new-users-per-minute"), "", together)
	case total == nil && perMinute != nil:
		c.add(field("total-active-users"), "", together)
	}
}

// overlap reports whether two events want the room at the same time. One that is
// suspended does not happen, so it is in nobody's way; whoever resumes it learns
// then of what has been put in its place.
func overlap(a, b *Event) bool {
	return !a.Suspended && !b.Suspended && a.begin().Before(b.End) && b.begin().Before(a.End)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
