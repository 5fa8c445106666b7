package crdt

import (
	"fmt"
	"time"
)

// What one replica of an LWW takes in from another.

// Apply merges one piece and moves clock past it. A stamp too far ahead to be
// believed refuses the whole piece, with the errors of Rows.Apply. The piece is copied.
//
// A piece is left aside, which Apply reports, if it is behind a hole, or hides more than is known here: what has won over a
// write that it has not may not have come. Were it taken, others would be told that all of its writer is known here,
// and nobody would tell it once more. If those who have the rest lose their disks, this replica would go by that
// piece alone, for good, and a write would be gone that all take for known.
func (m *LWW) Apply(p LWWPiece, clock *Clock, now time.Time) (aside bool, err error) {
	known := m.known[p.Writer]
	if err := p.check(); err != nil || p.From > known || p.Hides > known {
		return err == nil, err
	}
	return m.merge([]LWWPiece{p}, clock, now)
}

// ApplyWhole is Apply for all pieces of a delta that is Whole for what is known here, or of a chain of deltas of which
// the last is Whole: see DeltaAfter. What has won over a write that they hide is among them, or known. It merges all or
// nothing.
func (m *LWW) ApplyWhole(pieces []LWWPiece, clock *Clock, now time.Time) (aside bool, err error) {
	has := LWWDigest{}
	for _, p := range pieces {
		if err := p.check(); err != nil || p.From > max(has[p.Writer], m.known[p.Writer]) {
			return err == nil, err
		}
		has[p.Writer] = max(has[p.Writer], p.To)
	}
	return m.merge(pieces, clock, now)
}

func (m *LWW) merge(pieces []LWWPiece, clock *Clock, now time.Time) (aside bool, err error) {
	var writes []Write
	was, strangers := LWWDigest{}, 0
	for _, p := range pieces {
		known, ok := m.known[p.Writer]
		if was[p.Writer] = known; !ok {
			strangers++
		}
		writes = append(writes, p.Writes...)
	}
	if strangers > 0 && len(m.known)+strangers > maxWriters || !m.fits(writes) {
		return false, fmt.Errorf("%d writes of %d new writers: more than is kept: %w", len(writes), strangers, ErrHostile)
	}
	for _, p := range pieces {
		if !clock.Observe(unpack(p.To, p.Writer), now) {
			return false, fmt.Errorf("writer %s: stamp %d, which is to come: %w", p.Writer, p.To, ErrAhead)
		}
	}
	for _, p := range pieces {
		known, _ := advance(m.known[p.Writer], p.From, p.To)
		m.learn(p.Writer, known)
	}
	for _, p := range pieces {
		for _, w := range p.Writes {
			if w.At > was[p.Writer] { // else it is known, or what has won over it, also if that is forgotten
				m.put(w.Key, entryOf(unpack(w.At, p.Writer), w))
			}
		}
		m.forgetUpTo(p.Writer, p.Forgot)
		m.hide(unpack(p.Hides, p.Writer))
	}
	m.uncover()
	if len(writes) > 0 {
		m.changes++
	}
	return false, nil
}

// Take merges one write out of turn: earlier ones of the same node may be missing, and until
// these have come nobody is told of it by Delta, but of what it has replaced. Errors are those of Apply.
func (m *LWW) Take(key string, value []byte, at Stamp, clock *Clock, now time.Time) error {
	n := at.packed()
	p := LWWPiece{Writer: at.Node, From: max(1, n) - 1, To: n, Writes: []Write{{Key: key, At: n, Value: value}}}
	if err := p.check(); err != nil {
		return err
	}
	_, err := m.merge([]LWWPiece{p}, clock, now)
	return err
}

// hideBehind notes that a write is in no piece any more, since another one has won over it.
func (m *LWW) hideBehind(e, by lwwEntry) {
	if e.stamp.Node != by.stamp.Node {
		m.hide(e.stamp)
	}
}

func (m *LWW) hide(at Stamp) {
	if n := at.packed(); n > m.hides[at.Node] {
		if m.hides == nil {
			m.hides = map[NodeID]uint64{}
		}
		m.hides[at.Node] = n
	}
}
