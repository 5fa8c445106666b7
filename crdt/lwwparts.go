package crdt

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Part is a piece of an LWW as it is stored: the newest write of one key, or up to
// which stamp all writes of one node are held. Parts replace those of the same name.
type Part struct {
	Name  string
	Value []byte
}

const (
	partWrite  = "w/" // + key: writer and write; behind one that was taken out of turn, the same of what others are told in its place
	partKnown  = "k/" // + writer, in hexadecimal: packed stamp
	partForgot = "f/" // the same: up to where its deletions may be forgotten
	partStarts = "s"  // see NoteStart
)

// Changes returns a number that grows with every Set, Merge and Apply that brings
// writes. That more is known of a node, and nothing else, is not worth storing by
// itself: it goes with the next change.
func (m *LWW) Changes() uint64 { return m.changes }

// MaxParts is how many parts there are of a map at most.
const MaxParts = maxLWWEntries + 2*maxWriters + 1

// Parts returns what has changed since Changes returned a number; of 0, everything.
// Whoever stores it has to do so as a whole: what is known of a node is true only with its writes, and with what has won over
// them.
func (m *LWW) Parts(since uint64) []Part {
	var out []Part
	for k, c := range m.entries.since(since) {
		key, e := m.entries.key(k), m.entries.entry(k, c)
		w := newWriter(nil)
		w.entry(key, e)
		if all := m.beneath[key]; m.early(e) && m.told(all) >= 0 {
			w.entry(key, all[m.told(all)])
		}
		out = append(out, Part{partWrite + key, w.must()})
	}
	for writer, change := range m.learned {
		if change > since {
			out = append(out, m.partKnown(writer))
		}
	}
	for writer, h := range m.forgot {
		if h.change > since {
			out = append(out, h.part(writer))
		}
	}
	if m.started > since {
		out = append(out, m.partStarts())
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (w *writer) entry(key string, e lwwEntry) {
	w.bytes(e.stamp.Node[:])
	e.write(key).encode(w)
}

func (r *reader) entry() (key string, e lwwEntry) {
	var writer NodeID
	r.id((*[16]byte)(&writer))
	wr := decodeWrite(r)
	return wr.Key, entryOf(unpack(wr.At, writer), wr)
}

func (m *LWW) partKnown(writer NodeID) Part {
	w := newWriter(nil)
	w.uint(m.known[writer])
	return Part{PartOfWriter(writer), w.must()}
}

// PartOfWriter returns the name of the part that says what is known of a node's writes.
func PartOfWriter(writer NodeID) string { return partKnown + hex.EncodeToString(writer[:]) }

// must returns what was written where nothing can fail.
func (w *writer) must() []byte {
	b, err := w.result()
	if err != nil {
		panic("crdt: " + err.Error())
	}
	return b
}

// SetPart adds a part that Parts returned at an earlier start, to a map that is then
// merged into another. A part that Parts does not return is an error.
func (m *LWW) SetPart(p Part) error {
	r := newReaderOf(p.Value, len(p.Value))
	if p.Name == partStarts {
		return m.setStarts(p, r)
	}
	var writer NodeID
	id, ok := strings.CutPrefix(p.Name, partKnown)
	forgot, is := strings.CutPrefix(p.Name, partForgot)
	if is {
		id = forgot
	}
	if ok || is {
		n := r.uint(math.MaxInt64)
		if len(id) != hex.EncodedLen(len(writer)) {
			return fmt.Errorf("part %q: %w", p.Name, ErrHostile)
		}
		if _, err := hex.Decode(writer[:], []byte(id)); err != nil {
			return fmt.Errorf("part %q: %w", p.Name, err)
		}
		if err := r.end(); err != nil {
			return fmt.Errorf("part %q: %w", p.Name, err)
		}
		if is {
			m.forgetUpTo(writer, n)
		} else {
			m.learn(writer, n)
			m.hide(unpack(n, writer)) // what of its writes was replaced by others is not stored
			m.uncover()
		}
		return nil
	}
	return m.setWrite(p, r)
}

// setWrite is SetPart of a write.
func (m *LWW) setWrite(p Part, r *reader) error {
	key, e := r.entry()
	same, told, early := key, e, r.more()
	if early {
		same, told = r.entry()
	}
	if err := r.end(); err != nil {
		return fmt.Errorf("part %q: %w", p.Name, err)
	}
	if p.Name != partWrite+key || same != key {
		return fmt.Errorf("part %q of keys %q and %q: %w", p.Name, key, same, ErrHostile)
	}
	if m.put(key, e); early && m.withholds(e) {
		if m.beneath == nil {
			m.beneath = make(map[string][]lwwEntry)
		}
		m.beneath[key] = []lwwEntry{told} // what is known of its teller may come later
	}
	return nil
}
