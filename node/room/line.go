package room

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

const (
	// absentAfterHalves is how many refresh intervals without a poll make a visitor
	// absent, in halves.
	absentAfterHalves = 5

	// MaxLine bounds the visitors that one node keeps for one room. Beyond it new
	// ones wait as others do, but are not counted until somebody is forgotten.
	MaxLine = 4 << 20

	wheelSlots = 64 // seconds; a later deadline is looked at early and put back
)

// Change is what happened to one cell of a node's row: P and N are to be added.
type Change struct {
	Kind crdt.Kind // Waiting or Seen
	Tick int64     // as in crdt.Key
	P, N uint64
}

// Line is one node's table of the visitors of a room that it owns: those who
// wait, and those let in lately. It turns polls and admissions, which may come
// doubled, late and in any order, into changes of counts, such that a visitor
// counts once. Create it with NewLine; a nil one is empty for all who only ask, and has
// nothing that expires. It is not safe for concurrent use.
//
// It is a cache. A visitor who stops polling is forgotten, not remembered as
// absent: the place is in the pass, and the next poll counts it again.
type Line struct {
	settings *Settings
	key      []byte // of places
	entries  packed.Table[visitor, entry]
	left     int                 // of entries, those that are nobody any more
	wheel    *[wheelSlots]uint32 // by second of the deadline, chained by next; 0: nobody. Nil: nobody has come
	now      int64               // Unix seconds up to which the wheel has turned
	waiting  int
	dropped  uint64
}

// visitor is an id. Ids are random, and made by nodes.
type visitor [16]byte

// Hash is that of packed.Key.
func (v visitor) Hash() uint64 {
	h := binary.LittleEndian.Uint64(v[:8]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(v[8:]), 32)
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// entry is one visitor. Times are Unix seconds; they fit until 2106. It has no
// pointer, so the garbage collector does not look into the table. An entry with refresh 0
// that is not in is nobody's: it stays until the wheel comes by.
type entry struct {
	next    uint32 // in the wheel, by number; 0: it is the last
	granule uint32 // where the visitor is counted while waiting
	arrival uint32 // of the place that was taken, which may lie elsewhere; once in: the first admission
	last    uint32 // newest sign of a pass that waited
	seen    uint32 // newest tick in which the visitor was counted as seen
	refresh uint16 // seconds
	in      bool   // admitted
}

// nobody reports whether an entry is that of somebody who gave up.
func (e *entry) nobody() bool { return e.refresh == 0 && !e.in }

// NewLine returns an empty table for a room. The settings are complete, and nobody changes
// them any more. key is that of Settings.Place.
func NewLine(s *Settings, key []byte) *Line { return &Line{settings: s, key: key, now: -1} }

// SetSettings takes new settings over, which are as those of NewLine. Who is counted stays counted where they
// are; BucketSpan applies to those who come or poll from now on.
func (l *Line) SetSettings(s *Settings) {
	if l != nil {
		l.settings = s
	}
}

// Waiting returns how many visitors are counted as waiting.
func (l *Line) Waiting() int {
	if l == nil {
		return 0
	}
	return l.waiting
}

// Len returns how many visitors the table holds.
func (l *Line) Len() int {
	if l == nil {
		return 0
	}
	return l.entries.Len() - l.left
}

// Stand is what a Line knows of one visitor. Times are whole seconds.
type Stand struct {
	Arrival  time.Time // of the place that was taken; of who is in: when they were first let in
	LastPoll time.Time
	Refresh  time.Duration // that was told
	In       bool          // let in lately, so not waiting
}

// Find returns what is known of a visitor; false if nothing is.
func (l *Line) Find(id [16]byte) (Stand, bool) {
	e := l.find(id)
	if e == nil {
		return Stand{}, false
	}
	at := func(s uint32) time.Time { return time.Unix(int64(s), 0).UTC() }
	return Stand{Arrival: at(e.arrival), LastPoll: at(e.last), Refresh: time.Duration(e.refresh) * time.Second, In: e.in}, true
}

// Dropped returns how many visitors were not counted because of MaxLine.
func (l *Line) Dropped() uint64 {
	if l == nil {
		return 0
	}
	return l.dropped
}

// Poll takes a request at at of a visitor who waits since arrival and was told
// to ask again after refresh, and appends what changes to dst. The visitor is
// counted where Settings.Place puts them. A poll that is older than what is known,
// or so old that the visitor would be absent by now, changes nothing; neither does
// one whose place was redeemed by an admission.
func (l *Line) Poll(dst []Change, id [16]byte, arrival, at time.Time, refresh time.Duration) []Change {
	if refresh <= 0 {
		refresh = l.settings.RefreshInterval
	}
	now := unix32(at)
	every := uint16(min(max(1, seconds(refresh)), math.MaxUint16))
	granule := uint32(min(max(0, GranuleOf(l.settings.Place(l.key, id, arrival), l.settings.BucketSpan)), math.MaxUint32))
	e := l.find(id)
	switch {
	case e == nil:
		if int64(now)+absence(every) < l.now {
			return dst
		}
		return l.add(dst, id, entry{granule: granule, arrival: unix32(arrival), last: now, refresh: every}, at)
	case e.in && unix32(arrival) <= e.arrival:
		e.last = max(e.last, now) // the place was redeemed; a copy lives on, and shall be known for as long
		return dst
	case e.in:
		// The session is over and the visitor waits again, from a new arrival.
		e.in = false
		dst = l.count(dst, granule)
	case now < e.last:
		return dst
	case granule != e.granule:
		dst = l.count(l.uncount(dst, e.granule), granule)
	}
	e.granule, e.arrival, e.last, e.refresh = granule, unix32(arrival), now, every
	return l.sawIn(dst, e, at)
}

// Admit takes the news that a visitor was let in at at, and appends what changes
// to dst. It is remembered for as long as a pass that waited might come again,
// so that polls that it overtook do not count.
func (l *Line) Admit(dst []Change, id [16]byte, at time.Time) []Change {
	e := l.find(id)
	switch {
	case e == nil:
		return l.add(dst, id, entry{in: true, arrival: unix32(at), last: unix32(at)}, at)
	case e.in:
		e.last = max(e.last, unix32(at))
		return dst
	case unix32(at) < e.arrival:
		return dst // an earlier session; the visitor has queued again since
	}
	dst = l.uncount(dst, e.granule)
	e.in, e.arrival = true, max(unix32(at), e.arrival)
	e.last = max(e.last, e.arrival)
	return l.sawIn(dst, e, at)
}

// Spent reports whether a visitor's place was taken up before a moment. Who asks at at
// has seen a pass that waited, and so a copy of it lives.
func (l *Line) Spent(id [16]byte, before, at time.Time) bool {
	e := l.find(id)
	if e == nil || !e.in {
		return false
	}
	e.last = max(e.last, unix32(at))
	return e.arrival < unix32(before)
}

// Leave takes the news that a visitor gave up, and appends what changes to dst.
func (l *Line) Leave(dst []Change, id [16]byte) []Change {
	e := l.find(id)
	if e == nil || e.in {
		return dst
	}
	e.refresh = 0
	l.left++
	return l.uncount(dst, e.granule)
}

// Expire forgets who has not polled for two and a half refresh intervals, and
// who was let in longer ago than a place is kept. It appends what changes to dst
// and costs time for about one in wheelSlots of the table per second.
func (l *Line) Expire(dst []Change, now time.Time) []Change {
	if l == nil {
		return dst
	}
	to := now.Unix()
	if l.now < 0 {
		l.now = to - wheelSlots
	} else if to < l.now {
		l.turnBack(to)
	}
	from := max(l.now+1, to-wheelSlots+1) // after a pause each slot once
	l.now = max(l.now, to)
	if l.wheel == nil {
		return dst
	}
	for s := from; s <= to; s++ {
		slot := &l.wheel[s&(wheelSlots-1)]
		i := *slot
		for *slot = 0; i != 0; {
			_, e := l.entries.At(i)
			next := e.next
			dst = l.look(dst, i)
			i = next
		}
	}
	return dst
}

// turnBack follows a clock that was set back. Nobody has polled later than now;
// without that, whoever is absent would be counted, and whoever comes would not,
// until the clock is where it was.
func (l *Line) turnBack(to int64) {
	l.now = to
	if l.wheel == nil {
		return
	}
	clear(l.wheel[:])
	now := unix32(time.Unix(to, 0))
	for id, e := range l.entries.All() {
		if e.nobody() {
			l.entries.Delete(id)
			continue
		}
		e.last = min(e.last, now)
		if e.in {
			e.arrival = min(e.arrival, now)
		}
		e.seen = min(e.seen, uint32(max(0, crdt.TickOf(time.Unix(to, 0)))))
		l.schedule(l.entries.Number(id), e)
	}
	l.left = 0
}

// look drops an entry whose time has come, or puts it back into the wheel.
func (l *Line) look(dst []Change, i uint32) []Change {
	id, e := l.entries.At(i)
	switch {
	case e.nobody():
		l.left--
	case l.deadline(e) > l.now:
		l.schedule(i, e)
		return dst
	case !e.in:
		dst = l.uncount(dst, e.granule)
	}
	l.entries.Delete(id)
	return dst
}

// absence returns after how many seconds without a poll a visitor is absent.
func absence(refresh uint16) int64 { return (int64(refresh)*absentAfterHalves + 1) / 2 }

func (l *Line) deadline(e *entry) int64 {
	if e.in {
		// The place was last renewed before the admission, for the interval told then.
		told := max(int64(e.refresh), seconds(l.settings.RefreshInterval))
		return int64(e.last) + told + seconds(l.settings.PlaceKept)
	}
	return int64(e.last) + absence(e.refresh)
}

// schedule puts an entry into the wheel slot of its deadline, or of the latest
// moment that the wheel reaches.
func (l *Line) schedule(i uint32, e *entry) {
	at := max(l.deadline(e), l.now+1)
	if l.now >= 0 {
		at = min(at, l.now+wheelSlots-1)
	}
	if l.wheel == nil {
		l.wheel = new([wheelSlots]uint32)
	}
	slot := &l.wheel[at&(wheelSlots-1)]
	e.next = *slot
	*slot = i
}

// find returns the entry of a visitor; nil: nobody knows the visitor.
func (l *Line) find(id visitor) *entry {
	if l == nil {
		return nil
	}
	if e := l.entries.Find(id); e != nil && !e.nobody() {
		return e
	}
	return nil
}

// add takes a visitor in who is not known, and was seen at at, if there is room.
func (l *Line) add(dst []Change, id visitor, is entry, at time.Time) []Change {
	if l.Len() >= MaxLine {
		l.dropped++
		return dst
	}
	i := l.entries.Number(id)
	if i != 0 { // gave up, and is in the wheel still
		l.left--
		_, e := l.entries.At(i)
		is.next = e.next
		*e = is
	} else {
		i = l.entries.AddNumber(id)
		_, e := l.entries.At(i)
		*e = is
		l.schedule(i, e)
	}
	_, e := l.entries.At(i)
	if !is.in {
		dst = l.count(dst, is.granule)
	}
	return l.sawIn(dst, e, at)
}

func (l *Line) count(dst []Change, granule uint32) []Change {
	l.waiting++
	return append(dst, Change{Kind: crdt.Waiting, Tick: int64(granule), P: 1})
}

func (l *Line) uncount(dst []Change, granule uint32) []Change {
	l.waiting--
	return append(dst, Change{Kind: crdt.Waiting, Tick: int64(granule), N: 1})
}

// sawIn counts a visitor as seen in the tick of at, unless that tick or a later
// one has counted them already.
func (l *Line) sawIn(dst []Change, e *entry, at time.Time) []Change {
	tick := uint32(min(max(0, crdt.TickOf(at)), math.MaxUint32))
	if tick <= e.seen {
		return dst
	}
	e.seen = tick
	return append(dst, Change{Kind: crdt.Seen, Tick: int64(tick), P: 1})
}

func unix32(t time.Time) uint32 { return uint32(min(max(0, t.Unix()), math.MaxUint32)) }
