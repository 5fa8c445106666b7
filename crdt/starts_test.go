package crdt

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// life is a node whose clock is another one at each start, and one with the right time, which hears of it now and then.
type life struct {
	t     *rapid.T
	now   time.Time
	ahead time.Duration // the clock of the first one is
	self  Incarnation
	noted bool // it has written something at this start
	m, o  *LWW
	clock Clock
	other Clock
	heard uint64
	last  time.Duration // by the clock of the last start that wrote, how long after now that ended
}

var otherNode = NodeID{2}

func (l *life) noteStart() {
	if l.noted {
		return
	}
	l.noted = true
	var ended time.Time
	if rapid.Bool().Draw(l.t, "known") {
		ended = l.now.Add(l.last)
	}
	l.m.NoteStart(l.self, l.clock.Last(), ended, l.now.Add(l.ahead))
}

func (l *life) write(key string) {
	l.noteStart()
	l.last = l.ahead
	if err := l.m.Set(key, []byte(l.now.String()+" here"), l.clock.Now(l.now.Add(l.ahead), l.self.Node)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) writeElsewhere(key string) {
	if err := l.o.Set(key, []byte(l.now.String()+" there"), l.other.Now(l.now, otherNode)); err != nil {
		l.t.Fatal(err)
	}
}

// meet has them hear of each other, and then compare their clocks.
func (l *life) meet() {
	l.hear()
	clock := l.now.Add(l.ahead)
	if l.ahead >= 0 {
		l.noteStart()
		if l.clock.Ahead(l.now) {
			l.m.Rewind(l.self.Node, l.heard, clock, l.now)
			l.clock.Rewind(l.m.Newest())
		}
		l.m.TrustStarts(l.clock.Last(), clock, l.now)
	}
}

func (l *life) hear() {
	_ = l.m.hear(l.o.Delta(l.m.Digest(), 0), &l.clock, l.now.Add(l.ahead))
	_ = l.o.hear(l.m.Delta(l.o.Digest(), 0), &l.other, l.now)
}

// restart stores what there is, and has the node start with it, some time later.
func (l *life) restart(ahead time.Duration) {
	l.last -= l.pass(60)
	l.ahead, l.noted = ahead, false
	l.self.Boot++
	again := new(LWW)
	for _, p := range l.m.Parts(0) {
		if err := again.SetPart(p); err != nil {
			l.t.Fatal(err)
		}
	}
	l.m, l.clock = new(LWW), Clock{}
	l.m.Merge(again)
	l.clock.Rewind(l.m.Newest())
	l.heard = l.m.Heard(l.self.Node)
}

func (l *life) pass(most int) time.Duration {
	d := time.Duration(rapid.IntRange(1, most*1000).Draw(l.t, "ms")) * time.Millisecond
	l.now = l.now.Add(d)
	return d
}

func (l *life) agree() {
	for key := range l.o.Keys() {
		there, at, _ := l.o.Get(key)
		here, is, _ := l.m.Get(key)
		if string(there) != string(here) || at != is {
			l.t.Fatalf("%s is %q of %v here, and %q of %v elsewhere", key, here, is, there, at)
		}
	}
	if l.m.Len() != l.o.Len() {
		l.t.Fatalf("%d keys here, and %d elsewhere", l.m.Len(), l.o.Len())
	}
}

// TestStartsWithManyClocks: whatever the clocks of a node showed at its starts, and whenever it met another one, both
// agree on everything once it has met it with the right one.
func TestStartsWithManyClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{t: t, now: time.Unix(1_800_000_000, 0), self: Incarnation{NodeID{1}, 1}, m: new(LWW), o: new(LWW)}
		l.meet()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			key := fmt.Sprint("k", rapid.IntRange(0, 4).Draw(t, "key"))
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				l.restart(rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second, 10 * time.Minute, 12 * time.Hour, -time.Minute}).Draw(t, "ahead"))
			case 1, 2, 3:
				l.write(key)
			case 4:
				l.writeElsewhere(key)
			case 5:
				l.meet()
			case 6:
				if l.ahead <= 0 {
					l.hear()
				}
			}
			l.pass(20)
		}
		l.restart(0)
		l.meet()
		l.meet()
		l.agree()
	})
}

// TestWhatIsPutBackIsTold: a node starts with a clock that is ten minutes ahead, then with one that is twelve hours ahead, and then
// with the right one. What it wrote at the first of these starts is put back to the second one, as it may have run until then, and not by twelve
// hours: others know what it wrote before, and take no older write of it for news.
func TestWhatIsPutBackIsTold(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	for name, step := range map[string]struct {
		key   string
		ended time.Time // of the start with the first clock, by that; zero: that is not known
		want  time.Time
	}{
		"a key that is new":                   {"new", time.Time{}, at(85)},
		"one that it has written before":      {"own", time.Time{}, at(85)},
		"one that another one has written":    {"other", time.Time{}, at(85)},
		"it is known how long that start was": {"new", at(82 + 10), at(83)},
	} {
		l := &life{now: at(0), self: Incarnation{NodeID{1}, 1}, m: new(LWW), o: new(LWW)}
		set := func(key string) {
			if err := l.m.Set(key, []byte(key), l.clock.Now(l.now.Add(l.ahead), l.self.Node)); err != nil {
				t.Fatal(err)
			}
		}
		start := func(ahead time.Duration, ended time.Time) {
			l.self.Boot, l.ahead = l.self.Boot+1, ahead
			l.m.NoteStart(l.self, l.clock.Last(), ended, l.now.Add(ahead))
		}
		start(0, time.Time{})
		set("own")
		if err := l.o.Set("other", []byte("there"), l.other.Now(at(1), otherNode)); err != nil {
			t.Fatal(err)
		}
		l.now = at(2)
		set("last") // which is what others know of it, and does not stay
		l.hear()

		l.now = at(60)
		start(10*time.Minute, time.Time{})
		l.now = at(80)
		set(step.key)
		set("last")
		l.now = at(85)
		start(12*time.Hour, step.ended)
		set("last")
		l.now = at(88)
		start(0, at(88+12*60))
		l.m.Rewind(l.self.Node, 0, l.now, l.now)
		l.hear()
		value, is, ok := l.o.Get(step.key)
		if got := time.UnixMilli(is.Wall); !ok || string(value) != step.key || got.Sub(step.want).Abs() > time.Second {
			t.Errorf("%s: elsewhere it is %q of %v, want %v", name, value, got, step.want)
		}
	}
}

// TestManyStartsAreFew: of more starts than are kept, those stay between which the clock jumped.
func TestManyStartsAreFew(t *testing.T) {
	var m LWW
	var c Clock
	self, now := Incarnation{NodeID{1}, 0}, time.Unix(1_800_000_000, 0)
	for self.Boot = range uint64(5 * maxStarts) {
		if now = now.Add(time.Minute); self.Boot == 7 {
			now = now.Add(12 * time.Hour)
		}
		m.NoteStart(self, c.Last(), time.Time{}, now)
		if err := m.Set("key", nil, c.Now(now, self.Node)); err != nil {
			t.Fatal(err)
		}
	}
	boots := map[uint64]bool{}
	for _, s := range m.starts {
		boots[s.boot] = true
	}
	if len(boots) != maxStarts || !boots[0] || !boots[7] || !boots[self.Boot] {
		t.Errorf("the starts %v are kept", boots)
	}
}

// TestWhatIsWrittenAfterItWasPutBackIsNotKnownYet: two nodes whose clocks are ahead know of each other's writes. One puts its own back and goes on;
// what it writes then has earlier stamps than what the other one knows of it. That one has all of it once it has put back what it has.
func TestWhatIsWrittenAfterItWasPutBackIsNotKnownYet(t *testing.T) {
	const ahead = time.Hour
	now := time.Unix(1_800_000_000, 0)
	var m, o LWW
	var clock, other Clock
	self, there := Incarnation{NodeID{1}, 1}, Incarnation{NodeID{2}, 1}
	set := func(key string, at time.Time) {
		if err := m.Set(key, []byte(at.String()), clock.Now(at, self.Node)); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(o *LWW, have LWWDigest, at time.Time) {
		if err := o.hear(m.Delta(have, 0), &other, at); err != nil {
			t.Fatal(err)
		}
	}
	m.NoteStart(self, Stamp{}, time.Time{}, now)
	o.NoteStart(there, Stamp{}, time.Time{}, now)
	for _, key := range []string{"a", "b"} {
		set(key, now)
	}
	tell(&o, nil, now)
	known := m.Digest()
	self.Boot, there.Boot = 2, 2
	m.NoteStart(self, clock.Last(), time.Time{}, now.Add(ahead))
	o.NoteStart(there, other.Last(), time.Time{}, now.Add(ahead))
	set("c", now.Add(time.Second+ahead))
	tell(&o, known, now.Add(time.Second+ahead))

	now = now.Add(2 * time.Second)
	m.Rewind(self.Node, 0, now.Add(ahead), now)
	clock.Rewind(m.Newest())
	m.TrustStarts(clock.Last(), now, now)
	set("new", now.Add(time.Second))
	set("a", now.Add(time.Second))
	now = now.Add(2 * time.Second)
	tell(&o, known, now.Add(ahead)) // which it does not know to be ahead yet
	o.Rewind(there.Node, 0, now.Add(ahead), now)
	tell(&o, o.Digest(), now)
	for key := range m.Keys() {
		here, at, _ := m.Get(key)
		if value, is, _ := o.Get(key); string(value) != string(here) || at != is {
			t.Errorf("%s is %q of %v here, and %q of %v there", key, here, at, value, is)
		}
	}
}
