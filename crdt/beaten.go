package crdt

import (
	"time"

	"github.com/ropeline/ropeline/node/packed"
)

// What has won may be put back, since the clock that it was written by was ahead: see LWW.Rewind. What it had won over when that came is
// known here from then on, and nobody tells it once more. So it is kept for a while: clocks are compared soon after nodes meet.
// What was known here before something took its place needs not be kept: Rewind puts nothing back behind it.

const (
	beatenFor      = time.Minute
	maxBeaten      = 256
	maxBeatenBytes = 1 << 20
)

// beaten is writes that were beaten by one of another node when they came: the newest of each key. The zero value is empty.
type beaten struct {
	of   map[string]beatenEntry
	size int
}

type beatenEntry struct {
	lwwEntry
	by    uint64    // packed stamp of what it was beaten by
	since time.Time // about when; zero: lately
}

// note notes that an entry has come, and was beaten by another one.
func (b *beaten) note(key string, e, by lwwEntry) {
	was, known := b.of[key]
	if e.stamp.Node == by.stamp.Node || e.written() == by.written() || known && !e.wins(was.lwwEntry) {
		return
	}
	b.drop(key)
	if b.of == nil {
		b.of = map[string]beatenEntry{}
	}
	b.of[key] = beatenEntry{lwwEntry: e, by: by.stamp.packed()}
	b.size += len(key) + len(e.value)
	for len(b.of) > maxBeaten || b.size > maxBeatenBytes {
		b.drop(b.oldest())
	}
}

func (b *beaten) drop(key string) {
	if e, ok := b.of[key]; ok {
		b.size -= len(key) + len(e.value)
		packed.Delete(&b.of, key)
	}
}

func (b *beaten) oldest() (key string) {
	var first Stamp
	for k, e := range b.of {
		if key == "" || e.stamp.Compare(first) < 0 {
			key, first = k, e.stamp
		}
	}
	return key
}

// ForgetBeaten forgets what was beaten a while ago. It is called now and then while nothing that is here is of a time to come.
func (m *LWW) ForgetBeaten(now time.Time) {
	for key, e := range m.beaten.of {
		switch {
		case e.since.IsZero():
			e.since = now
			m.beaten.of[key] = e
		case now.Sub(e.since) >= beatenFor:
			m.beaten.drop(key)
		}
	}
}

// putBeaten has what was beaten by writes with stamps after a packed one win over them, if they are older now that they were put back.
func (m *LWW) putBeaten(back []Write, after uint64) {
	for _, w := range back {
		if e, ok := m.beaten.of[w.Key]; ok && e.by > after && !m.early(e.lwwEntry) { // else it is told once more
			m.beaten.drop(w.Key)
			m.put(w.Key, e.lwwEntry)
		}
	}
}
