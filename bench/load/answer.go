package load

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is what an answer means to a visitor.
type verdict int

const (
	// refused: the answer is nobody's page; nothing was decided.
	refused verdict = iota
	// unready: this target does not serve yet, or no more; another one may.
	unready
	// waiting: the visitor stands in the queue.
	waiting
	// admitted: the site itself answered.
	admitted
)

// answer is what came back for one request. Times count from the start of the
// run.
type answer struct {
	verdict verdict
	status  int
	place   time.Time     // arrival as the room knows it; zero: not told
	pause   time.Duration // until the visitor shall ask again; 0: not told
	sent    time.Duration // when the request that was answered left
	done    time.Duration // when the last byte was here
}

// failed reports whether the answer is no use to anybody.
func (a answer) failed() bool { return a.verdict == refused || a.verdict == unready }

// head is what the meaning of an answer is read from.
type head struct {
	status     int
	state      string // Ropeline-State
	refresh    string // Refresh
	retryAfter string // Retry-After
	body       []byte // of JSON answers, else empty
}

// roomJSON is the part of a room's JSON answer that visitors act upon.
type roomJSON struct {
	Room struct {
		In      bool    `json:"inWaitingRoom"`
		Refresh float64 `json:"refreshIntervalSeconds"`
		Arrival string  `json:"arrival"` // RFC 3339
	} `json:"cfWaitingRoom"`
}

// read says what an answer means. now is needed for a Retry-After that is a
// date.
func (h head) read(now time.Time) answer {
	a := answer{status: h.status}
	var room roomJSON
	// There may be none, and an application's own JSON is allowed to be anything.
	if json.Unmarshal(h.body, &room) != nil {
		room = roomJSON{}
	}
	switch {
	case h.state == "waiting" || room.Room.In:
		a.verdict = waiting
		// A time that cannot be read is one that was not told: zero.
		a.place, _ = time.Parse(time.RFC3339Nano, room.Room.Arrival)
		a.pause = h.pause(room.Room.Refresh, now)
	case h.status == http.StatusServiceUnavailable:
		a.verdict = unready
		a.pause = h.pause(0, now)
	case h.status >= 500 || turnedAway(h.status):
		a.verdict = refused
	default:
		a.verdict = admitted
	}
	return a
}

// turnedAway reports whether a status says that the request was not looked at,
// as opposed to an answer that the site gives to those who are in.
func turnedAway(status int) bool {
	return slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestURITooLong, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge,
	}, status)
}

// Bounds on the pauses that visitors follow: a server that says 0 must not
// make them spin, nor one that says a year end them.
const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Minute
)

// pause returns how long the visitor is told to wait, 0 if nothing says so.
func (h head) pause(seconds float64, now time.Time) time.Duration {
	if seconds <= 0 {
		delay, _, _ := strings.Cut(h.refresh, ";")
		seconds = parseSeconds(delay, now)
	}
	if seconds <= 0 {
		seconds = parseSeconds(h.retryAfter, now)
	}
	if seconds <= 0 {
		return 0
	}
	// Compared as floats: the conversion of a huge one is undefined.
	return time.Duration(min(max(seconds, minPause.Seconds()), maxPause.Seconds()) * float64(time.Second))
}

// parseSeconds reads a number of seconds or an HTTP date. 0 is neither.
func parseSeconds(s string, now time.Time) float64 {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil && n == n {
		return n
	}
	if at, err := http.ParseTime(s); err == nil {
		return at.Sub(now).Seconds()
	}
	return 0
}
