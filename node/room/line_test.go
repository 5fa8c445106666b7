package room

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var lineStart = time.Unix(1_767_268_800, 0)

func lineAt(seconds float64) time.Time {
	return lineStart.Add(time.Duration(seconds * float64(time.Second)))
}

func visitorID(n int) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// lineRow sums the changes of one table as a row would.
type lineRow map[crdt.Kind]map[int64]int64

func (r lineRow) apply(t testing.TB, changes []Change) {
	t.Helper()
	for _, c := range changes {
		if c.P+c.N != 1 {
			t.Errorf("change %+v moves more than one visitor", c)
		}
		if r[c.Kind] == nil {
			r[c.Kind] = map[int64]int64{}
		}
		r[c.Kind][c.Tick] += int64(c.P) - int64(c.N)
		if r[c.Kind][c.Tick] < 0 {
			t.Errorf("kind %d at %d falls below zero", c.Kind, c.Tick)
		}
	}
}

func (r lineRow) waiting() (sum int64) {
	for _, n := range r[crdt.Waiting] {
		sum += n
	}
	return sum
}

func TestLineCountsOnce(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	id := visitorID(1)
	poll := func(at float64) { row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(at), 20*time.Second)) }
	poll(0)
	poll(0)
	poll(20)
	poll(3) // late
	if got := row.waiting(); got != 1 {
		t.Errorf("got %d waiting, want 1", got)
	}
	if got := row[crdt.Waiting][GranuleOf(lineAt(0), time.Minute)]; got != 1 {
		t.Errorf("granule of the arrival has %d, want 1", got)
	}
	seen := row[crdt.Seen]
	if len(seen) != 2 || seen[crdt.TickOf(lineAt(0))] != 1 || seen[crdt.TickOf(lineAt(20))] != 1 {
		t.Errorf("seen %v, want one in each of two ticks", seen)
	}
}

// TestLineRemembersRedeemedPlaces: for as long as a copy of the pass would still be
// good somewhere, which is the told interval and then for how long places are kept, since
// it was last seen.
func TestLineRemembersRedeemedPlaces(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	id := visitorID(1)
	const told = 24 * time.Second
	row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(0), told))
	row.apply(t, l.Admit(nil, id, lineAt(0)))
	for s := range 324 {
		row.apply(t, l.Expire(nil, lineAt(float64(s))))
	}
	if row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(323), told)); row.waiting() != 0 || l.Len() != 1 {
		t.Errorf("a redeemed place counts again: %d waiting", row.waiting())
	}
	for s := range 323 {
		row.apply(t, l.Expire(nil, lineAt(float64(324+s))))
	}
	if !l.Spent(id, lineAt(600), lineAt(646)) {
		t.Error("a copy that went on asking is good again")
	}
	for s := range 400 {
		row.apply(t, l.Expire(nil, lineAt(float64(647+s))))
	}
	if l.Len() != 0 {
		t.Error("a redeemed place is remembered for ever")
	}
}

// TestLineKnowsWhenAPlaceWasTakenUp: the first admission counts, whatever comes later.
func TestLineKnowsWhenAPlaceWasTakenUp(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	id := visitorID(1)
	const told = 20 * time.Second
	if l.Spent(id, lineAt(100), lineAt(0)) {
		t.Error("that of somebody unknown was")
	}
	row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(0), told))
	if l.Spent(id, lineAt(100), lineAt(1)) {
		t.Error("that of somebody who waits was")
	}
	row.apply(t, l.Admit(nil, id, lineAt(10)))
	row.apply(t, l.Admit(nil, id, lineAt(30))) // of a copy
	if l.Spent(id, lineAt(10), lineAt(31)) {
		t.Error("it was before the admission")
	}
	if !l.Spent(id, lineAt(11), lineAt(32)) {
		t.Error("it was not by the first admission")
	}
	if row.waiting() != 0 {
		t.Errorf("%d wait", row.waiting())
	}
}

func TestLineAdmitWinsOverLatePolls(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	id := visitorID(1)
	row.apply(t, l.Admit(nil, id, lineAt(30)))
	row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(20), 20*time.Second)) // overtaken
	row.apply(t, l.Poll(nil, id, lineAt(0), lineAt(40), 20*time.Second)) // redeemed
	row.apply(t, l.Admit(nil, id, lineAt(30)))
	if got := row.waiting(); got != 0 {
		t.Errorf("got %d waiting, want 0", got)
	}
	// The session is over and the visitor queues anew.
	row.apply(t, l.Poll(nil, id, lineAt(400), lineAt(400), 20*time.Second))
	if got := row.waiting(); got != 1 {
		t.Errorf("after the session: got %d waiting, want 1", got)
	}
	row.apply(t, l.Admit(nil, id, lineAt(30))) // a very late copy
	if got := row.waiting(); got != 1 {
		t.Errorf("after a late admission of the first session: got %d waiting, want 1", got)
	}
}

func TestLineForgetsWhoIsAbsent(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	row.apply(t, l.Expire(nil, lineAt(0)))
	row.apply(t, l.Poll(nil, visitorID(1), lineAt(0), lineAt(0), 20*time.Second))
	for s := 1; s <= 50; s++ {
		row.apply(t, l.Expire(nil, lineAt(float64(s-1))))
		if row.waiting() != 1 {
			t.Fatalf("gone after %d s, two and a half intervals are 50 s", s-1)
		}
	}
	row.apply(t, l.Expire(nil, lineAt(51)))
	if row.waiting() != 0 || l.Len() != 0 {
		t.Errorf("still there after 51 s: %d waiting, %d kept", row.waiting(), l.Len())
	}
	// A copy of an old poll does not bring the visitor back, a new one does.
	row.apply(t, l.Poll(nil, visitorID(1), lineAt(0), lineAt(0), 20*time.Second))
	if row.waiting() != 0 {
		t.Error("an old poll counts")
	}
	row.apply(t, l.Poll(nil, visitorID(1), lineAt(0), lineAt(120), 20*time.Second))
	if row[crdt.Waiting][GranuleOf(lineAt(0), time.Minute)] != 1 {
		t.Error("who comes back does not have the old place")
	}
}

// TestLineWhenTheClockIsSetBack has the clock go back by an hour while some
// wait, some were let in, and some have left.
func TestLineWhenTheClockIsSetBack(t *testing.T) {
	const hour, refresh = 3600, 20 * time.Second
	l, row := lineOf(Settings{}), lineRow{}
	row.apply(t, l.Expire(nil, lineAt(hour)))
	for n := range 30 {
		row.apply(t, l.Poll(nil, visitorID(n), lineAt(hour), lineAt(hour), refresh))
	}
	for n := range 10 {
		row.apply(t, l.Admit(nil, visitorID(10+n), lineAt(hour)))
		row.apply(t, l.Leave(nil, visitorID(20+n)))
	}
	row.apply(t, l.Expire(nil, lineAt(0)))
	row.apply(t, l.Poll(nil, visitorID(100), lineAt(0), lineAt(1), refresh)) // new
	row.apply(t, l.Poll(nil, visitorID(0), lineAt(hour), lineAt(1), refresh))
	if got := row.waiting(); got != 11 {
		t.Errorf("just after: %d waiting, want the ten from before and one more", got)
	}
	if got := row[crdt.Seen][crdt.TickOf(lineAt(0))]; got != 1 {
		t.Errorf("seen in the tick after = %d, want the new one", got)
	}
	for s := range 53 {
		row.apply(t, l.Expire(nil, lineAt(float64(s))))
	}
	if got := row.waiting(); got != 0 {
		t.Errorf("two and a half intervals later: %d waiting, want 0", got)
	}
	for s := range 400 {
		row.apply(t, l.Expire(nil, lineAt(float64(s))))
	}
	if l.Len() != 0 {
		t.Errorf("%d visitors are kept for ever", l.Len())
	}
	for n := range 31 {
		row.apply(t, l.Poll(nil, visitorID(n), lineAt(400), lineAt(400), refresh))
	}
	if n := l.entries.Len(); n > 31 {
		t.Errorf("%d entries for 31 visitors: those of before are lost", n)
	}
}

func TestLineLeaveAndReuse(t *testing.T) {
	l, row := lineOf(Settings{}), lineRow{}
	for round := range 10 {
		at := float64(round * 100)
		for n := range 100 {
			row.apply(t, l.Poll(nil, visitorID(n), lineAt(at), lineAt(at), 20*time.Second))
		}
		for n := range 100 {
			row.apply(t, l.Leave(nil, visitorID(n)))
			row.apply(t, l.Leave(nil, visitorID(n)))
		}
		if row.waiting() != 0 || l.Waiting() != 0 || l.Len() != 0 {
			t.Fatalf("round %d: %d waiting, %d kept", round, row.waiting(), l.Len())
		}
		row.apply(t, l.Expire(nil, lineAt(at+99)))
	}
	if n := l.entries.Len(); n > 200 {
		t.Errorf("%d entries for at most 100 visitors", n)
	}
}

// TestLineAnyOrder deals the same polls and admissions doubled and shuffled
// within a few seconds, next to a model that knows who waits.
func TestLineAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		type event struct {
			sent, due float64
			id        [16]byte
			arrival   float64
			admit     bool
		}
		var events []event
		out := map[[16]byte]bool{}
		for n := range 20 {
			id, arrival := visitorID(n), rng.Float64()*60
			polls := rng.IntN(4)
			for p := range polls + 1 {
				e := event{id: id, arrival: arrival, sent: arrival + float64(p)*20}
				e.admit = p == polls && rng.IntN(2) == 0
				out[id] = e.admit
				for range 1 + rng.IntN(3) {
					e.due = e.sent + rng.Float64()*10
					events = append(events, e)
				}
			}
		}
		slices.SortFunc(events, func(a, b event) int {
			if a.due < b.due {
				return -1
			}
			return 1
		})
		l, row := lineOf(Settings{}), lineRow{}
		for _, e := range events {
			row.apply(t, l.Expire(nil, lineAt(e.due)))
			if e.admit {
				row.apply(t, l.Admit(nil, e.id, lineAt(e.sent)))
			} else {
				row.apply(t, l.Poll(nil, e.id, lineAt(e.arrival), lineAt(e.sent), 20*time.Second))
			}
			if int64(l.Waiting()) != row.waiting() {
				t.Fatalf("seed %d: table says %d, row says %d", seed, l.Waiting(), row.waiting())
			}
		}
		for tick, n := range row[crdt.Seen] {
			if n > 20 {
				t.Errorf("seed %d: tick %d saw %d of 20 visitors", seed, tick, n)
			}
		}
		for id, in := range out {
			if e := l.find(id); in && e != nil && !e.in {
				t.Errorf("seed %d: a visitor who was let in waits", seed)
			}
		}
		row.apply(t, l.Expire(nil, lineAt(1000)))
		for s := range wheelSlots { // nobody polls any more
			row.apply(t, l.Expire(nil, lineAt(1000+float64(s))))
		}
		if row.waiting() != 0 || l.Len() != 0 {
			t.Fatalf("seed %d: %d waiting and %d kept long after", seed, row.waiting(), l.Len())
		}
	}
}

func TestLineSpanChanges(t *testing.T) {
	l, row := lineOf(Settings{BucketSpan: time.Minute}), lineRow{}
	row.apply(t, l.Poll(nil, visitorID(1), lineAt(33), lineAt(33), 20*time.Second))
	l.SetSettings(complete(Settings{BucketSpan: 7 * time.Second}))
	row.apply(t, l.Poll(nil, visitorID(1), lineAt(33), lineAt(53), 20*time.Second))
	row.apply(t, l.Admit(nil, visitorID(1), lineAt(60)))
	if row.waiting() != 0 {
		t.Errorf("%d waiting after the only visitor was let in", row.waiting())
	}
	for at, n := range row[crdt.Waiting] {
		if n != 0 {
			t.Errorf("granule %d keeps %d", at, n)
		}
	}
}

func BenchmarkLinePoll(b *testing.B) {
	const visitors = 1_000_000
	l := lineOf(Settings{})
	dst := make([]Change, 0, 4)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for n := range visitors {
		dst = l.Poll(dst[:0], visitorID(n), lineAt(0), lineAt(0), 20*time.Second)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = (n + 1) % visitors
		dst = l.Poll(dst[:0], visitorID(n), lineAt(0), lineAt(20), 20*time.Second)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/visitors, "B/visitor")
	runtime.KeepAlive(l)
}

// BenchmarkLineExpire turns the wheel by a second over a million visitors.
func BenchmarkLineExpire(b *testing.B) {
	const visitors = 1_000_000
	l := lineOf(Settings{})
	var dst []Change
	for n := range visitors {
		at := lineAt(float64(n % 20))
		dst = l.Poll(dst[:0], visitorID(n), lineAt(0), at, time.Hour)
	}
	s := 20.0
	dst = l.Expire(dst[:0], lineAt(s))
	for b.Loop() {
		s++
		dst = l.Expire(dst[:0], lineAt(s))
	}
}

// TestLineAdmitsFromAPlaceAhead: who waits for a start is counted at a place that
// lies ahead of the time. Should the event be called off and the visitor be let in
// before that, nobody waits there any more.
func TestLineAdmitsFromAPlaceAhead(t *testing.T) {
	event := Event{Name: "sale", PrequeueStart: lineAt(0), Start: lineAt(3600), End: lineAt(7200), Shuffle: true}
	l, row := lineOf(Settings{Events: []Event{event}}), lineRow{}
	ahead := 0
	for n := range 50 {
		row.apply(t, l.Poll(nil, visitorID(n), lineAt(10), lineAt(10), 20*time.Second))
	}
	for at := range row[crdt.Waiting] {
		if at > lineAt(20).Unix() {
			ahead++
		}
	}
	if row.waiting() != 50 || ahead < 40 {
		t.Fatalf("%d wait, in %d granules ahead of the time", row.waiting(), ahead)
	}
	l.SetSettings(complete(Settings{}))
	row.apply(t, l.Poll(nil, visitorID(0), lineAt(10), lineAt(30), 20*time.Second))
	if row.waiting() != 50 || row[crdt.Waiting][GranuleOf(lineAt(10), time.Minute)] == 0 {
		t.Errorf("%d wait, nobody of them since the arrival", row.waiting())
	}
	for n := range 50 {
		row.apply(t, l.Admit(nil, visitorID(n), lineAt(31)))
	}
	if got := row.waiting(); got != 0 {
		t.Errorf("all are in, but %d wait", got)
	}
}

// lineOf returns a line of a room with the defaults of what s leaves out.
func lineOf(s Settings) *Line { return NewLine(complete(s), nil) }

func complete(s Settings) *Settings {
	s = s.WithDefaults()
	return &s
}
