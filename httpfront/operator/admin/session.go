package admin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/node/settings"
)

// How long a session lasts is told in minutes, as the dialect has it, and in seconds, since
// it need not be whole minutes here. They are one setting.

const (
	sessionMinutes = "session_duration"
	sessionSeconds = "session_duration_seconds"
	maxSession     = 24 * time.Hour
)

// besidesSession returns the fields of a table without that setting.
func besidesSession[T any](fields []field[T]) []field[T] {
	return slices.DeleteFunc(fields, func(f field[T]) bool { return f.name == sessionMinutes })
}

// minutesOf returns what is shown of a session as minutes: rounded up, since SDKs read
// whole numbers.
func minutesOf(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

// inMinutes is how long a session lasts in whole minutes. Who sends back what is shown of
// one that does not last whole minutes does not change it.
func inMinutes[T any](meaning string, at func(*T) *time.Duration) field[T] {
	most := int(maxSession / time.Minute)
	f := field[T]{
		name: sessionMinutes, meaning: meaning, twin: sessionSeconds,
		allowed: fmt.Sprintf("a whole number of minutes from 1 to %d", most),
		schema:  always(Schema{"type": "integer", "minimum": 1, "maximum": most}),
	}
	f.read = func(r *reader, v value, into, was *T) {
		var n int
		switch {
		case !f.readInto(r, v, settings.Int(1, most).At(&n)):
		case was != nil && n == minutesOf(*at(was)):
			*at(into) = *at(was)
		default:
			*at(into) = time.Duration(n) * time.Minute
		}
	}
	f.show = func(t *T, _ time.Time) any { return minutesOf(*at(t)) }
	f.copy = func(from, into *T) { *at(into) = *at(from) }
	return f
}

// inSeconds is the same in seconds. It is read after inMinutes. Where both are given and
// do not agree, the one that differs from what was counts.
func inSeconds[T any](meaning string, at func(*T) *time.Duration) field[T] {
	f := field[T]{
		name: sessionSeconds, meaning: meaning, twin: sessionMinutes, ours: true,
		allowed: "a number of seconds from 1 to 86400, in steps of 0.001, that agrees with " + sessionMinutes,
		schema:  always(Schema{"type": "number", "minimum": 1, "maximum": maxSession.Seconds()}),
	}
	f.read = func(r *reader, v value, into, was *T) {
		if v.kind != kindNumber {
			f.mistype(r, v)
			return
		}
		n, err := strconv.ParseFloat(v.text, 64)
		ms := math.Round(n * 1000)
		d := time.Duration(ms) * time.Millisecond
		if err != nil || math.Abs(n*1000-ms) > 1e-6 || n < 1 || n > maxSession.Seconds() {
			f.refuse(r, v)
			return
		}
		minutes, both := r.body.get(sessionMinutes)
		switch {
		case !both || minutes.kind != kindNumber || minutes.text == "0" || minutes.text == strconv.Itoa(minutesOf(d)):
		case was != nil && d == *at(was):
			return // the minutes are new
		case was != nil && minutes.text == strconv.Itoa(minutesOf(*at(was))):
		default:
			f.refuse(r, v)
			return
		}
		*at(into) = d
	}
	f.show = func(t *T, _ time.Time) any { return at(t).Seconds() }
	f.copy = func(from, into *T) { *at(into) = *at(from) }
	return f
}
