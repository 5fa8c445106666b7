package crdt

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/ropeline/ropeline/node/packed"
)

const (
	// MaxValue is the size of the largest value of an LWW.
	MaxValue = 64 << 10
	// MaxKeys is with how many keys, deleted ones included, an LWW takes nothing more that is New. It
	// may have an eighth more.
	MaxKeys = maxLWWEntries - keptForFacts
	// MaxFacts is the same of a Fact.
	MaxFacts = maxLWWEntries - keptForChanges
	maxKey   = 512
)

// ErrConflict is returned by a compare-and-set whose key has moved on.
var ErrConflict = errors.New("changed in the meantime")

// ErrFull is returned by a write for which an LWW has no room.
var ErrFull = errors.New("the map is full")

// Weight says how much a write may fill an LWW. Whoever fills it with one kind of writes must not keep
// others from what is more urgent: that limits can be lowered, and things be deleted. What needs no more
// than was there before always fits.
type Weight uint8

const (
	Fact   Weight = iota // what nodes say of rooms and of each other
	New                  // what operators can do without: a thing that was not there
	Change               // what changes or deletes a thing that is there
)

// LWW is a map in which the last write to a key wins. Everybody may write, so
// unlike rows it is for what operators change now and then. A deleted key stays
// behind as a stamp without a value: were it forgotten, a node that slept
// through the deletion would bring the old value back. So it is forgotten once
// every node has it; see Forget.
//
// The writes of one node are numbered by its stamps, so a digest says for each
// writer up to which stamp everything is held: every such write, or one that has won
// over it. See Apply for what that takes. The zero value is empty and ready.
type LWW struct {
	entries lwwTable
	size    int               // bytes of all keys and values
	known   map[NodeID]uint64 // packed stamps
	hides   map[NodeID]uint64 // by writer: the newest of its writes that another node's may have taken the place of

	withheld NodeID                // see Withhold; zero: nobody's writes are
	upTo     uint64                // what is told of that node's
	beneath  map[string][]lwwEntry // what writes that are not told yet have replaced, oldest first

	changes uint64            // so far; see Changes
	tells   uint64            // see Tells
	learned map[NodeID]uint64 // the number of the change that known goes with

	beaten  beaten
	starts  []lwwStart // see NoteStart; oldest first
	started uint64     // the number of the change that they go with

	gone   int                // keys that were deleted
	forgot map[NodeID]horizon // see Forget
}

type lwwEntry struct {
	stamp Stamp // of who tells of it
	first Stamp // of who wrote it, if that is another node; see Adopt
	value string
	gone  bool // deleted

	change uint64 // number of the change that put it here
}

// entryOf returns what a write leaves behind; a nil value deletes. It copies the value.
func entryOf(stamp Stamp, w Write) lwwEntry {
	return lwwEntry{stamp: stamp, first: w.First, value: string(w.Value), gone: w.Value == nil}
}

// write is entryOf the other way round.
func (e *lwwEntry) write(key string) Write {
	return Write{Key: key, At: e.stamp.packed(), First: e.first, Value: e.bytes()}
}

// written returns the stamp of the write itself, whoever tells of it.
func (e *lwwEntry) written() Stamp {
	if e.first.IsZero() {
		return e.stamp
	}
	return e.first
}

// bytes returns a copy of the value; nil: deleted.
func (e *lwwEntry) bytes() []byte {
	if e.gone {
		return nil
	}
	return append([]byte{}, e.value...)
}

// LWWDigest says, per writer, up to which packed stamp a replica holds
// everything: each write, or one that has won over it.
type LWWDigest map[NodeID]uint64

// Holds reports whether a digest has every write of a node up to a stamp of its.
func (d LWWDigest) Holds(up Stamp) bool { return d[up.Node] >= up.packed() }

// LWWDelta is a set of writes.
type LWWDelta struct {
	Pieces []LWWPiece
	Whole  bool // with it, who has what it was made for has all that its sender has; it is not in the encoding
}

// LWWPiece holds the writes of one node with stamps in (From, To], packed, that
// nobody has overwritten, but for deletions up to Forgot, which are forgotten; 0: none is.
type LWWPiece struct {
	Writer   NodeID
	From, To uint64
	Forgot   uint64
	Hides    uint64 // up to here writes may be left out for which what has won over them is not in this piece; 0: none is that is news
	Writes   []Write
}

// Write is one key after one write. A nil Value is a deletion.
type Write struct {
	Key   string
	At    uint64 // packed stamp
	First Stamp  // of the write, if another node tells of it than made it; see LWW.Adopt
	Value []byte
}

// Empty reports whether the delta carries nothing.
func (d LWWDelta) Empty() bool { return len(d.Pieces) == 0 }

// Set writes a copy of value under key, with the weight of a Fact; nil deletes. The stamp must be later
// than all that its node used before, as those of a Clock are.
func (m *LWW) Set(key string, value []byte, at Stamp) error {
	return m.SetAll([]Write{{Key: key, Value: value}}, Fact, func() Stamp { return at })
}

// SetAll is Set for several keys, in order and each with the next stamp; it sets all of them or,
// after an error, none.
func (m *LWW) SetAll(writes []Write, as Weight, next func() Stamp) error {
	for _, w := range writes {
		if len(w.Key) > maxKey || len(w.Value) > MaxValue {
			return fmt.Errorf("key of %d and value of %d bytes, at most %d and %d", len(w.Key), len(w.Value), maxKey, MaxValue)
		}
	}
	if !m.fitsOwn(writes, as) {
		return fmt.Errorf("set %d keys, beginning with %q: %w", len(writes), writes[0].Key, ErrFull)
	}
	for _, w := range writes {
		at := next()
		m.learn(at.Node, at.packed())
		m.put(w.Key, entryOf(at, Write{Value: w.Value}))
		m.changes++
	}
	return nil
}

// CompareAndSet is Set if the newest write of key has the stamp was, zero for a
// key that was never written; otherwise it returns ErrConflict. It compares with
// what this replica has heard: of two that succeed at once at different nodes,
// the later one stays.
func (m *LWW) CompareAndSet(key string, value []byte, was, at Stamp) error {
	if e, _ := m.entries.get(key); e.written() != was {
		return fmt.Errorf("set %q: %w", key, ErrConflict)
	}
	return m.Set(key, value, at)
}

// Get returns a copy of the value of key and the stamp of its newest write. ok
// is false for a key that was deleted (the stamp says when) or never written.
func (m *LWW) Get(key string) (value []byte, at Stamp, ok bool) {
	e, known := m.entries.get(key)
	if !known {
		return nil, Stamp{}, false
	}
	return e.bytes(), e.written(), !e.gone
}

// Keys yields the keys that have a value, in no order.
func (m *LWW) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key, e := range m.entries.all() {
			if !e.gone && !yield(key) {
				return
			}
		}
	}
}

// Stamps yields the keys that have a value with the stamps of their newest writes, in no
// order.
func (m *LWW) Stamps() iter.Seq2[string, Stamp] {
	return func(yield func(string, Stamp) bool) {
		for key, e := range m.entries.all() {
			if !e.gone && !yield(key, e.written()) {
				return
			}
		}
	}
}

// Changed yields the keys, deleted ones included, that have got another entry since Changes returned a
// number, in an order that depends on what came alone. Nothing may be written meanwhile.
func (m *LWW) Changed(since uint64) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m.entries.since(since) {
			if !yield(m.entries.key(k)) {
				return
			}
		}
	}
}

// KeysWith yields the keys that have a value, and between their first slash and the next this id, in no
// order. Nothing may be written meanwhile.
func (m *LWW) KeysWith(id [16]byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k, c := range m.entries.with(id) {
			if !c.gone() && !yield(m.entries.key(k)) {
				return
			}
		}
	}
}

// Len returns the number of keys, deleted ones included.
func (m *LWW) Len() int { return m.entries.len() }

// Newest returns the latest stamp that m knows of, by which a restarted clock is set.
func (m *LWW) Newest() Stamp {
	var newest Stamp
	for writer, n := range m.known {
		if known := unpack(n, writer); known.Compare(newest) > 0 {
			newest = known
		}
	}
	for _, e := range m.entries.all() {
		if e.stamp.Compare(newest) > 0 {
			newest = e.stamp
		}
	}
	return newest
}

// Clone returns a copy that shares nothing with m.
func (m *LWW) Clone() *LWW {
	c := new(LWW)
	c.Merge(m)
	return c
}

// Merge adds what o holds and copies what it takes.
func (m *LWW) Merge(o *LWW) {
	for writer, known := range o.known {
		m.learn(writer, known)
	}
	for key, e := range o.entries.all() {
		m.put(key, e)
	}
	for key, all := range o.beneath {
		for _, e := range all {
			m.put(key, e)
		}
	}
	for writer, hidden := range o.hides {
		m.hide(unpack(hidden, writer))
	}
	for writer, h := range o.forgot {
		m.forgetUpTo(writer, h.upTo)
	}
	if len(m.starts) == 0 && len(o.starts) > 0 {
		m.starts, m.started = slices.Clone(o.starts), m.changes+1
	}
	m.uncover()
	m.changes++
}

// Withhold has Known, KnownOf, Digest and Delta tell of a node's writes up to a packed
// stamp only, until it is called again. It is for writes of a node's own that are not on
// its disk yet: if it lost them in a crash after others had heard of them, its next write
// would say to all that it has them, and so it would never get them back. What a withheld
// write has replaced is told for as long: others would take it for known, and the write
// that is to replace it may never come.
func (m *LWW) Withhold(writer NodeID, upTo uint64) {
	if m.withheld != writer || m.upTo != upTo {
		m.tells++
	}
	m.withheld, m.upTo = writer, upTo
	m.uncover()
}

// uncover lets go of what stood behind writes that are told by now.
func (m *LWW) uncover() {
	for key, all := range m.beneath {
		if e, _ := m.entries.get(key); !m.withholds(e) {
			packed.Delete(&m.beneath, key)
		} else if i := m.told(all); i > 0 {
			m.beneath[key] = all[i:]
		}
	}
}

// told returns the index of the newest entry that is told of; -1: none is.
func (m *LWW) told(all []lwwEntry) int {
	i := len(all) - 1
	for i >= 0 && m.withholds(all[i]) {
		i--
	}
	return i
}

// withholds reports whether nobody is told of an entry yet.
func (m *LWW) withholds(e lwwEntry) bool { return e.stamp.packed() > m.KnownOf(e.stamp.Node) }

// early reports whether an entry was taken out of turn: what its teller wrote before it may be missing. See Take.
func (m *LWW) early(e lwwEntry) bool { return e.stamp.packed() > m.known[e.stamp.Node] }

// Known returns up to which packed stamp every write of a node is held, for each
// node that wrote, in no order. It is what Digest returns, without a copy.
func (m *LWW) Known() iter.Seq2[NodeID, uint64] {
	return func(yield func(NodeID, uint64) bool) {
		for writer := range m.known {
			if !yield(writer, m.KnownOf(writer)) {
				return
			}
		}
	}
}

// Tells returns a number that grows whenever Known or KnownOf begin to return something
// else; 0: nothing is known.
func (m *LWW) Tells() uint64 { return m.tells }

// KnownOf is Known of one node; 0: nothing.
func (m *LWW) KnownOf(writer NodeID) uint64 {
	if writer == m.withheld {
		return min(m.known[writer], m.upTo)
	}
	return m.known[writer]
}

// NewestOf returns the packed stamp of the newest write of a node that is held, told or
// not; 0: none.
func (m *LWW) NewestOf(writer NodeID) uint64 { return m.known[writer] }

// Holds reports whether every write of a node up to a stamp of its is held.
func (m *LWW) Holds(up Stamp) bool { return m.known[up.Node] >= up.packed() }

// Digest returns what m may promise to hold.
func (m *LWW) Digest() LWWDigest {
	d := make(LWWDigest, len(m.known))
	maps.Insert(d, m.Known())
	return d
}

// Tellable reports whether others may be told of a write of that stamp: that it is not withheld.
func (m *LWW) Tellable(at Stamp) bool { return at.Node != m.withheld || at.packed() <= m.upTo }

// growth returns how many keys writes add at most, and how many bytes.
func (m *LWW) growth(writes []Write) (keys, size int) {
	for _, w := range writes {
		old, known := m.entries.get(w.Key)
		if !known {
			keys++
			size += len(w.Key)
		}
		size += max(0, len(w.Value)-len(old.value))
	}
	return keys, size
}

// fits reports whether there is room for what others have written. What needs no more than was
// there before always fits: it may be a limit that was lowered.
func (m *LWW) fits(writes []Write) bool {
	keys, size := m.growth(writes)
	return (keys == 0 || m.entries.len()+keys <= maxLWWEntries) && (size == 0 || m.size+size <= maxLWWBytes)
}

// fitsOwn is fits for what is written here, which leaves room to others.
func (m *LWW) fitsOwn(writes []Write, as Weight) bool {
	keys, size := m.growth(writes)
	free, freeBytes := keptForChanges, 2*keptLWWBytes
	switch as {
	case New:
		free, freeBytes = keptForFacts, keptFromLarge
	case Change:
		free, freeBytes = keptLWWEntries, keptLWWBytes
	case Fact:
	}
	switch {
	case size > MaxValue:
		freeBytes = keptFromLarge
	case keys == 0:
		freeBytes = keptLWWBytes / 2
	}
	return (keys == 0 || m.entries.len()+keys <= maxLWWEntries-free) && (size == 0 || m.size+size <= maxLWWBytes-freeBytes)
}

// put keeps the later write, as told by who tells of it last. Two values under one stamp cannot
// come from honest writers; the larger one stays, so that all replicas still agree.
func (m *LWW) put(key string, e lwwEntry) {
	old, ok := m.entries.get(key)
	if ok && !e.wins(old) {
		m.beaten.note(key, e, old)
		m.hideBehind(e, old)
		if m.cover(key, e, old) && m.early(old) {
			old.change = m.changes + 1 // it is stored with what it stands in front of
			m.entries.put(key, old)
		}
		return
	}
	if ok {
		m.size -= len(key) + len(old.value)
		m.gone -= 1 - presence(old)
		m.hideBehind(old, e)
		m.cover(key, old, e)
	}
	m.size += len(key) + len(e.value)
	m.gone += 1 - presence(e)
	e.change = m.changes + 1
	m.entries.put(key, e)
}

// cover keeps an entry that one stands in front of which is not told yet, and reports whether it is kept only now. One that
// was itself taken out of turn is not: it comes once more with what its teller wrote before it.
func (m *LWW) cover(key string, e, by lwwEntry) bool {
	if !m.withholds(by) {
		packed.Delete(&m.beneath, key)
		return false
	}
	all := m.beneath[key]
	i := len(all)
	for i > 0 && all[i-1].wins(e) {
		i--
	}
	if m.early(e) || e.stamp == by.stamp || i > 0 && !e.wins(all[i-1]) {
		return false // or the same again
	}
	if i > 0 {
		m.hideBehind(all[i-1], e) // which was told until now
	}
	if m.beneath == nil {
		m.beneath = make(map[string][]lwwEntry)
	}
	all = slices.Insert(all, i, e)
	m.beneath[key] = all[max(0, m.told(all)):]
	return true
}

// wins reports whether e is the one that stays of two writes to a key.
func (e lwwEntry) wins(o lwwEntry) bool {
	return cmp.Or(e.written().Compare(o.written()), cmp.Compare(e.value, o.value), presence(e)-presence(o), e.stamp.Compare(o.stamp)) > 0
}

func presence(e lwwEntry) int {
	if e.gone {
		return 0
	}
	return 1
}

func (m *LWW) learn(writer NodeID, known uint64) {
	if was, ok := m.known[writer]; ok && known <= was {
		return
	}
	if m.known == nil {
		m.known, m.learned = make(map[NodeID]uint64), make(map[NodeID]uint64)
	}
	m.known[writer], m.learned[writer] = known, m.changes+1
	m.tells++
}
