package page

import (
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// Input is what one answer is made from. Settings and Verdict are required.
type Input struct {
	// Settings are those that hold: of the view that the verdict was decided from,
	// if there is one.
	Settings *room.Settings
	Verdict  *node.Verdict
	Now      time.Time
	// AcceptLanguage is the request's field of that name; it may be empty.
	AcceptLanguage []byte
	// Unsafe says that the request was to change something, which it did not.
	Unsafe bool
	// Crowded says that the visitor got no place in the line, because too many new
	// ones come: Verdict says no more then than when to ask again.
	Crowded bool
	// Down says that nobody is let in because the site does not answer. Places are kept.
	Down bool
	// Still is for previews: the page does not ask again by itself.
	Still bool
}

// State is everything that is told in one answer: see [Variables]. Page.Fill makes
// it, and it is good until the next Fill. It keeps nothing of the Input.
type State struct {
	lang      *lang.Language
	situation situation
	roomName  string
	operator  string // message of the operator
	now       time.Time
	updated   time.Time // when the visitor's last request counted
	arrival   time.Time // zero: the visitor has no place
	unsafe    bool
	crowded   bool
	down      bool
	still     bool
	json      bool // whether the page may ask for JSON

	method   room.Method
	queueAll bool
	estimate room.Estimate // zero minutes if not known
	full     bool
	progress int // percent, -1: not known

	intervals
	eventTimes
}

// intervals are in seconds.
type intervals struct {
	refresh int // until the page asks again; 0: it never does
	away    int // the same while nobody looks
	kept    int // for which the place is kept without a request
}

// eventTimes is what a page tells of the room's event.
type eventTimes struct {
	event         room.EventState
	waitsForEvent bool
	untilStart    int // minutes, rounded up
	untilEnd      int
	startSeconds  int // rounded up
}

// dayMinutes is the longest wait whose length is told. The hosted templates that
// operators bring say "more than a day" where the queue is full.
const dayMinutes = 24 * 60

// Fill makes s what is told to the visitor of in.
func (p *Page) Fill(s *State, in Input) {
	v, set := in.Verdict, in.Settings
	*s = State{
		lang:      lang.Match(in.AcceptLanguage, p.fallback),
		roomName:  set.Name,
		operator:  p.message,
		now:       in.Now,
		updated:   v.Pass.LastPoll,
		arrival:   v.Pass.Arrival,
		intervals: intervals{refresh: refreshSeconds(v, set), kept: int(set.PlaceKept / time.Second)},
		unsafe:    in.Unsafe,
		crowded:   in.Crowded,
		down:      in.Down,
		still:     in.Still,
		json:      !p.noJSON,
		method:    set.QueueingMethod,
		queueAll:  set.QueueAll,
		estimate:  v.Estimate,
		progress:  -1,
	}
	if s.updated.IsZero() {
		s.updated = in.Now
	}
	if s.queueAll || !s.estimate.Known {
		s.estimate = room.Estimate{Position: v.Estimate.Position, Ahead: v.Estimate.Ahead}
	}
	if s.down {
		s.estimate = room.Estimate{} // those who come first may not be counted
	}
	s.estimate.Position, s.estimate.Ahead = max(0, s.estimate.Position), max(0, s.estimate.Ahead)
	s.full = s.estimate.Minutes > dayMinutes
	s.away = s.refresh
	if v.View != nil {
		s.setEvent(v.View.Event)
		if s.refresh > 0 && !s.arrival.IsZero() {
			s.away = roundUp(v.View.Away(v.Estimate, time.Duration(s.refresh)*time.Second, in.Now), time.Second)
		}
	}
	s.situation = s.situationOf()
	s.setProgress()
}

// setEvent takes in what the room's event is doing. Who waited before its
// pre-queue began does not wait for the event, but goes on being let in.
func (s *State) setEvent(e room.EventState) {
	s.event = e
	s.waitsForEvent = e.Prequeueing && !s.arrival.Before(e.PrequeueStart)
	if e.Prequeueing {
		s.untilStart = roundUp(e.Start.Sub(s.now), time.Minute)
	}
	if e.Prequeueing || e.Active {
		s.untilEnd = roundUp(e.End.Sub(s.now), time.Minute)
	}
	if s.waitsForEvent {
		s.startSeconds = roundUp(e.Start.Sub(s.now), time.Second)
	}
}

// setProgress says how much of the wait is over, measured in time: what has been
// waited, of that and what is left. Since an estimate does not go up while a
// visitor stays, this does not go down. Under random nobody gets nearer by waiting.
func (s *State) setProgress() {
	var left time.Duration
	switch {
	case s.arrival.IsZero():
		return
	case s.waitsForEvent:
		left = s.event.Start.Sub(s.now)
	case s.refresh == 0:
		return
	case s.estimate.Known && !s.full && s.method != room.Random:
		left = time.Duration(s.estimate.Minutes) * time.Minute
	default:
		return
	}
	waited, left := max(0, s.now.Sub(s.arrival)), max(0, left)
	if waited+left > 0 {
		s.progress = min(99, int(100*waited.Seconds()/(waited+left).Seconds()))
	}
}

// Refresh is in how many seconds the visitor shall ask again; 0 is never, because
// the room rejects.
func (s *State) Refresh() int { return s.refresh }

// Language is the tag of the language of the answer (BCP 47).
func (s *State) Language() string { return s.lang.Tag() }

// refreshDefault is for rooms that say nothing.
const refreshDefault = 20 * time.Second

// refreshSeconds rounds up, which keeps the next poll from being too early.
func refreshSeconds(v *node.Verdict, set *room.Settings) int {
	d := v.Refresh
	if d <= 0 {
		if set.QueueingMethod == room.Reject && (v.View == nil || !v.View.Event.Prequeueing) {
			return 0
		}
		if d = set.RefreshInterval; d <= 0 {
			d = refreshDefault
		}
	}
	return roundUp(d, time.Second)
}

// roundUp returns how many units d has, 0 for none or less.
func roundUp(d, unit time.Duration) int { return int((max(0, d) + unit - 1) / unit) }
