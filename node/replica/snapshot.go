package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// snapshotVersion is the first byte of a snapshot.
const snapshotVersion = 2

var errSnapshot = errors.New("malformed snapshot")

// AppendSnapshot appends all that is counted, to be kept in the data directory. The last-writer map is not
// in it: its parts are stored as they change, and it is large.
func (r *Replica) AppendSnapshot(dst []byte) ([]byte, error) {
	dst = append(dst, snapshotVersion)
	for _, state := range []interface{ AppendBinary([]byte) ([]byte, error) }{&r.rows, &r.sums} {
		var err error
		if dst, err = appendPartBy(dst, state.AppendBinary); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	return dst, nil
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

// Restore adds a snapshot to the state; a replica is best restored before it
// hears from anybody. Rows that were ours under an earlier boot number stay what
// they are: they fade, and PreviousActive reads them. It is an error if the
// snapshot speaks of our id with this boot number or a later one, since then
// the number was not raised, and nothing is taken. An error also leaves the
// state as it was.
func (r *Replica) Restore(state []byte, now time.Time) error {
	if len(state) == 0 || state[0] != snapshotVersion {
		return fmt.Errorf("restore: no snapshot of version %d: %w", snapshotVersion, errSnapshot)
	}
	var bodies [2][]byte
	rest := state[1:]
	for i := range bodies {
		var err error
		if bodies[i], rest, err = cutPart(rest); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	rows, errRows := crdt.DecodeRows(bodies[0], len(state))
	sums, errSums := crdt.DecodeSummaries(bodies[1], len(state))
	if err := errors.Join(errRows, errSums); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for owner := range rows.Owners() {
		if owner.Node == r.cfg.Self.Node && owner.Boot >= r.cfg.Self.Boot {
			return fmt.Errorf("restore: snapshot is of %s, this is %s: %w", owner, r.cfg.Self, errSnapshot)
		}
	}
	r.rows.Merge(rows)
	r.sums.Merge(sums)
	r.rows.Expire(now, r.cfg.Retention)
	r.sums.Expire(now, r.cfg.Retention)
	r.open(now)
	return nil
}
