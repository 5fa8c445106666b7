package page

import (
	"strconv"

	"github.com/ropeline/ropeline/node/room"
)

// Language writes for visitors. Its texts are plain: no HTML, no control
// characters. Implementations do not change and may be used by many goroutines.
type Language interface {
	Tag() string // BCP 47, for the lang attribute
	Dir() string // "ltr" or "rtl"
	// Title says in one line where the visitor stands.
	Title(Situation) string
	// Message says what will happen, and what the visitor can do about it.
	Message(Situation) string
	Label(Label) string
	// AppendTab appends what stands on the browser's tab.
	AppendTab(dst []byte, position int, title string) []byte
	// AppendNumber appends a number with its digits grouped.
	AppendNumber(dst []byte, n int) []byte
	// AppendMinutes appends a span such as "1 hour and 5 minutes".
	AppendMinutes(dst []byte, minutes int) []byte
	// AppendRange appends a span between two.
	AppendRange(dst []byte, from, to int) []byte
}

// Label is a short text of the built-in page.
type Label uint8

const (
	Position     Label = iota // above the place in line
	PeopleAhead               // above a number
	Wait                      // above a span
	StartsIn                  // above a span
	NotKnown                  // instead of a span
	MoreThanADay              // instead of a span
	Stay                      // the page keeps itself up to date
	Updated                   // before a time of day
	Progress                  // names the bar
	Notice                    // above what the operator has to say
	Lost                      // no connection, tried again, the place is kept
	Turn                      // the visitor may come in now
	NotDelivered              // what was sent has to be sent again
	labels                    // how many there are
)

// english is spoken where no other language is asked for or known.
type english struct{}

func (english) Tag() string { return "en-US" }
func (english) Dir() string { return "ltr" }

func (english) Title(s Situation) string {
	switch s {
	case InDraw:
		return "You are waiting to come in"
	case BeforeStart, BeforeDraw:
		return "It has not started yet"
	case TurnedAway:
		return "Nobody is let in right now"
	case Full:
		return "The line is very long"
	}
	return "You are in line"
}

func (english) Message(s Situation) string {
	switch s {
	case InDraw:
		return "Many people want to come in right now. The order in which they are admitted is random: nothing is gained by coming earlier or by reloading this page."
	case BeforeDraw:
		return "At the start, all who are here get their places in line at random. There is no need to hurry, and nothing is gained by reloading this page."
	case BeforeStart:
		return "At the start, people are admitted in the order in which they came. You have your place, and reloading this page does not change it."
	case HeldBack:
		return "Nobody is let in at the moment. Your place is kept, and you will be let in automatically when the line moves and it is your turn."
	case Full:
		return "So many people are waiting that it may take more than a day. You can stay in line, or come back at another time."
	case TurnedAway:
		return "Nobody can queue at the moment either, and this page does not reload by itself. Please come back later."
	}
	return "Many people want to come in right now. You will be let in automatically when it is your turn. Reloading this page does not move you forward or back."
}

var englishLabels = [labels]string{
	Position:     "Your position",
	PeopleAhead:  "People ahead of you",
	Wait:         "Estimated wait",
	StartsIn:     "Starts in",
	NotKnown:     "not known yet",
	MoreThanADay: "more than a day",
	Stay:         "Please do not close this page. It keeps itself up to date.",
	Updated:      "Last updated",
	Progress:     "Progress",
	Notice:       "Message from this site",
	Lost:         "No connection, trying again. You keep your place.",
	Turn:         "It is your turn",
	NotDelivered: "What you sent has not been delivered. Please send it again once you are in.",
}

func (english) Label(l Label) string { return englishLabels[l] }

func (english) AppendMinutes(dst []byte, minutes int) []byte { return room.AppendMinutes(dst, minutes) }

func (e english) AppendRange(dst []byte, from, to int) []byte {
	dst = e.AppendMinutes(dst, from)
	dst = append(dst, " – "...)
	return e.AppendMinutes(dst, to)
}

func (e english) AppendTab(dst []byte, position int, title string) []byte {
	dst = e.AppendNumber(append(dst, '#'), position)
	return append(append(dst, " · "...), title...)
}

func (english) AppendNumber(dst []byte, n int) []byte {
	start := len(dst)
	dst = strconv.AppendInt(dst, int64(max(n, 0)), 10)
	for i := len(dst) - 3; i > start; i -= 3 {
		dst = append(dst, 0)
		copy(dst[i+1:], dst[i:])
		dst[i] = ','
	}
	return dst
}
