package httpfront

import (
	"encoding/json"
	"strconv"

	"github.com/ropeline/ropeline/node/room"
)

// appendJSON appends what programs are told. The object and its first fields
// have the names and meanings that clients of waiting rooms already know;
// position, peopleAhead, arrival and room are ours.
//
// Fields about events and challenges are always there, with the values that
// mean "none", because clients read them without asking whether they exist.
func (w *waiting) appendJSON(b []byte) []byte {
	e := w.verdict.Estimate
	minutes := 0
	if e.Known {
		minutes = e.Minutes
	}
	method := w.settings.QueueingMethod
	if method == "" {
		method = room.FIFO
	}
	b = append(b, `{"cfWaitingRoom":{"inWaitingRoom":true`...)
	b = appendBool(b, "waitTimeKnown", e.Known)
	b = appendInt(b, "waitTime", minutes)
	b = appendInt(b, "waitTime25Percentile", 0)
	b = appendInt(b, "waitTime50Percentile", 0)
	b = appendInt(b, "waitTime75Percentile", 0)
	b = append(b, `,"waitTimeFormatted":"`...)
	if e.Known {
		b = appendMinutes(b, minutes)
	} else {
		b = append(b, "unavailable"...)
	}
	b = append(b, '"')
	b = appendBool(b, "queueIsFull", e.Known && minutes > 24*60)
	b = appendBool(b, "queueAll", false)
	b = append(b, `,"lastUpdated":"`...)
	b = w.updated().AppendFormat(b, timeFormat)
	b = append(b, '"')
	b = appendInt(b, "refreshIntervalSeconds", int(w.refresh()))
	b = appendText(b, "queueingMethod", string(method))
	b = appendBool(b, "isFIFOQueue", method == room.FIFO)
	b = appendBool(b, "isRandomQueue", method == "random")
	b = appendBool(b, "isPassthroughQueue", method == room.Passthrough)
	b = appendBool(b, "isRejectQueue", method == "reject")
	b = appendBool(b, "isEventActive", false)
	b = appendBool(b, "isEventPrequeueing", false)
	b = appendInt(b, "timeUntilEventStart", 0)
	b = appendText(b, "timeUntilEventStartFormatted", "unavailable")
	b = appendInt(b, "timeUntilEventEnd", 0)
	b = appendText(b, "timeUntilEventEndFormatted", "unavailable")
	b = appendBool(b, "shuffleAtEventStart", false)
	b = appendText(b, "turnstile", "")
	b = appendBool(b, "infiniteQueue", false)
	b = appendInt(b, "position", max(e.Position, 0))
	b = appendInt(b, "peopleAhead", max(e.Ahead, 0))
	b = append(b, `,"arrival":"`...)
	b = w.verdict.Pass.Arrival.UTC().AppendFormat(b, timeFormat)
	b = append(b, '"')
	b = appendText(b, "room", w.settings.Name)
	return append(b, "}}\n"...)
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
