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
	partWrite  = "w/" // + key: writer and write
	partKnown  = "k/" // + writer, in hexadecimal: packed stamp
	partForgot = "f/" // the same: up to where its deletions may be forgotten
)

// Changes returns a number that grows with every Set, Merge and Apply that brings
// writes. That more is known of a node, and nothing else, is not worth storing by
// itself: it goes with the next change.
func (m *LWW) Changes() uint64 { return m.changes }

// MaxParts is how many parts there are of a map at most.
const MaxParts = maxLWWEntries + 2*maxWriters

// Parts returns what has changed since Changes returned a number; of 0, everything.
// Whoever stores it has to do so as a whole, or in this order: what is known of a node
// is true only with its writes.
func (m *LWW) Parts(since uint64) []Part {
	var out []Part
	for k, c := range m.entries.since(since) {
		key, e := m.entries.key(k), m.entries.entry(k, c)
		w := newWriter(nil)
		w.bytes(e.stamp.Node[:])
		e.write(key).encode(w)
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
	// By name, but for what is known: that comes last, though its names come first.
	slices.SortFunc(out, func(a, b Part) int { return cmp.Or(-cmp.Compare(a.Name[0], b.Name[0]), cmp.Compare(a.Name, b.Name)) })
	return out
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
		}
		return nil
	}
	r.id((*[16]byte)(&writer))
	wr := decodeWrite(r)
	if err := r.end(); err != nil {
		return fmt.Errorf("part %q: %w", p.Name, err)
	}
	if p.Name != partWrite+wr.Key {
		return fmt.Errorf("part %q of key %q: %w", p.Name, wr.Key, ErrHostile)
	}
	m.put(wr.Key, entryOf(unpack(wr.At, writer), wr))
	return nil
}
