package limit

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// Table is what a node knows of keys. It takes memory as it comes to have more keys, and no more than it
// was made with: a key is in one of a few sets that stand side by side, and where these are full the
// one goes that was asked about longest ago. Keys that are limited stay while any other can
// go: for a flood of addresses that come once nobody is forgotten who came too often. Make
// one with NewTable.
type Table struct {
	sets []set
	most int   // sets there may be
	area *area // where they are; nil: in memory of their own
	from int   // the first in area

	// Tell says that other nodes are to hear of what is counted here.
	Tell  bool
	dirty []uint32 // places of keys with something to tell
	begun []uint32 // places of keys that came to be limited here

	// Replaced is how many keys gave way to others within two periods of their last
	// request, and so were forgotten too early.
	Replaced uint64

	periods [MaxSlots]Millis // of rules, by slot
	unswept int              // the set that Sweep goes on with
}

const (
	ways  = 2 // of a set
	reach = 8 // sets that a key may be in

	// MaxSlots is how many rules may count at a time: those that there are, and while
	// they change those that there were.
	MaxSlots = 2 * MaxRules
)

// set is keys whose hashes are near each other. It has the size of a line of memory.
type set [ways]entry

// entry is what is known of a key. Times are the lower bits of Millis: what is older than
// these tell apart is swept away long before.
type entry struct {
	key     Key    // 0: free
	start   uint32 // see Window, as the next two
	before  uint32
	current uint32
	last    uint32 // when it was last asked about; of one that is limited, when that ends
	unsent  uint32 // of before and current, what only this node knows
	slot    uint8
	flags   uint8
	spills  bool // of the first of a set: keys of the set may be in those behind it
}

const (
	isLimited uint8 = 1 << iota // until last
	isQueued                    // in Table.dirty
	isBegun                     // in Table.begun
	isWhole                     // was taken as a whole from another node that told so, see Exchange
)

// KeySize is how many bytes a table takes for each key that it has room for.
const KeySize = int(unsafe.Sizeof(set{})) / ways

// maxQueue is the part of the keys that may be queued to be told of at a time. Those that
// find no room are when they are next counted.
const maxQueue = 4

// NewTable returns a table that takes at most so many bytes, but has room for a few keys at least.
func NewTable(bytes int) *Table { return &NewTables(1, bytes)[0] }

// area is memory for the sets of some tables, which Go's collector does not count.
type area struct{ sets []set }

// NewTables returns n tables that take at most so many bytes together, but have room for a
// few keys each at least.
func NewTables(n, bytes int) []Table {
	most := max(bytes/n/(int(unsafe.Sizeof(set{}))+2*4*ways/maxQueue), reach)
	a := reserve(n * most)
	tables := make([]Table, n)
	for i := range tables {
		t := &tables[i]
		*t = Table{most: most, area: a, from: i * most}
		t.sets = t.memory(reach)
	}
	return tables
}

// memory returns the first sets of the table, which are empty.
func (t *Table) memory(sets int) []set {
	if t.area == nil {
		return make([]set, sets)
	}
	of := t.area.sets[t.from:][:sets:sets]
	clear(of[:len(t.sets)]) // the others never were anything else
	return of
}

// grow makes room for twice as many keys, and reports whether it could.
func (t *Table) grow() bool {
	if len(t.sets) >= t.most {
		return false
	}
	before := t.sets
	if t.area != nil {
		before = slices.Clone(before)
	}
	t.sets = t.memory(min(2*len(before), t.most))
	t.dirty, t.begun, t.unswept = t.dirty[:0], t.begun[:0], 0
	for i := range before {
		for way := range before[i] {
			if e := before[i][way]; e.key != 0 {
				t.put(e)
			}
		}
	}
	if len(t.sets) == t.most && t.area != nil {
		t.area.inHugePages(t.sets)
	}
	return true
}

// put gives an entry a place, which there is: it was in a table half as large.
func (t *Table) put(e entry) {
	home := t.home(e.key)
	for d := range reach {
		i := (home + d) % len(t.sets)
		for way := range t.sets[i] {
			free := &t.sets[i][way]
			if free.key != 0 {
				continue
			}
			e.spills = free.spills
			*free = e
			if d > 0 {
				t.sets[home][0].spills = true
			}
			place := uint32(i*ways + way)
			if e.flags&isQueued != 0 {
				t.dirty = append(t.dirty, place)
			}
			if e.flags&isBegun != 0 {
				t.begun = append(t.begun, place)
			}
			return
		}
	}
	t.Replaced++
}

// queue is how many keys may be queued at a time.
func (t *Table) queue() int { return max(t.most*ways/maxQueue, ways) }

// Len returns how many keys there is room for.
func (t *Table) Len() int { return t.most * ways }

// Use says which rule has a slot from now on. What the slot counted before is forgotten.
func (t *Table) Use(r *Terms) {
	t.each(func(e *entry) {
		if uint16(e.slot) == r.Slot {
			e.key = 0
		}
	})
	t.periods[r.Slot] = r.Period
}

// Forgive ends what is limited by the rule of a slot.
func (t *Table) Forgive(slot uint16, now Millis) {
	t.each(func(e *entry) {
		if uint16(e.slot) == slot && e.limited(now) {
			e.flags &^= isLimited
			e.last = uint32(now)
		}
	})
}

func (t *Table) each(f func(e *entry)) {
	for i := range t.sets {
		for way := range t.sets[i] {
			if e := &t.sets[i][way]; e.key != 0 {
				f(e)
			}
		}
	}
}

// Take counts a request, unless it is limited.
func (t *Table) Take(k Key, r *Terms, now Millis) Verdict {
	e, at := t.find(k)
	if e == nil {
		e, at = t.place(k, r, now)
	} else if e.limited(now) {
		return e.refusal(now)
	}
	w := e.window(r.Period, now)
	if w.Over(r.Requests, 1, r.Period, now) {
		return t.begin(e, at, r, now)
	}
	w.Current = sum(w.Current, 1)
	t.counted(e, at, 1)
	e.keep(w)
	e.last = uint32(now)
	return verdict(&w, r, now)
}

// Peek says whether a request would be limited, and counts nothing.
func (t *Table) Peek(k Key, r *Terms, now Millis) Verdict { return t.peek(k, r, 1, now) }

// Check says whether a key is limited, for a request that does not count. As it adds nothing,
// who has used up the limit is not limited by it.
func (t *Table) Check(k Key, r *Terms, now Millis) Verdict { return t.peek(k, r, 0, now) }

// peek says whether n more requests of a key would be limited.
func (t *Table) peek(k Key, r *Terms, n uint32, now Millis) Verdict {
	e, at := t.find(k)
	switch {
	case e == nil:
		return Verdict{Remaining: int(r.Requests), Reset: r.Period.Duration()}
	case e.limited(now):
		return e.refusal(now)
	}
	w := e.window(r.Period, now)
	if w.Over(r.Requests, n, r.Period, now) {
		return t.begin(e, at, r, now)
	}
	return verdict(&w, r, now)
}

// Look says what is known of a key: as Check, but that no key comes to be limited.
func (t *Table) Look(k Key, r *Terms, now Millis) Verdict {
	e, _ := t.find(k)
	switch {
	case e == nil:
		return Verdict{Remaining: int(r.Requests), Reset: r.Period.Duration()}
	case e.limited(now):
		return e.refusal(now)
	}
	w := e.window(r.Period, now)
	return verdict(&w, r, now)
}

// Count counts a request that was let pass.
func (t *Table) Count(k Key, r *Terms, now Millis) Verdict {
	e, at := t.find(k)
	if e == nil {
		e, at = t.place(k, r, now)
	}
	w := e.window(r.Period, now)
	w.Current = sum(w.Current, 1)
	t.counted(e, at, 1)
	e.keep(w)
	if e.limited(now) {
		return e.refusal(now)
	}
	e.last = uint32(now)
	return verdict(&w, r, now)
}

// counted has others hear of n requests.
func (t *Table) counted(e *entry, at uint32, n uint32) {
	if !t.Tell {
		return
	}
	e.unsent = sum(e.unsent, n)
	if e.flags&isQueued == 0 && len(t.dirty) < t.queue() {
		e.flags |= isQueued
		t.dirty = append(t.dirty, at)
	}
}

// begin has a key be limited.
func (t *Table) begin(e *entry, at uint32, r *Terms, now Millis) Verdict {
	w := e.window(r.Period, now)
	e.limit(now + r.lasts(&w, now))
	if t.Tell && e.flags&isBegun == 0 && len(t.begun) < t.queue() {
		e.flags |= isBegun
		t.begun = append(t.begun, at)
	}
	v := e.refusal(now)
	v.Began = true
	return v
}

// lasts returns for how long a key is limited that comes to be.
func (r *Terms) lasts(w *Window, now Millis) Millis {
	// After a shorter timeout it would come to be limited again at once.
	return max(r.Timeout, w.Wait(r.Requests, r.Period, now), 1)
}

func verdict(w *Window, r *Terms, now Millis) Verdict {
	v := Verdict{Remaining: w.Remaining(r.Requests, r.Period, now)}
	if v.Remaining > 0 {
		v.Reset = w.left(r.Period, now).Duration()
	} else {
		v.Reset = w.Wait(r.Requests, r.Period, now).Duration()
	}
	return v
}

// window returns the window of a key, brought to now.
func (e *entry) window(period, now Millis) Window {
	w := Window{now - since(e.start, now), e.before, e.current}
	w.Roll(period, now)
	return w
}

func (e *entry) keep(w Window) {
	e.start, e.before, e.current = uint32(w.Start), w.Previous, w.Current
}

// since returns how long ago a time was, of which only the lower bits are known; less than
// nothing if it is still to come.
func since(at uint32, now Millis) Millis { return Millis(int32(uint32(now) - at)) }

// limit has a key be limited until a time.
func (e *entry) limit(until Millis) {
	e.flags |= isLimited
	e.last = uint32(until)
}

// limited reports whether a key is limited at now.
func (e *entry) limited(now Millis) bool {
	if e.flags&isLimited == 0 {
		return false
	}
	if since(e.last, now) < 0 {
		return true
	}
	e.flags &^= isLimited
	return false
}

// until returns when a key that is limited no longer is.
func (e *entry) until(now Millis) Millis { return now - since(e.last, now) }

func (e *entry) refusal(now Millis) Verdict {
	return Verdict{Limited: true, Reset: (-since(e.last, now)).Duration()}
}

// home returns the first of the sets that a key may be in.
func (t *Table) home(k Key) int {
	i, _ := bits.Mul64(uint64(k), uint64(len(t.sets)))
	return int(i)
}

// wayOf returns where a key is in a set; less than 0 if it is not there. It has no branch
// that depends on where: the processor would guess wrong, and wait for the memory.
func (s *set) wayOf(k Key) int {
	way := -1
	if s[0].key == k {
		way = 0
	}
	if s[1].key == k {
		way = 1
	}
	return way
}

// find returns what is known of a key, and its place; nil if nothing is.
func (t *Table) find(k Key) (*entry, uint32) {
	i := t.home(k)
	s := &t.sets[i]
	if way := s.wayOf(k); way >= 0 {
		return &s[way&(ways-1)], uint32(i*ways + way)
	}
	if !s[0].spills {
		return nil, 0
	}
	for range reach - 1 {
		if i++; i == len(t.sets) {
			i = 0
		}
		if way := t.sets[i].wayOf(k); way >= 0 {
			return &t.sets[i][way], uint32(i*ways + way)
		}
	}
	return nil, 0
}

// at returns what is known of the key that has a place; nil if none does.
func (t *Table) at(place uint32) *entry {
	if e := &t.sets[place/ways][place%ways]; e.key != 0 {
		return e
	}
	return nil
}

// place makes room for a key that is not there.
func (t *Table) place(k Key, r *Terms, now Millis) (*entry, uint32) {
	home := t.home(k)
	oldest, age := 0, Millis(math.MinInt64)
search:
	for d := range reach {
		i := (home + d) % len(t.sets)
		for way := range t.sets[i] {
			e := &t.sets[i][way]
			if e.key == 0 {
				oldest, age = i*ways+way, math.MaxInt64
				break search
			}
			if a := since(e.last, now); a > age {
				oldest, age = i*ways+way, a
			}
		}
	}
	e := &t.sets[oldest/ways][oldest%ways]
	if age < 2*t.periods[e.slot] {
		if t.grow() {
			return t.place(k, r, now)
		}
		t.Replaced++
	}
	if oldest/ways != home {
		t.sets[home][0].spills = true
	}
	*e = entry{key: k, start: uint32(now - now%r.Period), last: uint32(now), slot: uint8(r.Slot), spills: e.spills}
	return e, uint32(oldest)
}

// settle takes back that keys of a set are in those behind it, if none is any more.
func (t *Table) settle(home int) {
	if !t.sets[home][0].spills {
		return
	}
	for d := 1; d < reach; d++ {
		s := &t.sets[(home+d)%len(t.sets)]
		for way := range s {
			if s[way].key != 0 && t.home(s[way].key) == home {
				return
			}
		}
	}
	t.sets[home][0].spills = false
}
