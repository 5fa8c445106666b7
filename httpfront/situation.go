package httpfront

import (
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// situation is what a visitor who is not let in is in, as the page tells it.
type situation uint8

const (
	inLine      situation = iota // places go by order
	inDraw                       // places go at random
	beforeStart                  // the visitor waits for an event
	heldBack                     // nobody is let in, places are kept
	turnedAway                   // nobody is let in, and there is no line
)

func (w *waiting) situation() situation {
	switch {
	case w.refresh() == 0:
		return turnedAway
	case w.waitsForEvent():
		return beforeStart
	case w.settings.QueueAll:
		return heldBack
	case w.settings.QueueingMethod == room.Random:
		return inDraw
	}
	return inLine
}

// waitsForEvent reports whether the visitor is one of an event's pre-queue. Who
// waited before it began goes on being let in.
func (w *waiting) waitsForEvent() bool {
	e := w.event()
	return e.Prequeueing && !w.verdict.Pass.Arrival.Before(e.PrequeueStart)
}

// event is what the room's event is doing; zero if there is none near.
func (w *waiting) event() room.EventState {
	if w.verdict.View == nil {
		return room.EventState{}
	}
	return w.verdict.View.Event
}

// title is one line that says where the visitor stands.
func (w *waiting) title() string {
	switch w.situation() {
	case inDraw:
		return "You are waiting to come in"
	case beforeStart:
		return "It has not started yet"
	case turnedAway:
		return "Nobody is let in right now"
	}
	return "You are in line"
}

// message says what will happen, and what the visitor can do about it. It is
// plain text in a fixed wording, good for HTML and JSON as it stands.
func (w *waiting) message() string {
	switch w.situation() {
	case inDraw:
		return "Many people want to come in right now. The order in which they are admitted is random: nothing is gained by coming earlier or by reloading this page."
	case beforeStart:
		if w.event().Shuffle {
			return "At the start, all who are here get their places in line at random. There is no need to hurry, and nothing is gained by reloading this page."
		}
		return "At the start, people are admitted in the order in which they came. You have your place, and reloading this page does not change it."
	case heldBack:
		return "Nobody is let in at the moment. Your place is kept, and you will be let in automatically when the line moves and it is your turn."
	case turnedAway:
		return "Nobody can queue at the moment either, and this page does not reload by itself. Please come back later."
	}
	return "Many people want to come in right now. You will be let in automatically when it is your turn. Reloading this page does not move you forward or back."
}

// known reports whether there is an estimate to show.
func (w *waiting) known() bool { return w.verdict.Estimate.Known && !w.settings.QueueAll }

// full reports whether the wait is so long that its length means little.
func (w *waiting) full() bool { return w.known() && w.verdict.Estimate.Minutes > 24*60 }

// appendWait appends the estimate in English, or "unavailable".
func (w *waiting) appendWait(b []byte) []byte {
	e := w.verdict.Estimate
	e.Known = w.known()
	return e.AppendFormatted(b, w.settings.QueueingMethod)
}

// minutesUntil returns how many minutes it is until t, rounded up, 0 if t has
// passed or is not known.
func (w *waiting) minutesUntil(t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return int(max(0, (t.Sub(w.now)+time.Minute-1)/time.Minute))
}
