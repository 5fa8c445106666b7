package room

import (
	"math/bits"
	"time"
)

// EventState is what an event is doing to a room at one moment. The zero value:
// no event is under way.
type EventState struct {
	Name          string
	Active        bool      // between Start and End: its overrides hold
	Prequeueing   bool      // between PrequeueStart and Start: who comes waits for Start
	Shuffle       bool      // those of the pre-queue get places at random
	Method        Method    // that holds from Start to End; Passthrough as well where Policy is Open
	PrequeueStart time.Time // zero: the event has no pre-queue
	Start, End    time.Time
}

// At returns the settings that hold at now, and what an event is doing. From an
// event's start up to its end its overrides replace the room's settings; what it
// leaves nil is the room's. An event that is suspended does not happen, and none
// happens in a suspended room. The result is for reading: it still names all
// events, so that Place gives the same answer from it.
func (s *Settings) At(now time.Time) (Settings, EventState) {
	e := s.eventAt(now)
	if e == nil {
		return *s, EventState{}
	}
	return s.in(e, now), s.state(e, now)
}

// at is At. Without an event it returns s itself.
func (s *Settings) at(now time.Time) (*Settings, EventState) {
	e := s.eventAt(now)
	if e == nil {
		return s, EventState{}
	}
	holds := s.in(e, now)
	return &holds, s.state(e, now)
}

// state returns what an event is doing at now.
func (s *Settings) state(e *Event, now time.Time) EventState {
	return EventState{
		Name: e.Name, Shuffle: e.Shuffle,
		PrequeueStart: e.PrequeueStart, Start: e.Start, End: e.End,
		Active: !now.Before(e.Start), Prequeueing: now.Before(e.Start),
		Method: s.methodIn(e),
	}
}

// in returns the settings that hold at now, in an event or the pre-queue of it.
func (s *Settings) in(e *Event, now time.Time) Settings {
	out := *s
	if !now.Before(e.Start) {
		override(&out.TotalActiveUsers, e.TotalActiveUsers)
		override(&out.NewUsersPerMinute, e.NewUsersPerMinute)
		override(&out.SessionDuration, e.SessionDuration)
		override(&out.QueueingMethod, e.QueueingMethod)
		override(&out.DisableSessionRenewal, e.DisableSessionRenewal)
	}
	return out
}

// methodIn returns how places are given from the start of an event to its end.
func (s *Settings) methodIn(e *Event) Method {
	method := s.QueueingMethod
	override(&method, e.QueueingMethod)
	if s.Policy == Open && method != Reject {
		return Passthrough
	}
	return method
}

func override[T any](setting *T, by *T) {
	if by != nil {
		*setting = *by
	}
}

// effective is at with defaults filled in.
func (s *Settings) effective(now time.Time) (*Settings, EventState) {
	if s.complete() {
		return s.at(now)
	}
	full := s.WithDefaults()
	return full.at(now)
}

// eventAt returns the event that is active or prequeueing at now, or nil. Events
// do not overlap, so there is at most one.
func (s *Settings) eventAt(now time.Time) *Event {
	if s.Suspended {
		return nil
	}
	for i := range s.Events {
		e := &s.Events[i]
		if !e.Suspended && !now.Before(e.begin()) && now.Before(e.End) {
			return e
		}
	}
	return nil
}

// nextEdge returns when an event next changes what holds: when a pre-queue begins,
// and when an event starts or ends. Zero: never.
func (s *Settings) nextEdge(now time.Time) (next time.Time) {
	if s.Suspended {
		return next
	}
	for i := range s.Events {
		e := &s.Events[i]
		if e.Suspended {
			continue
		}
		for _, at := range [...]time.Time{e.PrequeueStart, e.Start, e.End} {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// closed reports whether nobody is let in.
func (s *Settings) closed() bool { return s.QueueAll || s.QueueingMethod == Reject }

// open reports whether whoever comes is let in, but for those who wait for an
// event to start.
func (s *Settings) open() bool {
	return !s.closed() && (s.Policy == Open || s.QueueingMethod == Passthrough)
}

// begin returns when an event first touches the room.
func (e *Event) begin() time.Time {
	if e.PrequeueStart.IsZero() {
		return e.Start
	}
	return e.PrequeueStart
}

// queued reports whether a visitor who arrived at arrival is one of those who
// wait for the event to start.
func (e *Event) queued(arrival time.Time) bool {
	return !e.Suspended && !e.PrequeueStart.IsZero() && !arrival.Before(e.PrequeueStart) && arrival.Before(e.Start)
}

// Place returns where a visitor stands in the order of the queue. For most that
// is the arrival. Those of a pre-queue stand between the first full bucket after
// its start and the event's start: in order of arrival or, if the event shuffles,
// at a point drawn by a keyed hash of the visitor and the event. So a bucket
// never holds both those who wait for the start and those who came before.
//
// It is a pure function: every node with the same key and settings comes to the
// same place, at any time and for ever, and nothing has to be done at the start.
func (s *Settings) Place(key []byte, visitor [16]byte, arrival time.Time) time.Time {
	if s.Suspended {
		return arrival
	}
	for i := range s.Events {
		e := &s.Events[i]
		if !e.queued(arrival) {
			continue
		}
		from := e.held(s.BucketSpan)
		span := e.Start.Sub(from)
		if span <= 0 {
			return arrival
		}
		if e.Shuffle {
			point, _ := bits.Mul64(mix(keyedHash(key, s.ID, visitor)^mix(uint64(e.Start.UnixMilli())^placeSalt)), uint64(span))
			return from.Add(time.Duration(point))
		}
		hi, lo := bits.Mul64(uint64(arrival.Sub(e.PrequeueStart)), uint64(span))
		point, _ := bits.Div64(hi, lo, uint64(e.Start.Sub(e.PrequeueStart)))
		return from.Add(time.Duration(point))
	}
	return arrival
}

// placeSalt keeps places apart from whatever else is drawn from the same hash.
const placeSalt = 0x706c6163655f6f66

// held returns where the places of an event's pre-queue begin: at the start of
// the first bucket that holds nobody who came before it.
func (e *Event) held(bucket time.Duration) time.Time {
	width := seconds(bucket)
	start := bucketStart(e.PrequeueStart.Unix(), width)
	from := time.Unix(start, 0)
	if from.Before(e.PrequeueStart) {
		from = from.Add(time.Duration(width) * time.Second)
	}
	return from
}

// Jitter returns the interval that a visitor who polls at at is told. It is
// RefreshInterval, but where chance decides who gets in: there it is spread by a
// fifth either way, anew at each poll, so that nobody stays a step ahead of
// somebody else by the moment of their first request. It is in whole seconds, as
// browsers take it, and a function of its arguments.
func (s *Settings) Jitter(visitor [16]byte, at time.Time) time.Duration {
	if s.QueueingMethod != Random {
		return s.RefreshInterval
	}
	least, most := s.refreshRange()
	steps := uint64((most-least)/time.Second) + 1
	step, _ := bits.Mul64(mix(fold(visitor)^mix(uint64(at.UnixMilli()))), steps)
	return least + time.Duration(step)*time.Second
}

// refreshRange returns the shortest and the longest interval that visitors are
// told.
func (s *Settings) refreshRange() (least, most time.Duration) {
	every := s.RefreshInterval
	if s.QueueingMethod != Random {
		return every, every
	}
	spread := max(time.Second, (every / jitterPart).Truncate(time.Second))
	return max(time.Second, every-spread), every + spread
}

// jitterPart is the part of the interval by which it may be shorter or longer.
const jitterPart = 5
