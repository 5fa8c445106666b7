package replica

import (
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// What the members of the mesh have of the last-writer map on their disks.
//
// Pushes acknowledge what a node has in memory: that is enough for what is sent next. Who
// answers an operator, or forgets something for good, needs to know what survives a crash.
// So a node can ask every member, of other sites as well, and each answers once its disk
// has it:
//
//	tell: all that I wrote up to n, say when it is on your disk ──▶
//	      ◀── kept: I have it up to m; of that is on my disk: k
//
// A tell brings what its receiver lacks along, so that an operator's write is everywhere
// after one round trip, and not after the pushes of all the relays on its way.

const (
	// spreadFor is how long members are told of a write out of turn. What one has not
	// confirmed by then comes to it with pushes, as everything does.
	spreadFor = 5 * time.Second
	// tellSize is what a tell takes beside what was written.
	tellSize = 64
	// surveyed is how many members are asked with one call of Spreads what is on their disks.
	surveyed = 16
)

// spreading is what a replica knows of disks, its own included.
type spreading struct {
	kept crdt.LWWDigest // on this node's disk
	seen uint64         // Tells of the map when all of it was on this disk

	from, upTo uint64    // this node's writes that all members are told of: (from, upTo]
	until      time.Time // and for how long
	survey     []crdt.NodeID

	by   map[crdt.NodeID]*keeper
	owed map[crdt.NodeID]question
}

// keeper is what one member has said of its disk.
type keeper struct {
	boot uint64
	says bool           // it has said something since it started
	has  uint64         // of this node's writes, on its disk or not
	kept crdt.LWWDigest // of all writers, if it was asked for that
	told uint64         // up to which write it was told last
	at   time.Time      // when that was

	slow uint64 // somebody has waited in vain for this node's writes up to here; 0: nobody has
}

// question is what a member wants to know of this node's disk.
type question struct {
	upTo uint64 // answer once its own writes up to here are on disk; 0: at once
	all  bool   // tell of all writers
}

// Unkept returns of which writers, this node included, more is known than is on its disk,
// and up to which packed stamp; nil: of none. Once all that the map holds now is on disk,
// Keep is to be called with it.
func (r *Replica) Unkept() crdt.LWWDigest {
	s := &r.spread
	if s.seen > 0 && s.seen == r.lww.Tells() {
		return nil // nearly always
	}
	var more crdt.LWWDigest
	for writer := range r.lww.Known() {
		if n := r.lww.NewestOf(writer); n > s.kept[writer] {
			put(&more, writer, n)
		}
	}
	if more == nil {
		s.seen = r.lww.Tells()
	}
	return more
}

// Keep says that what Unkept returned is on disk: then others are told of this node's own
// writes, and of nothing after them. Until it is called for the first time they are told of everything.
func (r *Replica) Keep(more crdt.LWWDigest) {
	s := &r.spread
	for writer, n := range more {
		if r.lww.NewestOf(writer) > 0 { // it was not dropped meanwhile
			put(&s.kept, writer, max(n, s.kept[writer]))
		}
	}
	r.lww.Withhold(r.cfg.Self.Node, s.kept[r.cfg.Self.Node])
}

// Keeps reports whether all that was written by at.Node up to a stamp is on the disk of a
// member, as that has said, or of this node.
func (r *Replica) Keeps(node crdt.NodeID, at crdt.Stamp) bool { return r.keptBy(node).Holds(at) }

func (r *Replica) keptBy(node crdt.NodeID) crdt.LWWDigest {
	if node == r.cfg.Self.Node {
		return r.spread.kept
	}
	if k := r.spread.by[node]; k != nil {
		return k.kept
	}
	return nil
}

// KeepsWritten is Keeps of this node's own writes, up to a number from Written.
func (r *Replica) KeepsWritten(node crdt.NodeID, written uint64) bool {
	return r.keptBy(node)[r.cfg.Self.Node] >= written
}

// NoteSlow says that somebody has waited in vain for a member to have this node's writes on its disk, up to a number
// from Written.
func (r *Replica) NoteSlow(node crdt.NodeID, written uint64) {
	if p, ok := r.peers.Find(node); ok {
		k := r.spread.keeper(p)
		k.slow = max(k.slow, written)
	}
}

// Slow reports whether a member has still not confirmed what somebody has waited for.
func (r *Replica) Slow(node crdt.NodeID) bool {
	k := r.spread.by[node]
	return k != nil && k.slow > k.kept[r.cfg.Self.Node]
}

// Spread has all members be told at once, by Spreads, of what this node has written since
// Written returned a number.
func (r *Replica) Spread(since uint64, now time.Time) {
	s := &r.spread
	if !now.Before(s.until) {
		s.from = since
	}
	s.upTo, s.until = r.Written(), now.Add(spreadFor)
}

// Survey has all members be asked, by Spreads, what is on their disks of all writers. One
// that is asked already is not asked twice.
func (r *Replica) Survey() {
	r.spread.survey = nil
	for _, p := range r.peers {
		if p.ID != r.cfg.Self.Node {
			r.spread.survey = append(r.spread.survey, p.ID)
		}
	}
}

// keeper returns what is known of a member's disk.
func (s *spreading) keeper(p Peer) *keeper {
	k := s.by[p.ID]
	if k == nil || k.boot != p.Boot {
		k = &keeper{boot: p.Boot}
		put(&s.by, p.ID, k)
	}
	return k
}

// Spreads returns what members are to be told and asked now, and what others have asked of
// this node's disk and can be answered.
func (r *Replica) Spreads(now time.Time) []Message {
	out := r.answers(r.letIn(nil))
	s := &r.spread
	if now.Before(s.until) && r.lww.KnownOf(r.cfg.Self.Node) >= s.upTo {
		out = r.appendTells(out, now)
	}
	n := min(surveyed, len(s.survey))
	for _, id := range s.survey[:n] {
		out = append(out, r.message(id, &frame{kind: survey}))
	}
	s.survey = s.survey[n:]
	return out
}

// appendTells tells members of what they have not confirmed. Nearly all lack the same, which
// is looked up once.
func (r *Replica) appendTells(out []Message, now time.Time) []Message {
	s, self := &r.spread, r.cfg.Self.Node
	lacks := map[uint64]crdt.LWWDelta{} // by what they know
	for _, p := range r.peers {
		if p.ID == self {
			continue
		}
		k := s.keeper(p)
		if k.kept[self] >= s.upTo || k.told >= s.upTo && now.Sub(k.at) < resendAfter {
			continue
		}
		k.told, k.at = s.upTo, now
		from := s.from // most likely; it says so if it has less
		if k.says {
			from = k.has
		}
		d, found := lacks[from]
		if !found {
			d = r.lww.DeltaOf(self, from, r.cfg.MaxMessage-overhead-tellSize)
			lacks[from] = d
		}
		out = append(out, r.message(p.ID, &frame{kind: tell, haveKept: crdt.LWWDigest{self: s.upTo}, lww: d}))
	}
	return out
}

// asked notes what a member wants to know of this node's disk.
func (r *Replica) asked(l *link, f *frame) {
	q := r.spread.owed[l.peer.ID]
	q.upTo, q.all = max(q.upTo, f.haveKept[l.peer.ID]), q.all || f.kind == survey
	put(&r.spread.owed, l.peer.ID, q)
}

// answerable reports whether the writer of a question can be answered: all it asks of is on
// this disk, or something is missing before what it told. What was left aside is asked for: see askForRest.
func (r *Replica) answerable(id crdt.NodeID, q question) bool {
	known, aside := r.lww.KnownOf(id), uint64(0)
	if l := r.links[id]; l != nil {
		aside = l.asides[id]
	}
	return r.spread.kept[id] >= q.upTo || known < q.upTo && aside <= known
}

// Answers reports whether Spreads will answer somebody who has asked of this node's disk.
func (r *Replica) Answers() bool {
	for id, q := range r.spread.owed {
		if r.answerable(id, q) {
			return true
		}
	}
	return false
}

func (r *Replica) answers(out []Message) []Message {
	if len(r.spread.owed) == 0 {
		return out // nearly always
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.spread.owed), crdt.NodeID.Compare) {
		q := r.spread.owed[id]
		if !r.answerable(id, q) {
			continue
		}
		delete(r.spread.owed, id)
		f := &frame{kind: kept, haveLWW: crdt.LWWDigest{id: r.lww.KnownOf(id)}, haveKept: r.spread.kept}
		if !q.all {
			f.haveKept = crdt.LWWDigest{id: r.spread.kept[id]}
		}
		out = append(out, r.message(id, f))
	}
	return out
}

// tookKept notes what a member has on its disk. It is believed about itself and about writers that are known
// here: it could fill our memory with others. What it has of their writes may be more than has come here: before anything is
// forgotten that it knew of, all have to have that.
func (r *Replica) tookKept(l *link, f *frame) {
	p, ok := r.peers.Find(l.peer.ID)
	if !ok || p.Boot != l.peer.Boot {
		return
	}
	self, k := r.cfg.Self.Node, r.spread.keeper(p)
	if has := min(f.haveLWW[self], r.Written()); !k.says || has > k.has {
		k.says, k.has, k.told = true, has, 0 // it has come on: what it lacks still goes to it at once
	}
	for writer, n := range f.haveKept {
		switch most := r.lww.NewestOf(writer); {
		case writer == self:
			n = min(n, most)
		case most == 0 && writer != l.peer.ID:
			continue
		}
		put(&k.kept, writer, max(k.kept[writer], n))
	}
}

// forgetKeepers drops what is known of nodes that are no members any more.
func (r *Replica) forgetKeepers() {
	gone := func(id crdt.NodeID) bool { _, member := r.peers.Find(id); return !member }
	maps.DeleteFunc(r.spread.by, func(id crdt.NodeID, _ *keeper) bool { return gone(id) })
	maps.DeleteFunc(r.spread.owed, func(id crdt.NodeID, _ question) bool { return gone(id) })
}
