package crdt

import (
	"encoding/hex"
	"hash/maphash"
	"iter"
	"strings"

	"github.com/ropeline/ropeline/node/packed"
)

// lwwTable is the keys of an LWW and what is held of each, in little memory: a map may have
// a hundred thousand, most of them of rooms that nobody visits. The zero value is empty.
//
// One change shall not cost a look at all of them. So the entries of each writer are chained in the
// order in which they came, and those of keys with the same id are chained, too.
type lwwTable struct {
	entries packed.Table[lwwKey, lwwCell]
	forms   []keyForm
	formOf  map[keyForm]uint32
	uses    []uint32 // of each form: how many keys have it
	unused  []uint32 // forms that none has
	writers []lwwWriter
	writer  map[NodeID]uint32           // those that have an entry
	idle    []uint32                    // places in writers of no one
	firsts  map[lwwKey]Stamp            // of entries with first
	ids     packed.Table[lwwID, uint32] // the first entry of each chain of one id
	shared  *[sharedValues]string       // values that were put lately, by hash
}

// lwwWriter is one node that writes.
type lwwWriter struct {
	node   NodeID
	newest uint32 // the entry of it that came last
	top    uint64 // no write of it has a later packed stamp

	// Writes with later stamps than this came in the order of their stamps: nearly all do.
	disorder uint64
}

// lwwID is the id in a key.
type lwwID [idBytes]byte

// Hash is that of packed.Key.
func (id lwwID) Hash() uint64 { return maphash.Comparable(lwwSeed, id) }

// lwwKey is a key that is told apart from others by an id in it, or is a form by itself.
type lwwKey struct {
	id   [idBytes]byte
	form uint32
}

const idBytes = len(NodeID{})

// keyForm is what stands before and behind the id of a key. Thousands of keys differ by
// their id alone.
type keyForm struct {
	head, tail string
	plain      bool // there is no id; all is in head
}

// lwwCell is lwwEntry with less room, and its place in two chains: numbers of entries, of which 0 is none.
type lwwCell struct {
	at, change   uint64
	value        string
	writer       uint32 // its index, and whether the key was deleted (goneBit) and the entry has a first stamp (firstBit)
	older, newer uint32 // what came before and after it of the same writer
	sibling      uint32 // the next of the same id
}

const (
	goneBit  = 1 << 31
	firstBit = 1 << 30
)

func (c *lwwCell) gone() bool    { return c.writer&goneBit != 0 }
func (c *lwwCell) index() uint32 { return c.writer &^ (goneBit | firstBit) }

// sharedValues is how many values are looked at for one that is the same. Rooms have most of
// their settings in common with others, and these come one after the other.
const sharedValues = 256

// maxShared is the size of the largest value that is shared: what is looked at is kept for
// as long, and pages have few that are alike.
const maxShared = 1 << 10

var lwwSeed = maphash.MakeSeed() // nothing depends on the order of a table

// Hash is that of packed.Key. Keys are chosen by all who write, so the hash is keyed.
func (k lwwKey) Hash() uint64 { return maphash.Comparable(lwwSeed, k) }

// split takes a key of the form head/id/tail apart, the id in hexadecimal.
func split(key string) (f keyForm, id [idBytes]byte) {
	const digits = 2 * idBytes
	i := strings.IndexByte(key, '/') + 1
	if end := i + digits; i > 0 && (len(key) == end || len(key) > end && key[end] == '/') {
		written := key[i:end]
		if _, err := hex.Decode(id[:], []byte(written)); err == nil && hex.EncodeToString(id[:]) == written {
			return keyForm{head: key[:i], tail: key[end:]}, id
		}
	}
	return keyForm{head: key, plain: true}, [idBytes]byte{}
}

// key is split the other way round.
func (t *lwwTable) key(k lwwKey) string {
	f := &t.forms[k.form]
	if f.plain {
		return f.head
	}
	var digits [2 * idBytes]byte
	hex.Encode(digits[:], k.id[:])
	return f.head + string(digits[:]) + f.tail
}

func (t *lwwTable) len() int { return t.entries.Len() }

// get returns what is held of a key; zero if nothing is.
func (t *lwwTable) get(key string) (e lwwEntry, known bool) {
	f, id := split(key)
	form, ok := t.formOf[f]
	if !ok {
		return e, false
	}
	k := lwwKey{id, form}
	c := t.entries.Find(k)
	if c == nil {
		return e, false
	}
	return t.entry(k, c), true
}

func (t *lwwTable) entry(k lwwKey, c *lwwCell) lwwEntry {
	e := lwwEntry{stamp: unpack(c.at, t.writers[c.index()].node), value: c.value, gone: c.gone(), change: c.change}
	if c.writer&firstBit != 0 {
		e.first = t.firsts[k]
	}
	return e
}

// put has an entry be what is held of a key.
func (t *lwwTable) put(key string, e lwwEntry) {
	f, id := split(key)
	form, ok := t.formOf[f]
	if !ok {
		if t.formOf == nil {
			t.formOf = map[keyForm]uint32{}
		}
		f.head, f.tail = strings.Clone(f.head), strings.Clone(f.tail)
		if last := len(t.unused) - 1; last >= 0 {
			form, t.unused = t.unused[last], t.unused[:last]
		} else {
			form, t.forms, t.uses = uint32(len(t.forms)), append(t.forms, f), append(t.uses, 0)
		}
		t.forms[form], t.formOf[f] = f, form
	}
	k, before := lwwKey{id, form}, t.entries.Len()
	n := t.entries.AddNumber(k)
	_, c := t.entries.At(n)
	if t.entries.Len() == before {
		t.unchain(k, c)
	} else {
		t.uses[form]++
		if !f.plain {
			first := t.ids.Add(id)
			c.sibling, *first = *first, n
		}
	}
	*c = lwwCell{at: e.stamp.packed(), change: e.change, value: t.share(e.value), writer: t.place(e.stamp.Node), sibling: c.sibling}
	if e.gone {
		c.writer |= goneBit
	}
	if !e.first.IsZero() {
		c.writer |= firstBit
		if t.firsts == nil {
			t.firsts = map[lwwKey]Stamp{}
		}
		t.firsts[k] = e.first
	}
	t.chain(n, c)
}

// place returns the index of a writer.
func (t *lwwTable) place(node NodeID) uint32 {
	if i, ok := t.writer[node]; ok {
		return i
	}
	if t.writer == nil {
		t.writer = map[NodeID]uint32{}
	}
	i := uint32(len(t.writers))
	if last := len(t.idle) - 1; last >= 0 {
		i, t.idle = t.idle[last], t.idle[:last]
	} else {
		t.writers = append(t.writers, lwwWriter{})
	}
	t.writers[i], t.writer[node] = lwwWriter{node: node}, i
	return i
}

// writes reports whether there is an entry of a writer.
func (t *lwwTable) writes(node NodeID) bool {
	_, ok := t.writer[node]
	return ok
}

// remove forgets what is held of a key.
func (t *lwwTable) remove(key string) {
	f, id := split(key)
	form, ok := t.formOf[f]
	if !ok {
		return
	}
	k := lwwKey{id, form}
	n := t.entries.Number(k)
	if n == 0 {
		return
	}
	_, c := t.entries.At(n)
	t.unchain(k, c)
	if !f.plain {
		if *t.sibling(id, n) = c.sibling; *t.ids.Find(id) == 0 {
			t.ids.Remove(t.ids.Number(id))
		}
	}
	if was := t.entries.Remove(n); was != n {
		t.renumber(was, n)
	}
	if t.uses[form]--; t.uses[form] == 0 {
		packed.Delete(&t.formOf, f)
		t.forms[form], t.unused = keyForm{}, append(t.unused, form)
	}
}

// sibling returns what points to an entry among those of its id.
func (t *lwwTable) sibling(id lwwID, n uint32) *uint32 {
	at := t.ids.Find(id)
	for *at != n {
		_, before := t.entries.At(*at)
		at = &before.sibling
	}
	return at
}

// renumber follows an entry that has another number now.
func (t *lwwTable) renumber(was, n uint32) {
	k, c := t.entries.At(n)
	if !t.forms[k.form].plain {
		*t.sibling(k.id, was) = n
	}
	if c.newer == 0 {
		t.writers[c.index()].newest = n
	} else {
		_, after := t.entries.At(c.newer)
		after.older = n
	}
	if c.older != 0 {
		_, before := t.entries.At(c.older)
		before.newer = n
	}
}

// chain has an entry be the last that came of its writer.
func (t *lwwTable) chain(n uint32, c *lwwCell) {
	w := &t.writers[c.index()]
	if c.at < w.top {
		w.disorder = w.top
	}
	w.top = max(w.top, c.at)
	if c.older = w.newest; c.older != 0 {
		_, before := t.entries.At(c.older)
		before.newer = n
	}
	w.newest = n
}

// unchain takes an entry out of those of its writer.
func (t *lwwTable) unchain(k lwwKey, c *lwwCell) {
	if c.writer&firstBit != 0 {
		packed.Delete(&t.firsts, k)
	}
	if c.newer == 0 {
		i := c.index()
		if t.writers[i].newest = c.older; c.older == 0 {
			packed.Delete(&t.writer, t.writers[i].node)
			t.writers[i], t.idle = lwwWriter{}, append(t.idle, i)
		}
	} else {
		_, after := t.entries.At(c.newer)
		after.older = c.older
	}
	if c.older != 0 {
		_, before := t.entries.At(c.older)
		before.newer = c.newer
	}
}

// newer yields what came of a writer and has a packed stamp later than after, in no order.
func (t *lwwTable) newer(writer NodeID, after uint64) iter.Seq2[lwwKey, *lwwCell] {
	return func(yield func(lwwKey, *lwwCell) bool) {
		i, ok := t.writer[writer]
		if !ok {
			return
		}
		w := &t.writers[i]
		for n := w.newest; n != 0; {
			k, c := t.entries.At(n)
			n = c.older
			if c.at > after {
				if !yield(k, c) {
					return
				}
			} else if after >= w.disorder {
				return
			}
		}
	}
}

// since yields what has come after a change, writer by writer, and of each the newest first.
func (t *lwwTable) since(change uint64) iter.Seq2[lwwKey, *lwwCell] {
	return func(yield func(lwwKey, *lwwCell) bool) {
		for i := range t.writers {
			for n := t.writers[i].newest; n != 0; {
				k, c := t.entries.At(n)
				if n = c.older; c.change <= change {
					break
				}
				if !yield(k, c) {
					return
				}
			}
		}
	}
}

// with yields the keys that have an id in them.
func (t *lwwTable) with(id lwwID) iter.Seq2[lwwKey, *lwwCell] {
	return func(yield func(lwwKey, *lwwCell) bool) {
		first := t.ids.Find(id)
		if first == nil {
			return
		}
		for n := *first; n != 0; {
			k, c := t.entries.At(n)
			n = c.sibling
			if !yield(k, c) {
				return
			}
		}
	}
}

// share returns a value in memory that others have as well, if they can be found.
func (t *lwwTable) share(value string) string {
	if len(value) == 0 || len(value) > maxShared {
		return value
	}
	if t.shared == nil {
		t.shared = new([sharedValues]string)
	}
	at := &t.shared[maphash.String(lwwSeed, value)%sharedValues]
	if *at != value {
		*at = value
	}
	return *at
}

// all yields everything, in no order. Nothing may be put meanwhile.
func (t *lwwTable) all() iter.Seq2[string, lwwEntry] {
	return func(yield func(string, lwwEntry) bool) {
		for k, c := range t.entries.All() {
			if !yield(t.key(k), t.entry(k, c)) {
				return
			}
		}
	}
}
