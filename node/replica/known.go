package replica

import "github.com/ropeline/ropeline/crdt"

// Known returns the sequence number up to which the row of a node of our site,
// or our own, is held here: every change with that number or a lower one is
// counted. It is 0 for a row that nobody has told us of.
func (r *Replica) Known(owner crdt.Incarnation) uint64 { return r.rows.Known(owner) }
