package lang

// Text names a text without numbers in it. The zero value is TitleInLine.
type Text uint8

// The titles say in one line where a visitor stands, the messages what will
// happen and what the visitor can do about it, the labels stand before or above
// a value, and the values stand after one.
const (
	TitleInLine      Text = iota // places go by order, or are kept while nobody is let in
	TitleInDraw                  // places go at random
	TitleBeforeStart             // the visitor waits for an event
	TitleTurnedAway              // nobody is let in, and there is no line
	TitleFull                    // the wait is so long that its length means little
	TitleYourTurn                // the page is about to open
	TitleUnreachable             // the site behind the waiting room, or the room itself
	TitleLimited                 // a rate limit refuses the visitor

	MessageInLine
	MessageInDraw
	MessageBeforeStart        // places are kept at the start
	MessageBeforeStartShuffle // places are drawn at the start
	MessageHeldBack           // nobody is let in, places are kept
	MessageTurnedAway
	MessageFull
	MessageCrowded     // too many new visitors come, and this one has no place in the line
	MessageUnreachable // to those who have no place, too
	MessageLimited

	LabelPosition // before the visitor's own position
	LabelAhead    // before the number of people who come first
	LabelWait     // before a span, a range, WaitUnknown or MoreThanDay
	LabelStart    // before the span until an event starts
	LabelUpdated  // before a clock time
	LabelProgress // names the bar
	LabelNotice   // above what the operator has to say

	WaitUnknown
	LessThanMinute
	MoreThanDay

	StayOpen         // for a page that updates in place
	StayOpenNoScript // for a page that reloads by itself, as one does without a script
	ConnectionLost   // an update failed, and will be tried again
	NotDelivered     // what a form sent did not reach the site

	textCount int = iota
)

// kind is what a text is for. It bounds its length and says how it ends.
type kind uint8

const (
	title kind = iota
	message
	label
	value
	hint
	pieces // put together with others
)

// longest is the most characters that a text of a kind may have. What is longer
// breaks the layout on a small telephone, or makes the page heavier than a
// crowded network likes.
var longest = [...]int{title: 40, message: 220, label: 34, value: 34, hint: 120, pieces: 48}

// spec is what a text must look like.
type spec struct {
	key  string
	kind kind
}

var textSpecs = [textCount]spec{
	TitleInLine:      {"titleInLine", title},
	TitleInDraw:      {"titleInDraw", title},
	TitleBeforeStart: {"titleBeforeStart", title},
	TitleTurnedAway:  {"titleTurnedAway", title},
	TitleFull:        {"titleFull", title},
	TitleYourTurn:    {"titleYourTurn", title},
	TitleUnreachable: {"titleUnreachable", title},
	TitleLimited:     {"titleLimited", title},

	MessageInLine:             {"messageInLine", message},
	MessageInDraw:             {"messageInDraw", message},
	MessageBeforeStart:        {"messageBeforeStart", message},
	MessageBeforeStartShuffle: {"messageBeforeStartShuffle", message},
	MessageHeldBack:           {"messageHeldBack", message},
	MessageTurnedAway:         {"messageTurnedAway", message},
	MessageFull:               {"messageFull", message},
	MessageCrowded:            {"messageCrowded", message},
	MessageUnreachable:        {"messageUnreachable", message},
	MessageLimited:            {"messageLimited", message},

	LabelPosition: {"labelPosition", label},
	LabelAhead:    {"labelAhead", label},
	LabelWait:     {"labelWait", label},
	LabelStart:    {"labelStart", label},
	LabelUpdated:  {"labelUpdated", label},
	LabelProgress: {"labelProgress", label},
	LabelNotice:   {"labelNotice", label},

	WaitUnknown:    {"waitUnknown", value},
	LessThanMinute: {"lessThanMinute", value},
	MoreThanDay:    {"moreThanDay", value},

	StayOpen:         {"stayOpen", hint},
	StayOpenNoScript: {"stayOpenNoScript", hint},
	ConnectionLost:   {"connectionLost", hint},
	NotDelivered:     {"notDelivered", hint},
}

// String returns the name of the text in the files of texts.
func (t Text) String() string { return textSpecs[t].key }

// joint is a pattern that holds other values.
type joint uint8

const (
	jointTab   joint = iota // the title of a browser tab
	jointSpan               // two units of time
	jointRange              // from one span to another
	jointCount int   = iota
)

// jointSpecs names each pattern and the two placeholders that it must have.
var jointSpecs = [jointCount]struct {
	key   string
	holes [2]string
}{
	jointTab:   {"tab", [2]string{"position", "title"}},
	jointSpan:  {"span", [2]string{"first", "second"}},
	jointRange: {"range", [2]string{"low", "high"}},
}

// count is what there can be a number of.
type count uint8

const (
	countMinutes count = iota
	countHours
	countDays
	countRange     // minutes, from one number to another; the greater one decides the form
	countCount int = iota
)

// countSpecs names each count, its placeholders, and the numbers that it is
// asked for, from low to high.
var countSpecs = [countCount]struct {
	key       string
	holes     []string
	low, high int
}{
	countMinutes: {"minutes", []string{"n"}, 1, 59},
	countHours:   {"hours", []string{"n"}, 1, 23},
	countDays:    {"days", []string{"n"}, 1, 1000},
	countRange:   {"rangeMinutes", []string{"low", "high"}, 2, 59},
}
