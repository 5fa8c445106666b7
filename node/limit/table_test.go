package limit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const start Millis = 1_700_000_000_000

func newTestTable(bytes int, rules ...*Terms) *Table {
	t := NewTable(bytes)
	for _, r := range rules {
		t.Use(r)
	}
	return t
}

// A table says of every key what its window alone would, whatever other keys there are.
func TestTableIsAWindowForEachKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := []*Terms{{Slot: 0, Period: 10_000, Requests: 5}, {Slot: 1, Period: 1000, Requests: 3, Timeout: 7000}}
		table := newTestTable(1<<16, rules...)
		type plain struct {
			Window
			until Millis
		}
		plains := map[Key]*plain{}
		now := start
		for range rapid.IntRange(1, 400).Draw(t, "requests") {
			now += Millis(rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 30_000)).Draw(t, "pause"))
			slot := rapid.IntRange(0, 1).Draw(t, "rule")
			r := rules[slot]
			k := Key(rapid.Uint64Range(1, 20).Draw(t, "key")*0x9e3779b97f4a7c15 + uint64(slot))
			p := plains[k]
			if p == nil {
				p = &plain{Window: Window{Start: now - now%r.Period}}
				plains[k] = p
			}
			p.Roll(r.Period, now)
			limited := now < p.until
			if !limited && p.Over(r.Requests, 1, r.Period, now) {
				limited = true
				p.until = now + max(r.Timeout, p.Wait(r.Requests, r.Period, now), 1)
			}
			if got := table.Peek(k, r, now); got.Limited != limited {
				t.Fatalf("peek: got %+v, want limited %v: %+v", got, limited, p)
			}
			if got := table.Check(k, r, now); got.Limited != limited {
				t.Fatalf("check: got %+v, want limited %v: %+v", got, limited, p)
			}
			got := table.Take(k, r, now)
			if got.Limited != limited || limited && got.Reset != (p.until-now).Duration() {
				t.Fatalf("got %+v, want limited %v until %d: %+v", got, limited, p.until-now, p)
			}
			if !limited {
				p.Current++
				if want := p.Remaining(r.Requests, r.Period, now); got.Remaining != want {
					t.Fatalf("got %d remaining, want %d", got.Remaining, want)
				}
			}
			if again := now + Millis(got.Reset.Milliseconds()); got.Remaining == 0 {
				later := p.Window
				if later.Roll(r.Period, again); later.Over(r.Requests, 1, r.Period, again) {
					t.Fatalf("got %+v, but who comes then is beyond the limit: %+v", got, later)
				}
			}
		}
	})
}

func TestTableKeepsWithinItsMemory(t *testing.T) {
	for _, bytes := range []int{1 << 16, 1 << 20, 3<<20 + 17} {
		table := NewTable(bytes)
		if got := table.Len()*KeySize + 4*(cap(table.dirty)+cap(table.begun)); got > bytes {
			t.Errorf("a table of %d bytes takes %d", bytes, got)
		}
		if beyond := float64(bytes)/float64(table.Len()) - 8; beyond > 48 {
			t.Errorf("a key takes %.1f bytes beside its hash, want at most 48", beyond)
		}
	}
	small := NewTable(0)
	r := &Terms{Period: 1000, Requests: 1}
	small.Use(r)
	for range 1000 {
		small.Take(Key(rand.Uint64()|1), r, start)
	}
}

// Tables that share a piece of memory keep apart: one that is full takes no place of another.
func TestTablesKeepApart(t *testing.T) {
	const bytes = 1 << 14
	r := &Terms{Period: 60_000, Requests: 1000}
	tables := NewTables(3, bytes)
	room := 0
	for i := range tables {
		tables[i].Use(r)
		room += tables[i].Len()*KeySize + 4*(cap(tables[i].dirty)+cap(tables[i].begun))
	}
	if room > bytes {
		t.Errorf("three tables of %d bytes take %d", bytes, room)
	}
	first, last := Key(1), Key(math.MaxUint64) // of the first set and the last
	tables[0].Take(last, r, start)
	tables[2].Take(first, r, start)
	for range 10 * tables[1].Len() {
		tables[1].Take(Key(rand.Uint64()|1), r, start+1)
	}
	if e, _ := tables[0].find(last); e == nil {
		t.Error("the last key of a table gave way to one of the next")
	}
	if e, _ := tables[2].find(first); e == nil {
		t.Error("the first key of a table gave way to one of the table before")
	}
}

// The longer ago a key was asked about, the sooner it gives way.
func TestOldestGivesWay(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(0, r)
	var keys []Key
	now := start
	for range table.Len() {
		keys = append(keys, Key(rand.Uint64()|1))
		table.Take(keys[len(keys)-1], r, now)
		now += 10
	}
	table.Take(keys[0], r, now) // the first is the newest now
	for i := range 5 {
		now += 10
		table.Take(Key(rand.Uint64()|1), r, now)
		if e, _ := table.find(keys[1+i]); e != nil {
			t.Errorf("the %dth oldest key is still there", i+1)
		}
	}
	if e, _ := table.find(keys[0]); e == nil {
		t.Error("a key has given way that was asked about a moment ago")
	}
	if table.Replaced != 5 {
		t.Errorf("got %d replaced, want 5", table.Replaced)
	}
}

// A flood of keys that come once does not set those free who came too often.
func TestFloodFreesNobody(t *testing.T) {
	for name, r := range map[string]*Terms{
		"timeout":  {Period: 10_000, Requests: 10, Timeout: 600_000},
		"throttle": {Period: 600_000, Requests: 10},
	} {
		table := newTestTable(1<<20, r)
		var limited []Key
		for range 1000 {
			k := Key(rand.Uint64() | 1)
			limited = append(limited, k)
			for range 11 {
				table.Take(k, r, start)
			}
		}
		now := start
		for range 40 * table.Len() {
			table.Take(Key(rand.Uint64()|1), r, now)
			if rand.IntN(1000) == 0 {
				now++
			}
		}
		for _, k := range limited {
			if v := table.Peek(k, r, now); !v.Limited {
				t.Fatalf("%s: after a flood of %d times the table a key is free %v after it began", name, 40, (now - start).Duration())
			}
		}
	}
}

// Keys that spilled into other sets are found, and the way there is forgotten when they go.
func TestSpills(t *testing.T) {
	r := &Terms{Period: 1000, Requests: 100}
	table := newTestTable(1<<16, r)
	crowd := func() (keys []Key) {
		for len(keys) < ways*reach {
			if k := Key(rand.Uint64() | 1); table.home(k) == len(table.sets)-1 {
				keys = append(keys, k)
			}
		}
		return keys
	}
	keys := crowd()
	for _, k := range keys {
		table.Take(k, r, start)
	}
	for _, k := range keys {
		if got := table.Take(k, r, start); got.Remaining != 98 {
			t.Fatalf("got %+v of a key that was asked about twice", got)
		}
	}
	if !table.sets[len(table.sets)-1][0].spills {
		t.Fatal("no set spills")
	}
	tallies := make([]Tally, MaxSlots)
	for !table.Sweep(1000, start+2000, tallies) {
	}
	for i := range table.sets {
		if table.sets[i][0].spills {
			t.Errorf("set %d spills, and is empty", i)
		}
	}
	if tallies[0].Live != 0 {
		t.Errorf("%d keys live after two periods", tallies[0].Live)
	}
}

// What does not count limits nobody who has used up the limit, but who is beyond it.
func TestCheck(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 3, Timeout: 60_000}
	table := newTestTable(1<<16, r)
	const k Key = 7 << 40
	for range 3 {
		table.Count(k, r, start)
	}
	if got := table.Check(k, r, start); got.Limited || got.Remaining != 0 {
		t.Errorf("got %+v with the limit used up", got)
	}
	table.Count(k, r, start)
	if got := table.Check(k, r, start); !got.Limited || !got.Began {
		t.Errorf("got %+v beyond the limit", got)
	}
}

func TestUseClearsASlot(t *testing.T) {
	r := &Terms{Slot: 3, Period: 1000, Requests: 2}
	table := newTestTable(1<<16, r)
	table.Take(7<<40, r, start)
	table.Use(r)
	if got := table.Peek(7<<40, r, start); got.Remaining != 2 {
		t.Errorf("got %+v of a key in a slot that another rule has had", got)
	}
}

func TestForgive(t *testing.T) {
	r := &Terms{Period: 1000, Requests: 1, Timeout: 60_000}
	other := &Terms{Slot: 1, Period: 1000, Requests: 1, Timeout: 60_000}
	table := newTestTable(1<<16, r, other)
	for range 2 {
		table.Take(1<<50, r, start)
		table.Take(1<<51, other, start)
	}
	table.Forgive(0, start)
	if table.Peek(1<<50, r, start+2000).Limited {
		t.Error("a key is limited by a rule that has changed")
	}
	if !table.Peek(1<<51, other, start+2000).Limited {
		t.Error("a key of another rule is free")
	}
}

func TestTakeFresh(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(1<<16, r)
	fresh := func() (all []Fresh) {
		table.TakeFresh(func(f Fresh) { all = append(all, f) })
		return all
	}
	table.Take(1<<50, r, start)
	if got := fresh(); got != nil {
		t.Errorf("got %v where nobody is to hear", got)
	}
	table.Tell = true
	for range 3 {
		table.Take(1<<50, r, start)
	}
	table.Add(1<<51, r, 4, start, start, true)
	table.Add(1<<52, r, 4, start, start, false)
	if got, want := fresh(), []Fresh{{1 << 50, 0, 3}, {1 << 51, 0, 4}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := fresh(); got != nil {
		t.Errorf("got %v a second time", got)
	}
}

// What is learned is taken if it is more, and what only this node knows comes on top.
func TestLearn(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(1<<16, r)
	table.Tell = true
	const k Key = 1 << 50
	begin := start - start%60_000
	now := begin + 30_000
	learn := func(previous, current uint32) float64 {
		table.Learn(State{Key: k, Window: Window{begin, previous, current}}, r, now, false)
		rep, _ := table.Report(k, r, true, now)
		return rep.Estimate
	}
	table.Take(k, r, now)
	if got := learn(100, 20); got != 71 {
		t.Errorf("got %v, want half of 100, 20, and the one of this node", got)
	}
	if got := learn(100, 10); got != 71 {
		t.Errorf("got %v after less was learned", got)
	}
	table.TakeFresh(func(Fresh) {})
	if got := learn(100, 21); got != 71 {
		t.Errorf("got %v after others know of this node's", got)
	}
	table.Learn(State{Key: k, Until: now + 5000}, r, now, false)
	if v := table.Take(k, r, now); !v.Limited || v.Reset.Seconds() != 5 {
		t.Errorf("got %+v of a key that others limit", v)
	}
	table.Learn(State{Key: k, Until: now + 2000}, r, now, false)
	if v := table.Take(k, r, now); v.Reset.Seconds() != 5 {
		t.Errorf("got %+v after others limit it for a shorter time", v)
	}
}

// Who others have seen exactly as often as is allowed is not limited for a timeout.
func TestAddAtTheLimit(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 10, Timeout: 600_000}
	table := newTestTable(1<<16, r)
	table.Add(1<<50, r, 10, start, start, false)
	if rep, _ := table.Report(1<<50, r, true, start); rep.Limited != 0 {
		t.Errorf("got %+v", rep)
	}
	table.Add(1<<50, r, 1, start, start, false)
	if rep, _ := table.Report(1<<50, r, true, start); rep.Limited != 600_000 {
		t.Errorf("got %+v of who is beyond the limit", rep)
	}
}

func TestReportChangesNothing(t *testing.T) {
	r := &Terms{Period: 1000, Requests: 1, Timeout: 500}
	table := newTestTable(1<<16, r)
	if _, ok := table.Report(1<<50, r, true, start); ok {
		t.Error("there is a report of a key that never came")
	}
	table.Take(1<<50, r, start)
	table.Take(1<<50, r, start)
	before := *table.at(uint32(table.home(1<<50) * ways))
	table.Report(1<<50, r, true, start+1700)
	if after := *table.at(uint32(table.home(1<<50) * ways)); after != before {
		t.Errorf("got %+v, was %+v", after, before)
	}
}

// handedOver returns what a new owner is told of the only key.
func handedOver(table *Table, r *Terms, now Millis) (s State) {
	table.knownOf(0, len(table.sets), []*Terms{r}, now, func(_ uint16, told State, _ bool) { s = told })
	return s
}

// An owner answers with all that its site has told it, also while other sites have not heard
// of that yet.
func TestOwnerAnswersAll(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(1<<16, r)
	table.Tell = true
	const k Key = 1 << 50
	table.Add(k, r, 20, start, start, true)
	table.Take(k, r, start)
	if s, ok := table.StateOf(k, r, start); !ok || s.Window.Current != 21 {
		t.Errorf("got %+v, want 20 and the one of this node", s)
	}
}

// Who owns a key has been told by others of what it has not passed on yet: those may tell
// it once more, as part of what they know.
func TestLearnOfOwnKey(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(1<<16, r)
	table.Tell = true
	const k Key = 1 << 50
	table.Add(k, r, 20, start, start, true)
	table.Learn(State{Key: k, Window: Window{start - start%60_000, 0, 25}}, r, start, true)
	if rep, _ := table.Report(k, r, true, start); rep.Current != 25 {
		t.Errorf("got %+v, want the 25 of which 20 were known", rep)
	}
	table.Release(func(f Fresh) bool { return f == Fresh{k, r.Slot, 20} })
	if s := handedOver(table, r, start); s.Window.Current != 25 {
		t.Errorf("got %+v, want all of them to be told as a whole", s)
	}
	table.TakeFresh(func(f Fresh) { t.Errorf("%+v is told as a difference as well", f) })
}

// What only this node knows is left out of what it tells as a whole, also where it came in
// the period before.
func TestStateAcrossPeriods(t *testing.T) {
	r := &Terms{Period: 60_000, Requests: 1000}
	table := newTestTable(1<<16, r)
	table.Tell = true
	const k Key = 1 << 50
	begin := start - start%60_000
	for _, at := range []Millis{59_998, 59_999, 60_000} {
		table.Take(k, r, begin+at)
	}
	if s := handedOver(table, r, begin+60_001); s.Window.Previous != 0 || s.Window.Current != 0 {
		t.Errorf("got %+v, and others know of none", s.Window)
	}
	table.Learn(State{Key: k, Window: Window{begin + 60_000, 100, 0}}, r, begin+60_001, false)
	if rep, _ := table.Report(k, r, true, begin+60_001); rep.Previous != 102 || rep.Current != 1 {
		t.Errorf("got %+v, want each in its period", rep)
	}
}

// Tables take memory as they come to have keys, and keep what they know of those that they have.
func TestTablesGrow(t *testing.T) {
	r := &Terms{Period: 3_600_000, Requests: 100}
	for _, bytes := range []int{1 << 20, 8 << 20} { // of Go, and where it can be had, of the kernel
		tables := NewTables(4, bytes)
		sets := func() (n int) {
			for i := range tables {
				n += len(tables[i].sets)
			}
			return n
		}
		for i := range tables {
			tables[i].Use(r)
			tables[i].Tell = true
		}
		counts := map[Key]uint32{}
		take := func(k Key) {
			counts[k]++
			tables[k>>1%4].Take(k, r, start)
		}
		for range 12 {
			take(Key(rand.Uint64() | 1))
		}
		if n := sets(); n > 4*reach {
			t.Errorf("%d bytes: %d sets for a dozen keys", bytes, n)
		}
		for range tables[0].Len() { // a quarter of what all have room for
			take(Key(rand.Uint64() | 1))
			for k := range counts {
				take(k)
				break
			}
		}
		told := map[Key]uint32{}
		for i := range tables {
			if tables[i].Replaced > 0 {
				t.Errorf("%d bytes: %d keys gave way", bytes, tables[i].Replaced)
			}
			tables[i].TakeFresh(func(f Fresh) { told[f.Key] += f.Count })
		}
		missed := 0
		for k, n := range counts {
			rep, ok := tables[k>>1%4].Report(k, r, true, start)
			if !ok || rep.Current != int(n) {
				t.Fatalf("%d bytes: got %+v of a key that came %d times", bytes, rep, n)
			}
			if told[k] != n {
				missed++
			}
		}
		if room := tables[0].queue() * 4; missed > len(counts)-room*9/10 {
			t.Errorf("%d bytes: %d of %d keys are not told of, with room for %d", bytes, missed, len(counts), room)
		}
	}
}
