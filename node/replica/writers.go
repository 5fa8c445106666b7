package replica

import (
	"iter"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// The writers of the last-writer map: who tells of something, and of whom nothing is left to be told.

// maxStrangers is with how many writers no more are taken that are no members: the rest is for members, who cannot be
// made up by others.
const maxStrangers = crdt.MaxWriters / 4 * 3

// Writers returns how many there are, and how many there may be.
func (r *Replica) Writers() (n, most int) { return r.lww.Writers(), crdt.MaxWriters }

// Tellers yields the nodes that tell of an entry of the last-writer map, in no order.
func (r *Replica) Tellers() iter.Seq[crdt.NodeID] { return r.lww.Tellers() }

// ToldBy yields the keys of which a node tells, as crdt.LWW.ToldBy.
func (r *Replica) ToldBy(writer crdt.NodeID) iter.Seq[string] { return r.lww.ToldBy(writer) }

// TellerOf returns with which stamp others are told of a key, and by whom.
func (r *Replica) TellerOf(key string) (at crdt.Stamp, ok bool) { return r.lww.TellerOf(key) }

// Adopt has this node tell of keys in place of whoever does.
func (r *Replica) Adopt(keys []string, now time.Time) {
	r.lww.Adopt(keys, func() crdt.Stamp { return r.stamp(now) })
}

// IdleWriters yields the nodes of which nothing is left to be told, in no order.
func (r *Replica) IdleWriters() iter.Seq[crdt.NodeID] { return r.lww.Idle() }

// DropWriters forgets nodes of which nothing is left to be told, and returns what is to be stored of that.
func (r *Replica) DropWriters(writers []crdt.NodeID) []crdt.Part {
	parts := r.lww.Drop(writers)
	for _, w := range writers {
		packed.Delete(&r.spread.kept, w)
		for _, k := range r.spread.by {
			packed.Delete(&k.kept, w)
		}
		for _, l := range r.links {
			packed.Delete(&l.lww.acked, w)
			packed.Delete(&l.lww.sent, w)
			packed.Delete(&l.oweLWW, w)
			packed.Delete(&l.asides, w)
		}
	}
	return parts
}

// takePiece applies a piece of the last-writer map, and notes what its sender is to be told of that. It is left aside as
// crdt.LWW.Apply does.
func (r *Replica) takePiece(l *link, kind frameType, p crdt.LWWPiece, now time.Time) (aside bool, err error) {
	var told uint64
	known := r.lww.NewestOf(p.Writer) > 0 || p.Writer == crdt.NodeID{}
	switch stranger := !known && !r.exists(p.Writer, l); {
	case stranger && len(p.Writes) == 0:
		told = p.To // there is nothing to know; who tells of it will drop it as well
	case stranger && r.lww.Writers() >= maxStrangers:
		// Its sender is not to blame, nor to try again at once: others have to get through.
		told = p.To
		r.stats.Refused[refusedStranger]++
	default:
		r.noteForgotten(p, now)
		aside, err = r.applied(r.lww.Apply(p, &r.hlc, r.rightTime(now)))
	}
	if kind != tell { // which is acknowledged once it is on disk
		put(&l.oweLWW, p.Writer, told)
	}
	return aside, err
}

// exists reports whether a node is a member, or the one that speaks.
func (r *Replica) exists(id crdt.NodeID, l *link) bool {
	_, member := r.peers.Find(id)
	return member || id == l.peer.ID || id == r.cfg.Self.Node
}
