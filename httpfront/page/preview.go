package page

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// sample is a made-up state of a room, as previews ask for it. Its fields are the
// documented query parameters.
type sample struct {
	forceQueue, queueIsFull bool
	method                  room.Method
	event                   string // none, prequeueing or started
	shuffle                 bool
	waitTime                int // minutes
	language                string
	room, eventName         string
}

var (
	sampleMethods = []room.Method{room.FIFO, room.Random, room.Passthrough, room.Reject}
	sampleEvents  = []string{"none", "prequeueing", "started"}
)

const sampleWait = 10 // minutes

// samples yields all that differ in what a template may ask.
func samples() iter.Seq[sample] {
	return func(yield func(sample) bool) {
		for _, s := range []sample{{}, {forceQueue: true}, {queueIsFull: true}, {shuffle: true}} {
			for _, s.method = range sampleMethods {
				for _, s.event = range sampleEvents {
					s.waitTime = 65
					if (!s.shuffle || s.event != "none") && !yield(s) {
						return
					}
				}
			}
		}
	}
}

func (s sample) String() string {
	return fmt.Sprintf("with queueing_method=%s, event=%s, force_queue=%v, queue_is_full=%v, shuffle_at_event_start=%v",
		s.method, s.event, s.forceQueue, s.queueIsFull, s.shuffle)
}

// input is what the room of s would answer to a visitor who has waited for a while.
func (s sample) input(now time.Time) Input {
	if s.queueIsFull {
		s.waitTime = max(s.waitTime, dayMinutes+1)
	}
	set := room.Settings{Name: cmp.Or(s.room, "preview"), QueueingMethod: s.method, QueueAll: s.forceQueue}.WithDefaults()
	v := node.Verdict{Refresh: set.RefreshInterval, View: &room.View{Settings: &room.Settings{}}}
	v.Pass.Arrival = now.Add(-4 * time.Minute)
	v.Pass.LastPoll = now
	inOrder := room.Estimate{Known: true, Minutes: s.waitTime, Position: 20*s.waitTime + 1, Ahead: 20 * s.waitTime}
	switch s.method {
	case room.Random:
		v.Estimate = room.Estimate{Known: true, Minutes: s.waitTime, P25: (s.waitTime + 1) / 2, P75: s.waitTime * 2}
	case room.Reject:
		if s.event != "prequeueing" {
			v.Refresh, v.Pass = 0, node.Pass{}
		}
	default:
		v.Estimate = inOrder
	}
	if s.event != "none" {
		v.View.Event = room.EventState{
			Name: cmp.Or(s.eventName, "preview"), Shuffle: s.shuffle, Method: s.method,
			Prequeueing: s.event == "prequeueing", Active: s.event == "started",
			PrequeueStart: now.Add(-5 * time.Minute), Start: now.Add(-time.Minute), End: now.Add(2 * time.Hour),
		}
	}
	if s.event == "prequeueing" {
		e := &v.View.Event
		e.Start = now.Add(time.Duration(s.waitTime) * time.Minute)
		if s.method == room.Reject {
			e.Method = room.FIFO // a room that rejects is opened by its events
		}
		v.Estimate = room.Estimate{}
		if e.Method == room.FIFO && !s.shuffle {
			v.Estimate.Position, v.Estimate.Ahead = inOrder.Position, inOrder.Ahead
		}
	}
	return Input{Settings: &set, Verdict: &v, Now: now, AcceptLanguage: []byte(s.language), Still: true}
}

// Preview makes the page that visitors would get of p in a room that does what query
// says, from t instead of p's own template unless t is nil. The parameters are the
// documented ones, all optional:
//
//	force_queue             true, false: nobody is let in
//	queue_is_full           true, false: the wait is longer than a day
//	queueing_method         fifo, random, passthrough, reject
//	event                   none, prequeueing, started
//	shuffle_at_event_start  true, false; true needs an event
//	waitTime                minutes, 1 to 10080; default 10
//
// and ours:
//
//	language                the tag of one of our languages; default: p's
//	room, event_name        what the room and the event are called
//
// The error names all that is wrong, and what is allowed. A template that cannot be
// rendered is an error too. Whoever serves a preview should do so with PreviewPolicy:
// the template was written by somebody else than who looks at it.
func (p *Page) Preview(t *Template, query url.Values, now time.Time) ([]byte, error) {
	s, err := parseSample(query)
	if err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	var state State
	p.Fill(&state, s.input(now))
	if t == nil {
		t = p.template
	}
	if t == nil {
		return p.builtin.append(nil, &state), nil
	}
	page, err := t.append(nil, &state)
	if err != nil {
		return nil, fmt.Errorf("preview: template: %w", err)
	}
	return page, nil
}

// PreviewPolicy is the Content-Security-Policy for previews: scripts run, but with
// no origin, so that they can neither read nor ask for anything of the viewer's.
const PreviewPolicy = "sandbox allow-scripts; frame-ancestors 'self'"

// previewWaitMax is a week, and so more than the day from which on a queue is full.
const previewWaitMax = 7 * dayMinutes

// nameMax is how long the names of rooms and events are.
const nameMax = 64

func parseSample(query url.Values) (sample, error) {
	s := sample{method: room.FIFO, event: "none", waitTime: sampleWait}
	parameters := map[string]func(string) error{
		"force_queue":            oneOf(&s.forceQueue, []bool{false, true}),
		"queue_is_full":          oneOf(&s.queueIsFull, []bool{false, true}),
		"queueing_method":        oneOf(&s.method, sampleMethods),
		"event":                  oneOf(&s.event, sampleEvents),
		"shuffle_at_event_start": oneOf(&s.shuffle, []bool{false, true}),
		"waitTime": func(value string) (err error) {
			if s.waitTime, err = strconv.Atoi(value); err != nil || s.waitTime < 1 || s.waitTime > previewWaitMax {
				return fmt.Errorf("want minutes from 1 to %d", previewWaitMax)
			}
			return nil
		},
		"language": func(value string) error {
			s.language = value
			return checkLanguage(value)
		},
	}
	for name, v := range map[string]*string{"room": &s.room, "event_name": &s.eventName} {
		parameters[name] = func(value string) error {
			if *v = value; len(value) > nameMax {
				return fmt.Errorf("want at most %d characters", nameMax)
			}
			return nil
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(query)) {
		set, ok := parameters[name]
		if !ok {
			errs = append(errs, fmt.Errorf("unknown parameter %q: allowed are %s", name, strings.Join(slices.Sorted(maps.Keys(parameters)), ", ")))
			continue
		}
		if n := len(query[name]); n != 1 {
			errs = append(errs, fmt.Errorf("%s is given %d times: want it once", name, n))
			continue
		}
		if err := set(query[name][0]); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", name, query[name][0], err))
		}
	}
	if s.shuffle && s.event == "none" {
		errs = append(errs, errors.New("shuffle_at_event_start=true: want an event: event=prequeueing or event=started"))
	}
	return s, errors.Join(errs...)
}

// oneOf sets *v to the one of allowed that a value is written like.
func oneOf[T any](v *T, allowed []T) func(string) error {
	return func(value string) error {
		var names []string
		for _, a := range allowed {
			name := fmt.Sprint(a)
			if name == value {
				*v = a
				return nil
			}
			names = append(names, name)
		}
		return fmt.Errorf("want %s", strings.Join(names, ", "))
	}
}

// defaults is the Page of the zero Config.
var defaults = sync.OnceValue(func() *Page {
	p, err := New(Config{})
	if err != nil {
		panic("page: " + err.Error())
	}
	return p
})
