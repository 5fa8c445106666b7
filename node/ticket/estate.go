package ticket

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What operators are told of dead nodes. Nothing is decided by it.

// Rights returns what the nodes in Dead own, as far as the estate tells.
func (in Estate) Rights() Amount { return in.sum(true) }

// DealtWith returns what this node has given to another one less what it has received from it,
// as it would say in its word on it.
func (r *Rights) DealtWith(id crdt.NodeID) Amount {
	disk := &r.book.disk
	x := disk.accounts[id]
	rcv := x.rcv
	for _, m := range disk.inherited {
		rcv = rcv.Add(m[id].Rcv.Sub(m[id].Base))
	}
	return x.gave.Sub(rcv)
}

// LockSpan returns for how long the rights of a node are kept aside once they are recovered here,
// if its sessions last that long at most.
func (r *Rights) LockSpan(session time.Duration, now time.Time) time.Duration {
	return r.blockEnd(now).Sub(now) + max(0, session-r.longest())
}

// Locked is what this node has recovered of a dead one and cannot use yet. Where several were
// recovered together, the first has the rights of all.
type Locked struct {
	Dead   crdt.NodeID
	Rights Amount
	Until  time.Time
}

// Locked returns what is locked at now, by dead node.
func (r *Rights) Locked(now time.Time) (all []Locked) {
	for _, id := range slices.SortedFunc(maps.Keys(r.book.disk.recovered), crdt.NodeID.Compare) {
		var until int64
		for _, b := range r.leases.blocks {
			if slices.Contains(b.anchors, id) {
				until = max(until, b.end)
			}
		}
		if until > now.UnixMilli() {
			all = append(all, Locked{id, r.book.disk.recovered[id].rights, time.UnixMilli(until)})
		}
	}
	return all
}
