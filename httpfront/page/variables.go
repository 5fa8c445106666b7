package page

import (
	"iter"
	"slices"
	"time"

	"github.com/ropeline/ropeline/httpfront/page/lang"
	"github.com/ropeline/ropeline/node/room"
)

// Type is what a variable holds.
type Type string

// In templates a Bool, an Int and a Text can be sections: false, 0 and the empty
// text are no. In JSON a Time is a text, or null for none.
const (
	Bool Type = "bool"
	Int  Type = "int"
	Text Type = "text"
	Time Type = "time" // RFC 3339 in UTC, with milliseconds
	HTML Type = "HTML" // for templates to insert unescaped
)

// Variable is one thing that templates and JSON tell.
type Variable struct {
	Name         string
	Type         Type
	Meaning      string // for operators, one sentence without a full stop
	Own          bool   // ropeline's own; the others are those that operators bring
	TemplateOnly bool   // not in the JSON

	boolean func(*State) bool           // of a Bool
	integer func(*State) int            // of an Int
	words   func(*State, []byte) []byte // of a Text or HTML: appends it
	moment  func(*State) time.Time      // of a Time; zero: none
}

// Variables yields all variables, in the order in which the JSON has them.
func Variables() iter.Seq[Variable] { return slices.Values(variables) }

// variables is what there is to tell: first what templates and clients of hosted
// waiting rooms know, then ours. The documented texts are English in every
// language; those of ours that end in Text are in the visitor's. Fields about
// events and challenges are there always, with the values that mean none, because
// clients read them without asking whether they exist.
var variables = append(documented(), ours()...)

// indexOf finds variables by name.
var indexOf = func() map[string]int {
	m := make(map[string]int, len(variables))
	for i := range variables {
		m[variables[i].Name] = i
	}
	return m
}()

func boolean(name, meaning string, f func(*State) bool) Variable {
	return Variable{Name: name, Type: Bool, Meaning: meaning, boolean: f}
}

func integer(name, meaning string, f func(*State) int) Variable {
	return Variable{Name: name, Type: Int, Meaning: meaning, integer: f}
}

func words(name, meaning string, f func(*State, []byte) []byte) Variable {
	return Variable{Name: name, Type: Text, Meaning: meaning, words: f}
}

func moment(name, meaning string, f func(*State) time.Time) Variable {
	return Variable{Name: name, Type: Time, Meaning: meaning, moment: f}
}

func onlyInTemplates(v Variable) Variable {
	v.TemplateOnly = true
	return v
}

func documented() []Variable {
	method := func(m room.Method) func(*State) bool {
		return func(s *State) bool { return s.method == m }
	}
	return []Variable{
		boolean("inWaitingRoom", "true: the visitor waits", func(*State) bool { return true }),
		boolean("waitTimeKnown", "whether the wait could be estimated", func(s *State) bool { return s.estimate.Known }),
		integer("waitTime", "estimated wait in minutes; under `random` half of all wait no longer; 0 if not known", func(s *State) int { return s.estimate.Minutes }),
		integer("waitTime25Percentile", "minutes than which a quarter of all wait no longer, under `random`; else 0", func(s *State) int { return s.estimate.P25 }),
		integer("waitTime50Percentile", "the same for half of all", (*State).half),
		integer("waitTime75Percentile", "the same for three quarters", func(s *State) int { return s.estimate.P75 }),
		words("waitTimeFormatted", "the wait in English, under `random` a range; `unavailable` if not known",
			func(s *State, b []byte) []byte { return s.estimate.AppendFormatted(b, s.method) }),
		onlyInTemplates(integer("waitTimeHours", "whole hours of `waitTime`", func(s *State) int { return s.estimate.Minutes / 60 })),
		onlyInTemplates(integer("waitTimeHourMinutes", "minutes of `waitTime` beyond whole hours", func(s *State) int { return s.estimate.Minutes % 60 })),
		boolean("queueIsFull", "whether the wait is longer than a day", func(s *State) bool { return s.full }),
		boolean("queueAll", "whether the operator lets nobody in", func(s *State) bool { return s.queueAll }),
		moment("lastUpdated", "when the visitor's last request counted; one that came too early does not", func(s *State) time.Time { return s.updated }),
		integer("refreshIntervalSeconds", "in how many seconds to ask again; 0: never, because the room rejects and no pre-queue runs", (*State).Refresh),
		words("queueingMethod", "`fifo`, `random`, `passthrough` or `reject`", func(s *State, b []byte) []byte { return append(b, s.method...) }),
		boolean("isFIFOQueue", "whether that is `fifo`", method(room.FIFO)),
		boolean("isRandomQueue", "whether that is `random`", method(room.Random)),
		boolean("isPassthroughQueue", "whether that is `passthrough`", method(room.Passthrough)),
		boolean("isRejectQueue", "whether that is `reject`", method(room.Reject)),
		boolean("isEventActive", "whether an event or its pre-queue runs", (*State).eventRuns),
		boolean("isEventPrequeueing", "whether an event's pre-queue runs", func(s *State) bool { return s.event.Prequeueing }),
		integer("timeUntilEventStart", "minutes until the event starts, during the pre-queue; else 0", func(s *State) int { return s.untilStart }),
		words("timeUntilEventStartFormatted", "the same in English; `unavailable` if there is none",
			func(s *State, b []byte) []byte { return appendUntil(b, s.untilStart, s.event.Prequeueing) }),
		integer("timeUntilEventEnd", "minutes until the event ends, while it or its pre-queue runs; else 0", func(s *State) int { return s.untilEnd }),
		words("timeUntilEventEndFormatted", "the same in English; `unavailable` if there is none",
			func(s *State, b []byte) []byte { return appendUntil(b, s.untilEnd, s.eventRuns()) }),
		boolean("shuffleAtEventStart", "whether those of the pre-queue get places at random", func(s *State) bool { return s.event.Shuffle }),
		{Name: "turnstile", Type: HTML, Meaning: "HTML of a challenge; empty, for there is none here", words: nothing},
		boolean("infiniteQueue", "whether the visitor failed a challenge; false, for there is none here", func(*State) bool { return false }),
	}
}

func ours() []Variable {
	list := []Variable{
		integer("position", "place in line, 1 is next; 0: there is no order, or it is not known", func(s *State) int { return s.estimate.Position }),
		integer("peopleAhead", "people before the visitor, if `position` is not 0", func(s *State) int { return s.estimate.Ahead }),
		boolean("siteDown", "whether nobody is let in because the site does not answer", func(s *State) bool { return s.down }),
		boolean("progressKnown", "whether `progress` means anything; not under `random`, where nobody gets nearer by waiting", func(s *State) bool { return s.progress >= 0 }),
		integer("progress", "how much of the wait is over, in percent of its time, 0 to 99", func(s *State) int { return max(0, s.progress) }),
		integer("waitTimeFrom", "the lower end of the wait in minutes: `waitTime25Percentile` under `random`, else `waitTime`", func(s *State) int { from, _ := s.waitRange(); return from }),
		integer("waitTimeTo", "its upper end: `waitTime75Percentile` under `random`, else `waitTime`", func(s *State) int { _, to := s.waitRange(); return to }),
		moment("arrival", "when the visitor came; none if there is no place to keep", func(s *State) time.Time { return s.arrival }),
		integer("hiddenRefreshIntervalSeconds", "the same as `refreshIntervalSeconds` for who does not look at the page: seldom, but often enough to keep the place and to meet the turn", func(s *State) int { return s.away }),
		integer("placeKeptSeconds", "for how long after a request the place is kept", func(s *State) int { return s.kept }),
		words("room", "the room's name", func(s *State, b []byte) []byte { return append(b, s.roomName...) }),
		boolean("waitsForEvent", "whether the visitor waits for the event to start; who came before its pre-queue does not", func(s *State) bool { return s.waitsForEvent }),
		integer("secondsUntilEventStart", "for a countdown, if `waitsForEvent`; else 0", func(s *State) int { return s.startSeconds }),
		boolean("notDelivered", "whether the request was to change something, which it did not and has to be sent again", func(s *State) bool { return s.unsafe }),
		words("operatorMessage", "what the operator has to say; plain text, which templates can insert only escaped", func(s *State, b []byte) []byte { return append(b, s.operator...) }),
		words("language", "the language of the texts below (BCP 47)", func(s *State, b []byte) []byte { return append(b, s.lang.Tag()...) }),
		words("direction", "`ltr` or `rtl`, how that language is written", func(s *State, b []byte) []byte { return append(b, s.lang.Dir()...) }),
		words("title", "where the visitor stands, in a line", func(s *State, b []byte) []byte { return append(b, s.title()...) }),
		words("tab", "`title`, with the position before it if there is one and `Waiting room` after it, for the browser's tab", (*State).appendTab),
		words("message", "what will happen, and what the visitor can do", func(s *State, b []byte) []byte { return append(b, s.message()...) }),
		words("positionText", "`position`, written; empty if it is 0", (*State).appendPosition),
		words("peopleAheadText", "`peopleAhead`, written; empty if `position` is 0", (*State).appendAhead),
		words("waitTimeText", "the wait, written, also that it is not known or longer than a day; empty if the visitor waits for an event or has no place to wait in", (*State).appendWait),
		words("timeUntilEventStartText", "`timeUntilEventStart`, written; empty unless `waitsForEvent`", (*State).appendStart),
	}
	for i := range list {
		list[i].Own = true
	}
	return list
}

func nothing(_ *State, b []byte) []byte { return b }

func appendUntil(b []byte, minutes int, valid bool) []byte {
	if !valid {
		return append(b, "unavailable"...)
	}
	return room.AppendMinutes(b, minutes)
}

func (s *State) half() int {
	if s.method == room.Random {
		return s.estimate.Minutes
	}
	return 0
}

// eventRuns reports whether clients take an event for active: from the start of
// its pre-queue on.
func (s *State) eventRuns() bool { return s.event.Active || s.event.Prequeueing }

func (s *State) waitRange() (from, to int) {
	if s.method == room.Random && s.estimate.P75 > 0 {
		return s.estimate.P25, s.estimate.P75
	}
	return s.estimate.Minutes, s.estimate.Minutes
}

// tabMark ends the title of every waiting page, in whichever language it is: apps that show sites look for the word.
const tabMark = " · Waiting room"

func (s *State) appendTab(b []byte) []byte {
	title := s.title()
	if s.estimate.Position == 0 || s.hasNoPlace() {
		b = append(b, title...)
	} else {
		b = s.lang.AppendTab(b, s.estimate.Position, title)
	}
	return append(b, tabMark...)
}

func (s *State) appendPosition(b []byte) []byte { return s.appendOrdered(b, s.estimate.Position) }
func (s *State) appendAhead(b []byte) []byte    { return s.appendOrdered(b, s.estimate.Ahead) }

func (s *State) appendOrdered(b []byte, n int) []byte {
	if s.estimate.Position == 0 || s.hasNoPlace() {
		return b
	}
	return s.lang.AppendNumber(b, n)
}

func (s *State) appendWait(b []byte) []byte {
	switch {
	case s.waitsForEvent || s.hasNoPlace():
		return b
	case s.full:
		return append(b, s.lang.Text(lang.MoreThanDay)...)
	case !s.estimate.Known:
		return append(b, s.lang.Text(lang.WaitUnknown)...)
	}
	from, to := s.waitRange()
	if from == to {
		return s.lang.AppendMinutes(b, to)
	}
	return s.lang.AppendRange(b, from, to)
}

func (s *State) appendStart(b []byte) []byte {
	if !s.waitsForEvent || s.hasNoPlace() {
		return b
	}
	return s.lang.AppendMinutes(b, s.untilStart)
}
