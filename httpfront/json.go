package httpfront

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// appendJSON appends what programs are told. The object and its first fields
// have the names and meanings that clients of waiting rooms already know; those
// from position on are ours.
//
// Fields about events and challenges are always there, with the values that
// mean "none", because clients read them without asking whether they exist.
func (w *waiting) appendJSON(b []byte) []byte {
	method := w.settings.QueueingMethod
	b = append(b, `{"cfWaitingRoom":{"inWaitingRoom":true`...)
	b = w.appendEstimate(b)
	b = appendBool(b, "queueIsFull", w.full())
	b = appendBool(b, "queueAll", w.settings.QueueAll)
	b = appendTime(b, "lastUpdated", w.updated())
	b = appendInt(b, "refreshIntervalSeconds", int(w.refresh()))
	b = appendText(b, "queueingMethod", string(method))
	b = appendBool(b, "isFIFOQueue", method == room.FIFO)
	b = appendBool(b, "isRandomQueue", method == room.Random)
	b = appendBool(b, "isPassthroughQueue", method == room.Passthrough)
	b = appendBool(b, "isRejectQueue", method == room.Reject)
	b = w.appendEvent(b)
	b = appendText(b, "turnstile", "")
	b = appendBool(b, "infiniteQueue", false)
	b = appendInt(b, "position", max(w.verdict.Estimate.Position, 0))
	b = appendInt(b, "peopleAhead", max(w.verdict.Estimate.Ahead, 0))
	b = appendTime(b, "arrival", w.verdict.Pass.Arrival)
	b = appendText(b, "room", w.settings.Name)
	b = appendBool(b, "waitsForEvent", w.waitsForEvent())
	b = appendText(b, "title", w.title())
	b = appendText(b, "message", w.message())
	return append(b, "}}\n"...)
}

// appendEstimate appends how long the wait is.
func (w *waiting) appendEstimate(b []byte) []byte {
	var e room.Estimate
	if w.known() {
		e = w.verdict.Estimate
	}
	half := 0
	if w.settings.QueueingMethod == room.Random {
		half = e.Minutes
	}
	b = appendBool(b, "waitTimeKnown", e.Known)
	b = appendInt(b, "waitTime", e.Minutes)
	b = appendInt(b, "waitTime25Percentile", e.P25)
	b = appendInt(b, "waitTime50Percentile", half)
	b = appendInt(b, "waitTime75Percentile", e.P75)
	b = append(b, `,"waitTimeFormatted":"`...)
	b = w.appendWait(b)
	return append(b, '"')
}

// appendEvent appends what the room's event is doing. To clients an event is
// active from the start of its pre-queue on.
func (w *waiting) appendEvent(b []byte) []byte {
	e := w.event()
	b = appendBool(b, "isEventActive", e.Active || e.Prequeueing)
	b = appendBool(b, "isEventPrequeueing", e.Prequeueing)
	b = w.appendUntil(b, "timeUntilEventStart", e.Start, e.Prequeueing)
	b = w.appendUntil(b, "timeUntilEventEnd", e.End, e.Active || e.Prequeueing)
	return appendBool(b, "shuffleAtEventStart", e.Shuffle)
}

// appendUntil appends the minutes until t, as a number and in English.
func (w *waiting) appendUntil(b []byte, key string, t time.Time, valid bool) []byte {
	if !valid {
		b = appendInt(b, key, 0)
		return appendText(b, key+"Formatted", "unavailable")
	}
	minutes := w.minutesUntil(t)
	b = appendInt(b, key, minutes)
	b = append(b, `,"`...)
	b = append(b, key...)
	b = append(b, `Formatted":"`...)
	b = room.AppendMinutes(b, minutes)
	return append(b, '"')
}

// appendTime appends a time, null for none.
func appendTime(b []byte, key string, t time.Time) []byte {
	b = appendKey(b, key)
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timeFormat)
	return append(b, '"')
}

func appendKey(b []byte, key string) []byte {
	b = append(append(b, `,"`...), key...)
	return append(b, `":`...)
}

func appendBool(b []byte, key string, v bool) []byte {
	return strconv.AppendBool(appendKey(b, key), v)
}

func appendInt(b []byte, key string, v int) []byte {
	return strconv.AppendInt(appendKey(b, key), int64(v), 10)
}

// appendText appends a text. Those of rooms are plain words nearly always.
func appendText(b []byte, key, v string) []byte {
	b = appendKey(b, key)
	for i := range len(v) {
		if c := v[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '&' {
			quoted, err := json.Marshal(v)
			if err != nil {
				panic("httpfront: a string cannot be written as JSON: " + err.Error())
			}
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), v...)
	return append(b, '"')
}
