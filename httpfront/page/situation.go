package page

import (
	"cmp"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
)

// situation is what a visitor who is not let in is in, as the page tells it.
type situation uint8

const (
	inLine       situation = iota // places go by order
	inDraw                        // places go at random
	beforeStart                   // the visitor waits for an event, and keeps the order
	beforeDraw                    // the visitor waits for an event, at whose start places are drawn
	beforeRandom                  // the visitor waits for an event in which there is no order
	beforeOpen                    // the visitor waits for an event that lets everybody in
	beforeNobody                  // the visitor waits for an event, and nobody is let in then either
	longLine                      // places go by order, and the wait is so long that its length means little
	heldBack                      // nobody is let in, places are kept
	turnedAway                    // nobody is let in, and there is no line
	siteDown                      // nobody is let in because the site does not answer, places are kept
	crowded                       // too many new visitors come, and this one is not in the line
)

func (s *State) situationOf() situation {
	switch {
	case s.crowded:
		return crowded
	case s.waitsForEvent:
		return s.beforeEvent()
	case s.refresh == 0:
		return turnedAway
	case s.down:
		return siteDown
	case s.queueAll:
		return heldBack
	case s.method == room.Random:
		return inDraw
	case s.full:
		return longLine
	}
	return inLine
}

// beforeEvent goes by what holds from the start of the event on.
func (s *State) beforeEvent() situation {
	switch method := cmp.Or(s.event.Method, s.method); {
	case s.queueAll || method == room.Reject:
		return beforeNobody
	case method == room.Random:
		return beforeRandom
	case method == room.Passthrough:
		return beforeOpen
	case s.event.Shuffle:
		return beforeDraw
	}
	return beforeStart
}

// hasNoPlace reports whether there is nothing to tell of a place or of a wait.
func (s *State) hasNoPlace() bool { return s.situation == turnedAway || s.situation == crowded }

// title says in a line where the visitor stands.
func (s *State) title() string {
	switch s.situation {
	case inDraw:
		return s.lang.Text(lang.TitleInDraw)
	case beforeStart, beforeDraw, beforeRandom, beforeOpen, beforeNobody:
		return s.lang.Text(lang.TitleBeforeStart)
	case longLine:
		return s.lang.Text(lang.TitleFull)
	case turnedAway, crowded:
		return s.lang.Text(lang.TitleTurnedAway)
	case siteDown:
		return s.lang.Text(lang.TitleUnreachable)
	}
	return s.lang.Text(lang.TitleInLine)
}

// message says what will happen, and what the visitor can do about it.
func (s *State) message() string {
	switch s.situation {
	case inDraw, beforeRandom:
		return s.lang.Text(lang.MessageInDraw)
	case beforeStart:
		return s.lang.Text(lang.MessageBeforeStart)
	case beforeDraw:
		return s.lang.Text(lang.MessageBeforeStartShuffle)
	case longLine:
		return s.lang.Text(lang.MessageFull)
	case heldBack, siteDown, beforeNobody:
		return s.lang.Text(lang.MessageHeldBack)
	case turnedAway:
		return s.lang.Text(lang.MessageTurnedAway)
	case crowded:
		return s.lang.Text(lang.MessageCrowded)
	}
	return s.lang.Text(lang.MessageInLine)
}
