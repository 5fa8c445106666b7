package limit

import (
	"testing"
	"time"
)

// flood has a link tell of keys that came at a time.
func flood(t *testing.T, l *link, rules *Rules, from, keys int, now Millis) {
	t.Helper()
	for k := from; k < from+keys; k++ {
		l.add(Fresh{Key: Key(k + 1), Slot: rules.Counter(ID{1}).Slot, Count: 1}, now-siteInterval, siteInterval, 1)
	}
	if l.send(rules, 1, l.seq+1, now) == nil {
		t.Fatal("nothing is sent")
	}
}

// underWay is how many keys are on their way, and how old they are taken to be.
func (l *link) underWay(now Millis) (keys int, age Millis) {
	for _, g := range l.flying {
		keys += len(g.items)
	}
	return keys, now - l.from
}

// What has no room in a message is told with the next ones, and with those that came later only if it
// is not much older.
func TestWhatHasNoRoomIsToldNext(t *testing.T) {
	rules := NewRules([]byte("secret"))
	tables := one{NewTable(1 << 16)}
	rules.Follow([]Rule{Rule{ID: ID{1}, Name: "r", Expression: "true", Period: time.Minute, RequestsPerPeriod: 10}.WithDefaults()}, tables, start)
	for name, c := range map[string]struct {
		trip      Millis // until the first message is acknowledged
		keys      int    // in the second
		age       Millis
		lost, few int
	}{
		"at once":            {tickInterval, 1000, siteInterval + tickInterval, 0, 0},
		"with what came":     {siteInterval, 1010, 2 * siteInterval, 0, 10},
		"too old to go with": {10 * siteInterval, 10, siteInterval, 1000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := newLink(), start
			flood(t, l, rules, 0, maxItems+1000, now)
			if keys, age := l.underWay(now); keys != maxItems || age != siteInterval {
				t.Fatalf("%d keys are told first, as %d ms old", keys, age)
			}
			now += c.trip
			l.acknowledge(l.seq, now)
			if c.few == 0 {
				l.send(rules, 1, l.seq+1, now)
			} else {
				flood(t, l, rules, 2*maxItems, c.few, now)
			}
			if keys, age := l.underWay(now); keys != c.keys || age != c.age {
				t.Errorf("then %d keys are told, as %d ms old; want %d, as %d", keys, age, c.keys, c.age)
			}
			if lost := l.give(rules, now); lost != uint64(c.lost) {
				t.Errorf("%d counts are lost, want %d", lost, c.lost)
			}
		})
	}
}
