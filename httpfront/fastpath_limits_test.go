package httpfront

import (
	"bufio"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
)

// fixedMeter says the same of all keys, and notes whether it was asked in the fast path.
type fixedMeter struct {
	verdict limit.Verdict

	mu   sync.Mutex // guards the following
	fast []bool
}

func (m *fixedMeter) Key([]byte) limit.Key { return 0 }

func (m *fixedMeter) Take(limit.Key, time.Time) limit.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fast = append(m.fast, inFastPath())
	return m.verdict
}

func (m *fixedMeter) Peek(k limit.Key, now time.Time) limit.Verdict  { return m.Take(k, now) }
func (m *fixedMeter) Check(k limit.Key, now time.Time) limit.Verdict { return m.Take(k, now) }
func (m *fixedMeter) Count(limit.Key, time.Time) limit.Verdict       { return m.verdict }

// TestTheFastPathLimitsAsTheServer, whether or not a request is of a room.
func TestTheFastPathLimitsAsTheServer(t *testing.T) {
	within, beyond := limit.Verdict{Remaining: 3, Reset: 2 * time.Second}, limit.Verdict{Limited: true, Reset: 2 * time.Second}
	for name, c := range map[string]struct {
		verdict limit.Verdict
		action  limit.Action
		counts  string // the counting expression
		code    int    // of the answer to a plain request, in a room and without
		lined   int    // instead, in a room
	}{
		"within":           {within, limit.Block, "", 200, 200},
		"by the response":  {within, limit.Block, `http.response.code eq 200`, 200, 200},
		"blocked":          {beyond, limit.Block, "", 429, 429},
		"sent to the line": {beyond, limit.Queue, "", 429, 200},
		"only logged":      {beyond, limit.Log, "", 200, 200},
	} {
		for roomed, rooms := range map[string]fakeRooms{"a room": {room: newRoom(always)}, "no room": {path: "/nowhere", room: newRoom(always)}} {
			t.Run(name+" in "+roomed, func(t *testing.T) {
				now := time.Now()
				f := serve(t, rooms, http.HandlerFunc(siteOfAllKinds), func(c *Config) {
					c.Requests, c.AccessLog, c.Clock, c.sleep = deaf{}, deaf{}, func() time.Time { return now }, func(time.Duration) {}
				})
				meter := &fixedMeter{verdict: c.verdict}
				rule := fiveAMinute(func(r *limit.Rule) {
					r.Expression, r.Action, r.CountingExpression = `http.request.uri.path ne "/warm"`, c.action, c.counts
				})
				if err := f.front.FollowLimits([]limit.Rule{rule}, func(limit.ID) Meter { return meter }); err != nil {
					t.Fatal(err)
				}
				for _, head := range wholeHeads {
					cold, warm := answerTo(t, f, head, false), answerTo(t, f, head, true)
					if cold != warm {
						t.Errorf("%.200q: the server says\n\t%.600s\nthe fast path\n\t%.600s", head, cold, warm)
					}
				}
				meter.fast = nil
				conn := f.dial()
				br := bufio.NewReader(conn)
				want := c.code
				if roomed == "a room" {
					want = c.lined
				}
				for range 2 {
					if a := askOn(t, conn, br, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET"); a.StatusCode != want || a.Header.Get(limitField) == "" {
						t.Errorf("got %d, %v; want %d, with the fields that tell of limits", a.StatusCode, a.Header, want)
					}
				}
				if want := []bool{false, true}; !slices.Equal(meter.fast, want) {
					t.Errorf("held against the limit in the fast path: %v, want %v", meter.fast, want)
				}
			})
		}
	}
}
