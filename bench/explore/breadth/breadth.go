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
	Each func(from State, yield func(e Event, next State, broken string) bool) error

	// Rest says what is wrong once all that goes on in a state has come to its end; "": nothing.
	// It is asked of one state of RestEvery, as it may take long. It may be nil.
	Rest      func(State) (broken string, err error)
	RestEvery int

	Most int // how many states are enough; 0: there is no bound
}

// Result is what a search found.
type Result[Event any] struct {
	States int
	Whole  bool    // nothing is broken, and there are no more states
	Broken string  // what is; "": nothing
	Trace  []Event // what leads to that
	Took   time.Duration
}

// link says how a state was reached.
type link[Event any] struct {
	from  int32
	event Event
}

// Run searches until something is broken, there are no more states, or ctx is done.
func (s Search[State, Event]) Run(ctx context.Context) (r Result[Event], err error) {
	start := time.Now()
	states, links := []State{s.First}, []link[Event]{{from: -1}}
	seen := map[State]struct{}{s.First: {}}
	whole := true
	for i := 0; i < len(states) && r.Broken == ""; i++ {
		if s.Most > 0 && len(states) > s.Most || i%4096 == 0 && ctx.Err() != nil {
			whole = false
			break
		}
		err := s.Each(states[i], func(e Event, next State, broken string) bool {
			if _, known := seen[next]; known && broken == "" {
				return true
			}
			seen[next] = struct{}{}
			states, links = append(states, next), append(links, link[Event]{int32(i), e})
			if r.Broken = broken; broken != "" {
				r.Trace = trace(links, len(links)-1)
			}
			return broken == ""
		})
		if err == nil && r.Broken == "" && s.Rest != nil && i%s.RestEvery == 0 {
			if r.Broken, err = s.Rest(states[i]); r.Broken != "" {
				r.Trace = trace(links, i)
			}
		}
		if err != nil {
			return Result[Event]{}, err
		}
	}
	r.Whole = whole && r.Broken == "" // nobody looked further
	r.States, r.Took = len(states), time.Since(start)
	return r, nil
}

func trace[Event any](links []link[Event], to int) (all []Event) {
	for ; links[to].from >= 0; to = int(links[to].from) {
		all = append(all, links[to].event)
	}
	slices.Reverse(all)
	return all
}
