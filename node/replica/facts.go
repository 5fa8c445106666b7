package replica

import (
	"fmt"
	"iter"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// The last-writer map: what everybody may write and all shall know.

// Set writes a copy of value into the last-writer map, from where it spreads to
// all nodes; nil deletes.
func (r *Replica) Set(key string, value []byte, now time.Time) error {
	return r.lww.Set(key, value, r.stamp(now))
}

// SetAll is Set for several keys, in order, with another weight than a fact has; it sets all of them or,
// after an error, none.
func (r *Replica) SetAll(writes []crdt.Write, as crdt.Weight, now time.Time) error {
	return r.lww.SetAll(writes, as, func() crdt.Stamp { return r.stamp(now) })
}

// CompareAndSet is Set if the newest write of key that this node has heard of
// has the stamp was; otherwise it returns an error that wraps crdt.ErrConflict.
func (r *Replica) CompareAndSet(key string, value []byte, was crdt.Stamp, now time.Time) error {
	return r.lww.CompareAndSet(key, value, was, r.stamp(now))
}

// Get returns a copy of a value of the last-writer map, the stamp of its newest
// write, and whether there is a value.
func (r *Replica) Get(key string) (value []byte, at crdt.Stamp, ok bool) { return r.lww.Get(key) }

// Written returns a number that stands for all that this node has written into the
// last-writer map so far.
func (r *Replica) Written() uint64 { return r.lww.NewestOf(r.cfg.Self.Node) }

// Knows reports whether all is known here that another node had written into the last-writer map
// when it had a number from Written.
func (r *Replica) Knows(writer crdt.NodeID, written uint64) bool {
	return r.lww.NewestOf(writer) >= written
}

// Take takes one write of another node that a third one has passed on, out of turn: what else
// that node has written may be missing. It returns false if it is no news, or not to be believed.
func (r *Replica) Take(key string, value []byte, at crdt.Stamp, now time.Time) bool {
	_, is, _ := r.lww.Get(key)
	forgotten := is.IsZero() && r.lww.Holds(at) // what came after it
	if at.Node == r.cfg.Self.Node || at.Compare(is) <= 0 || forgotten {
		return false
	}
	_, err := r.applied(false, r.lww.Take(key, value, at, &r.hlc, r.rightTime(now)))
	return err == nil
}

// Tellable reports whether a write is on disk as far as Keep has said, if it is this node's own.
func (r *Replica) Tellable(at crdt.Stamp) bool { return r.lww.Tellable(at) }

// HoldsUpTo reports whether all that a node has written into the last-writer map up to a
// stamp of its is known here.
func (r *Replica) HoldsUpTo(at crdt.Stamp) bool { return r.lww.Holds(at) }

// MapDigest returns up to which stamp of each writer all of the last-writer map is known
// here, which of this node's own writes may be more than others are told.
func (r *Replica) MapDigest() crdt.LWWDigest {
	d := r.lww.Digest()
	if own := r.Written(); own > 0 {
		d[r.cfg.Self.Node] = own
	}
	return d
}

// Keys yields the keys of the last-writer map that have a value, in no order.
func (r *Replica) Keys() iter.Seq[string] { return r.lww.Keys() }

// Stamps yields the keys that Keys does, with the stamps of their newest writes.
func (r *Replica) Stamps() iter.Seq2[string, crdt.Stamp] { return r.lww.Stamps() }

// MapLen returns the number of keys of the last-writer map, deleted ones included.
func (r *Replica) MapLen() int { return r.lww.Len() }

// KeysWith yields the keys with a value that have an id between their first slash and the next.
func (r *Replica) KeysWith(id [16]byte) iter.Seq[string] { return r.lww.KeysWith(id) }

// MapChanges returns a number that grows whenever the last-writer map changes.
func (r *Replica) MapChanges() uint64 { return r.lww.Changes() }

// MapChanged yields the keys, deleted ones included, that were written since MapChanges returned a
// number. Nothing may be written meanwhile.
func (r *Replica) MapChanged(since uint64) iter.Seq[string] { return r.lww.Changed(since) }

// MapParts returns what has changed of the last-writer map, as it is stored, since it
// returned a number, and the number of now. Of 0, that is everything.
func (r *Replica) MapParts(since uint64) (parts []crdt.Part, now uint64) {
	if now = r.lww.Changes(); now == since {
		return nil, now
	}
	return r.lww.Parts(since), now
}

// RestoreMap adds parts that were stored at an earlier start. After an error nothing
// has changed.
func (r *Replica) RestoreMap(parts []crdt.Part) error {
	m := new(crdt.LWW)
	for _, p := range parts {
		if err := m.SetPart(p); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	r.mergeMap(m)
	return nil
}

// mergeMap takes over writes of an earlier start. Their stamps were believed
// once. Were the clock behind them now, our next writes would lose against our
// own last ones.
func (r *Replica) mergeMap(m *crdt.LWW) {
	if m.Newest().IsZero() {
		return // nothing in it
	}
	r.lww.Merge(m)
	r.wrote, r.start.slept = r.Written() > 0, r.lww.Heard(r.cfg.Self.Node)
	newest := r.lww.Newest()
	r.hlc.Observe(newest, time.UnixMilli(newest.Wall))
}
