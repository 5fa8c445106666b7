package crdt

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// What one replica tells another of an LWW.

// Delta returns what m knows and a replica with the digest have does not, in an
// encoding of at most limit bytes; 0 means no limit. What does not fit is left
// out newest first within a writer. A limit below the size of one value may
// leave out everything.
func (m *LWW) Delta(have LWWDigest, limit int) LWWDelta { return m.DeltaAfter(have, nil, limit) }

// DeltaAfter is Delta for a replica that knows have, and has got more from m since: a chain of deltas, each made
// for what the ones before have brought, up to got. It keeps them until the last, which is Whole.
func (m *LWW) DeltaAfter(have, got LWWDigest, limit int) LWWDelta {
	b := newBudget(limit)
	d := LWWDelta{Whole: true}
	for _, writer := range slices.SortedFunc(maps.Keys(m.known), NodeID.Compare) {
		upTo := m.KnownOf(writer)
		if upTo <= max(have[writer], got[writer]) {
			continue
		}
		p, ok := m.piece(writer, have[writer], got[writer], b)
		if ok {
			d.Pieces = append(d.Pieces, p)
		}
		d.Whole = d.Whole && ok && p.To == upTo
	}
	return d
}

// DeltaOf is Delta of the writes of one node, of which a replica has all up to from.
func (m *LWW) DeltaOf(writer NodeID, from uint64, limit int) (d LWWDelta) {
	if p, ok := m.piece(writer, from, 0, newBudget(limit)); ok {
		d.Pieces = append(d.Pieces, p)
	}
	return d
}

// piece returns what there is of a writer for who knows it up to a stamp, and has got more up to another; ok is false
// if that is nothing.
func (m *LWW) piece(writer NodeID, known, got uint64, b *budget) (p LWWPiece, ok bool) {
	from := max(known, got)
	p = LWWPiece{Writer: writer, From: from, To: from}
	if !b.take(lwwHeadSize) {
		return p, false
	}
	if h := m.forgot[writer].upTo; from < h {
		p.Forgot = h
	}
	upTo := m.KnownOf(writer)
	for k, c := range m.entries.newer(writer, from) {
		if e := m.entries.entry(k, c); c.at <= upTo {
			p.Writes = append(p.Writes, e.write(m.entries.key(k)))
		}
	}
	for key, all := range m.beneath {
		i := m.told(all)
		if i < 0 {
			continue
		}
		if e := all[i]; e.stamp.Node == writer && e.stamp.packed() > from && e.stamp.packed() <= upTo {
			p.Writes = append(p.Writes, e.write(key))
		}
	}
	slices.SortFunc(p.Writes, compareWrites)
	for i, w := range p.Writes {
		if !b.take(w.size()) {
			p.Writes = p.Writes[:i]
			p.Hides = p.To // also behind what comes with the next piece
			return p, p.To > from
		}
		p.To = w.At
	}
	p.To = max(from, upTo)
	if h := m.hides[writer]; h > known {
		p.Hides = min(h, p.To)
	}
	return p, p.To > from
}

func compareWrites(a, b Write) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Key, b.Key)) }

func (p LWWPiece) check() error {
	if p.From > p.To || p.To > math.MaxInt64 || p.Forgot > math.MaxInt64 || p.Hides > p.To || p.Writer == nobody && len(p.Writes) > 0 {
		return fmt.Errorf("writer %s: writes %d to %d: %w", p.Writer, p.From, p.To, ErrHostile)
	}
	for _, w := range p.Writes {
		if w.At <= p.From || w.At > p.To || w.First.packed() > w.At || len(w.Key) > maxKey || len(w.Value) > MaxValue {
			return fmt.Errorf("writer %s: write %d of %d bytes: %w", p.Writer, w.At, len(w.Value), ErrHostile)
		}
	}
	return nil
}

// Join returns one delta that has the effect of both. It shares nothing with
// them.
func (d LWWDelta) Join(o LWWDelta) LWWDelta {
	var all []LWWPiece
	for _, p := range slices.Concat(d.Pieces, o.Pieces) {
		all = append(all, p.clone())
	}
	return LWWDelta{Pieces: coalesce(all,
		func(a, b LWWPiece) int { return cmp.Or(a.Writer.Compare(b.Writer), cmp.Compare(a.From, b.From)) },
		func(a, b LWWPiece) bool { return a.Writer == b.Writer && b.From <= a.To },
		(*LWWPiece).absorb)}
}

func (p LWWPiece) clone() LWWPiece {
	p.Writes = slices.Clone(p.Writes)
	for i := range p.Writes {
		p.Writes[i].Value = bytes.Clone(p.Writes[i].Value)
	}
	return p
}

func (p *LWWPiece) absorb(o LWWPiece) {
	newest := make(map[string]Write)
	for _, w := range slices.Concat(p.Writes, o.Writes) {
		if w.At > newest[w.Key].At {
			newest[w.Key] = w
		}
	}
	p.Writes = slices.SortedFunc(maps.Values(newest), compareWrites)
	p.To, p.Forgot, p.Hides = max(p.To, o.To), max(p.Forgot, o.Forgot), max(p.Hides, o.Hides)
}
