// Package breadth goes through all states that follow from a first one, those that take the
// fewest events first, so that what leads to a finding is as short as it can be.
package breadth

import (
	"context"
	"slices"
	"time"
)

// Search says what is gone through. Of states that are equal one is gone on from. Events say
// how a state follows from another.
type Search[State comparable, Event any] struct {
	First State

	// Each calls yield for every state that follows from one, until it returns false. Broken
	// says what is wrong with it; "": nothing.
	Each func(from State, yield func(e Event, next State, broken string) bool)

	// Rest says what is wrong once all that goes on in a state has come to its end; "": nothing.
	// It is asked of one state of RestEvery, as it may take long.
	Rest      func(State) (broken string)
	RestEvery int

	Text func(Event) string // says what happened, for people
	Most int                // how many states are enough; 0: there is no bound
}

// Result is what a search found.
type Result struct {
	States int
	Whole  bool     // nothing is broken, and there are no more states
	Broken string   // what is; "": nothing
	Trace  []string // what leads to that
	Took   time.Duration
}

// link says how a state was reached.
type link[Event any] struct {
	from  int32
	event Event
}

// Run searches until something is broken, there are no more states, or ctx is done.
func (s Search[State, Event]) Run(ctx context.Context) (r Result) {
	start := time.Now()
	states, links := []State{s.First}, []link[Event]{{from: -1}}
	seen := map[State]struct{}{s.First: {}}
	last := 0 // the state that is broken
	r.Whole = true
	for i := 0; i < len(states) && r.Broken == ""; i++ {
		if s.Most > 0 && len(states) > s.Most || i%4096 == 0 && ctx.Err() != nil {
			r.Whole = false
			break
		}
		s.Each(states[i], func(e Event, next State, broken string) bool {
			if _, known := seen[next]; known && broken == "" {
				return true
			}
			seen[next] = struct{}{}
			states, links = append(states, next), append(links, link[Event]{int32(i), e})
			last, r.Broken = len(states)-1, broken
			return broken == ""
		})
		if r.Broken == "" && i%s.RestEvery == 0 {
			last, r.Broken = i, s.Rest(states[i])
		}
	}
	if r.Broken != "" {
		r.Whole = false // nobody looked further
		for ; links[last].from >= 0; last = int(links[last].from) {
			r.Trace = append(r.Trace, s.Text(links[last].event))
		}
		slices.Reverse(r.Trace)
	}
	r.States, r.Took = len(states), time.Since(start)
	return r
}
