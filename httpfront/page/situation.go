package page

import "github.com/ropeline/ropeline/node/room"

// Situation is what a visitor who is not let in is in, as the page tells it.
type Situation uint8

const (
	InLine      Situation = iota // places go by order
	InDraw                       // places go at random
	BeforeStart                  // the visitor waits for an event, and keeps the order
	BeforeDraw                   // the visitor waits for an event, at whose start places are drawn
	Full                         // places go by order, and the wait is so long that its length means little
	HeldBack                     // nobody is let in, places are kept
	TurnedAway                   // nobody is let in, and there is no line
)

func (s *State) situationOf() Situation {
	switch {
	case s.refresh == 0:
		return TurnedAway
	case s.waitsForEvent && s.event.Shuffle:
		return BeforeDraw
	case s.waitsForEvent:
		return BeforeStart
	case s.queueAll:
		return HeldBack
	case s.method == room.Random:
		return InDraw
	case s.full:
		return Full
	}
	return InLine
}
