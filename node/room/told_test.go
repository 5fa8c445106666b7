package room

import (
	"testing"
	"time"
)

func TestAwayMeetsTheTurn(t *testing.T) {
	const soon, every = 2 * time.Second, 20 * time.Second
	now := time.Unix(1_767_268_800, 0)
	fifo := Settings{Policy: Escrow, QueueingMethod: FIFO, RefreshInterval: every, PlaceKept: 5 * time.Minute}
	random := fifo
	random.QueueingMethod = Random
	brief := fifo
	brief.PlaceKept = 20 * time.Second
	for _, c := range []struct {
		name  string
		s     Settings
		view  View
		ahead int
		told  time.Duration
		want  time.Duration
	}{
		{"next", fifo, View{AdmittedMinute: 1}, 0, soon, soon},
		{"a place is reserved", fifo, View{AdmittedMinute: 1, Slots: 3}, 2, soon, soon},
		{"the turn is in two minutes", fifo, View{AdmittedMinute: 60}, 119, every, time.Minute},
		{"the turn is in ten seconds", fifo, View{AdmittedMinute: 60}, 9, 5 * time.Second, 5 * time.Second},
		{"the turn is in an hour", fifo, View{AdmittedMinute: 60}, 3599, every, 2 * time.Minute},
		{"nobody was let in lately", fifo, View{}, 40, every, 2 * time.Minute},
		{"everybody waits for the operator", fifo, View{closed: true}, 0, every, 2 * time.Minute},
		{"an event starts in a minute", fifo, View{Event: EventState{Prequeueing: true, Start: now.Add(time.Minute)}}, 40, every, 30 * time.Second},
		{"an event starts tomorrow", fifo, View{Event: EventState{Prequeueing: true, Start: now.Add(24 * time.Hour)}}, 40, every, 2 * time.Minute},
		{"each request is a chance", random, View{AdmittedMinute: 1}, 40, every, every},
		{"the place is kept for less than the interval", brief, View{AdmittedMinute: 1}, 400, every, every},
	} {
		c.view.Settings = complete(c.s)
		e := Estimate{Known: c.view.AdmittedMinute > 0, Ahead: c.ahead, Position: c.ahead + 1}
		if got := c.view.Away(e, c.told, now); got != c.want {
			t.Errorf("%s: away for %v, want %v", c.name, got, c.want)
		}
	}
}

func TestExpectedFollowsWhoComesSeldom(t *testing.T) {
	const every = 20 * time.Second
	v := &View{Settings: complete(Settings{RefreshInterval: every})}
	for _, c := range []struct{ since, before, told, want time.Duration }{
		{2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second},
		{5 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}, // still there
		{20 * time.Second, 2 * time.Second, 2 * time.Second, every},
		{9 * time.Second, 2 * time.Second, 3 * time.Second, 9 * time.Second},
		{9 * time.Second, 2 * time.Second, 12 * time.Second, 12 * time.Second},
		{50 * time.Second, 2 * time.Second, 2 * time.Second, every},
		{51 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}, // no place is held for that
		{30 * time.Second, 2 * time.Second, 25 * time.Second, 25 * time.Second},
		{30 * time.Second, 0, 2 * time.Second, 2 * time.Second},
		{-time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}, // another node's clock
	} {
		if got := v.Expected(c.since, c.before, c.told); got != c.want {
			t.Errorf("after %v, told %v before and %v now: expected after %v, want %v", c.since, c.before, c.told, got, c.want)
		}
	}
}
