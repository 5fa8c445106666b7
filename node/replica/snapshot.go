package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// The first byte of what is kept in the data directory.
const (
	snapshotVersion = 2 // all counts
	newsVersion     = 3 // what changed since
)

var errSnapshot = errors.New("malformed snapshot")

// AppendSnapshot appends all counts, to be kept in the data directory. The last-writer map is
// not in it: its parts are stored as they change, and it is large.
func (r *Replica) AppendSnapshot(dst []byte) ([]byte, error) {
	return appendKept(dst, snapshotVersion, &r.rows, &r.sums)
}

func appendKept(dst []byte, version byte, parts ...interface{ AppendBinary([]byte) ([]byte, error) }) ([]byte, error) {
	dst = append(dst, version)
	for _, p := range parts {
		var err error
		if dst, err = appendPartBy(dst, p.AppendBinary); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	return dst, nil
}

// Kept is how far the counts in the data directory are.
type Kept struct {
	rows  crdt.RowDigest
	sums  crdt.SummaryDigest
	drops uint64
}

// News is what changed since counts were last kept.
type News struct {
	rows crdt.RowDelta
	sums crdt.SummaryDelta
}

// Kept returns how far the counts are.
func (r *Replica) Kept() Kept { return Kept{r.rows.Digest(), r.sums.Digest(), r.drops} }

// DroppedSince reports whether counts were kept of rooms that are gone by now.
func (r *Replica) DroppedSince(k Kept) bool { return r.drops != k.drops }

// NewsSince returns what changed since. What is known with a hole before it is not among it.
func (r *Replica) NewsSince(k Kept) News {
	return News{r.rows.Delta(k.rows, 0), r.sums.Delta(k.sums, 0)}
}

// Empty reports whether nothing changed.
func (n News) Empty() bool { return n.rows.Empty() && n.sums.Empty() }

// Counts reports whether a count changed, and not only the time of the last sign of life.
func (n News) Counts() bool {
	return slices.ContainsFunc(n.rows.Pieces, func(p crdt.RowPiece) bool { return len(p.Rooms) > 0 }) ||
		slices.ContainsFunc(n.sums.Pieces, func(p crdt.SummaryPiece) bool { return len(p.Rooms) > 0 })
}

// Append appends the news, to be kept behind what they follow.
func (n News) Append(dst []byte) ([]byte, error) {
	return appendKept(dst, newsVersion, n.rows, n.sums)
}

// appendPartBy is appendPart of what is appended by a function. A snapshot may be of many megabytes, and
// is not to be there twice while it is made.
func appendPartBy(dst []byte, by func([]byte) ([]byte, error)) ([]byte, error) {
	const room = binary.MaxVarintLen64 // for the length, which is not known yet
	start := len(dst)
	dst, err := by(append(dst, make([]byte, room)...))
	if err != nil {
		return nil, err
	}
	return appendPart(dst[:start], dst[start+room:]), nil
}

// Restore adds what was kept to the state: a snapshot, and behind it the news since, oldest first. A
// replica is best restored before it
// hears from anybody. Rows that were ours under an earlier boot number stay what
// they are: they fade, and PreviousActive reads them. It is an error if a
// record speaks of our id with this boot number or a later one, since then
// the number was not raised. Of a record with an error nothing is taken, and nothing of those behind it.
func (r *Replica) Restore(kept [][]byte, now time.Time) (err error) {
	for _, record := range kept {
		if err = r.restore(record, now); err != nil {
			err = fmt.Errorf("restore: %w", err)
			break
		}
	}
	// Not before: what a record says of an owner, a later one shows to have been true for longer.
	r.rows.Expire(now, r.cfg.Retention)
	r.sums.Expire(now, r.cfg.Retention)
	r.open(now)
	return err
}

func (r *Replica) restore(record []byte, now time.Time) error {
	if len(record) == 0 || record[0] != snapshotVersion && record[0] != newsVersion {
		return fmt.Errorf("no snapshot of version %d: %w", snapshotVersion, errSnapshot)
	}
	var bodies [2][]byte
	rest := record[1:]
	for i := range bodies {
		var err error
		if bodies[i], rest, err = cutPart(rest); err != nil {
			return err
		}
	}
	if record[0] == newsVersion {
		return r.restoreNews(bodies[0], bodies[1], now)
	}
	return r.restoreAll(bodies[0], bodies[1])
}

func (r *Replica) restoreAll(inRows, inSums []byte) error {
	rows, errRows := crdt.DecodeRows(inRows, len(inRows))
	sums, errSums := crdt.DecodeSummaries(inSums, len(inSums))
	if err := errors.Join(errRows, errSums); err != nil {
		return err
	}
	for owner := range rows.Owners() {
		if err := r.checkOwner(owner); err != nil {
			return err
		}
	}
	r.rows.Merge(rows)
	r.sums.Merge(sums)
	return nil
}

// restoreNews leaves out what is of a time to come: it was written under another clock.
func (r *Replica) restoreNews(inRows, inSums []byte, now time.Time) error {
	rows, errRows := crdt.DecodeRowDelta(inRows)
	sums, errSums := crdt.DecodeSummaryDelta(inSums)
	if err := errors.Join(errRows, errSums); err != nil {
		return err
	}
	for _, p := range rows.Pieces {
		if err := r.checkOwner(p.Owner); err != nil {
			return err
		}
	}
	for _, p := range rows.Pieces {
		_, _ = r.rows.Apply(p, now)
	}
	for _, p := range sums.Pieces {
		_, _ = r.sums.Apply(p, now)
	}
	return nil
}

func (r *Replica) checkOwner(owner crdt.Incarnation) error {
	if owner.Node == r.cfg.Self.Node && owner.Boot >= r.cfg.Self.Boot {
		return fmt.Errorf("snapshot is of %s, this is %s: %w", owner, r.cfg.Self, errSnapshot)
	}
	return nil
}
