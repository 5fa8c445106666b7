package httpfront

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// fixedMeter says the same of all keys, and counts how often it was asked.
type fixedMeter struct {
	verdict limit.Verdict
	asked   atomic.Int64
}

func (m *fixedMeter) Key([]byte) limit.Key { return 0 }

func (m *fixedMeter) Take(limit.Key, time.Time) limit.Verdict {
	m.asked.Add(1)
	return m.verdict
}

func (m *fixedMeter) Peek(k limit.Key, now time.Time) limit.Verdict  { return m.Take(k, now) }
func (m *fixedMeter) Check(k limit.Key, now time.Time) limit.Verdict { return m.Take(k, now) }
func (m *fixedMeter) Count(limit.Key, time.Time) limit.Verdict       { return m.verdict }

// TestEachRequestIsHeldAgainstLimitsOnce, whether or not it is of a room.
func TestEachRequestIsHeldAgainstLimitsOnce(t *testing.T) {
	within, beyond := limit.Verdict{Remaining: 3, Reset: 2 * time.Second}, limit.Verdict{Limited: true, Reset: 2 * time.Second}
	for name, c := range map[string]struct {
		verdict limit.Verdict
		action  limit.Action
		counts  string // the counting expression
		code    int    // of the answer to a request of no room
		outcome Outcome
		inRoom  int // instead, in a room
		roomed  Outcome
	}{
		"within":           {within, limit.Block, "", 200, Bypassed, 200, Admitted},
		"by the response":  {within, limit.Block, `http.response.code eq 200`, 200, Bypassed, 200, Admitted},
		"blocked":          {beyond, limit.Block, "", 429, Limited, 429, Limited},
		"sent to the line": {beyond, limit.Queue, "", 429, Limited, 200, Queued},
		"only logged":      {beyond, limit.Log, "", 200, Bypassed, 200, Admitted},
	} {
		for roomed, rooms := range map[string]fakeRooms{"a room": {room: newRoom(always)}, "no room": {path: "/nowhere", room: newRoom(always)}} {
			t.Run(name+" in "+roomed, func(t *testing.T) {
				now, told := time.Now(), new(witness)
				f := serve(t, rooms, http.HandlerFunc(siteOfAllKinds), told.watch, at(now), func(c *Config) { c.sleep = func(time.Duration) {} })
				meter := &fixedMeter{verdict: c.verdict}
				rule := fiveAMinute(func(r *limit.Rule) {
					r.Expression, r.Action, r.CountingExpression = `http.request.uri.path ne "/warm"`, c.action, c.counts
				})
				noError(t, f.front.FollowLimits([]limit.Rule{rule}, func(limit.ID) Meter { return meter }))
				answersAlike(t, f)
				told.forget()
				meter.asked.Store(0)
				conn := f.dial()
				code, outcome := c.code, c.outcome
				if roomed == "a room" {
					code, outcome = c.inRoom, c.roomed
				}
				for n := range 2 {
					if a := conn.ask("GET", "GET /a HTTP/1.1\r\nHost: a\r\n\r\n").is(t, code); a.Header.Get(limitField) == "" {
						t.Errorf("got %v, want the fields that tell of limits", a.Header)
					}
					told.is(t, n+1, outcome, fmt.Sprintf(`HTTP/1.1" %d `, code))
				}
				equal(t, "how often 2 requests were held against the limit", meter.asked.Load(), 2)
			})
		}
	}
}
