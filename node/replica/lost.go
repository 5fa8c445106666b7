package replica

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Lost appends the starts of nodes of our site that have a row and do not run, as far as
// the list of members tells: their rows count until they fade, some of it sooner from now on
// than if they ran. They are in order.
func (r *Replica) Lost(dst []crdt.Incarnation) []crdt.Incarnation {
	n := len(dst)
	for owner := range r.rows.Owners() {
		h, _ := r.rows.Header(owner)
		lost := h.Site == r.cfg.Site && !r.runs(owner)
		if r.rows.SetDead(owner, lost); lost {
			dst = append(dst, owner)
		}
	}
	slices.SortFunc(dst[n:], crdt.Incarnation.Compare)
	return dst
}

// runs reports whether a start of a node is not known to be over. A row may be heard of
// before the list of members tells that its node has started again.
func (r *Replica) runs(owner crdt.Incarnation) bool {
	if owner.Node == r.cfg.Self.Node {
		return owner.Boot >= r.cfg.Self.Boot
	}
	p, ok := r.peers.Find(owner.Node)
	return ok && owner.Boot >= p.Boot
}

// LastChange returns when the row of a start changed last, as far as is known; zero: there is
// no such row.
func (r *Replica) LastChange(owner crdt.Incarnation) time.Time {
	h, _ := r.rows.Header(owner)
	return h.Changed
}

// WaitingIn returns how many visitors the row of a start counts as waiting in one granule of
// a room.
func (r *Replica) WaitingIn(owner crdt.Incarnation, room crdt.RoomID, granule int64) int64 {
	return r.rows.Value(owner, crdt.Key{Room: room, Kind: crdt.Waiting, Tick: granule})
}

// WaitingUntil returns until when the row of a start counts who waits in a room, if it does
// not change again; zero: there is no such row.
func (r *Replica) WaitingUntil(owner crdt.Incarnation, room crdt.RoomID) time.Time {
	h, ok := r.rows.Header(owner)
	if !ok {
		return time.Time{}
	}
	return h.Changed.Add(r.cfg.Retention.WaitingFor(room))
}

// LastStart returns the newest start of a node that has a row.
func (r *Replica) LastStart(node crdt.NodeID) (last crdt.Incarnation, ok bool) {
	for owner := range r.rows.Owners() {
		if owner.Node == node && owner.Boot >= last.Boot {
			last, ok = owner, true
		}
	}
	return last, ok
}

// LastHeld returns how many rights a start had of a room when its row changed last.
func (r *Replica) LastHeld(owner crdt.Incarnation, room crdt.RoomID) (places, rate int64) {
	return r.rows.Value(owner, crdt.Key{Room: room, Kind: crdt.Held}), r.rows.Value(owner, crdt.Key{Room: room, Kind: crdt.HeldRate})
}

// ActiveOf returns how many sessions the row of a start counts in a room at now.
func (r *Replica) ActiveOf(owner crdt.Incarnation, room crdt.RoomID, now time.Time) int64 {
	return r.rows.Count(owner, room, now, r.cfg.Retention).Active
}
