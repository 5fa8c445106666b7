package replica

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

const (
	// resendAfter is how long news may stay unacknowledged.
	resendAfter = time.Second
	// heardFor is how long after its last message a node speaks for itself,
	// and nobody else may.
	heardFor = 3 * time.Second
)

// link is what we remember of one peer: what it has, what is on its way, and
// what we owe it.
type link struct {
	peer   Peer
	listed bool // in the last SetPeers; else it only sent something
	heard  time.Time
	ready  bool // its last message says so

	rows track[crdt.Incarnation, uint64]
	sums track[string, crdt.Version]
	lww  track[crdt.NodeID, uint64]
	full uint64 // what lww.Tells of the map was when the peer had said that it has all; 0: it has not

	asked    time.Time // when we last asked it for all it knows
	round    uint64    // how often we have
	answered bool      // it has given us, who lead the site, all of that since it came, and we took the lead

	// What was received since the last push, to be acknowledged with it.
	oweRows bool
	oweSums map[string]struct{}
	oweLWW  map[crdt.NodeID]uint64 // up to where nothing is wanted of a writer

	asides crdt.LWWDigest // what it has told and was left aside, as something else had to come with it; nil: nothing
}

func newLink(p Peer) *link {
	return &link{
		peer: p,
		rows: newTrack[crdt.Incarnation](cmp.Compare[uint64]),
		sums: newTrack[string](crdt.Version.Compare),
		lww:  newTrack[crdt.NodeID](cmp.Compare[uint64]),
	}
}

// track follows what a peer has of some parts of the state, by part.
type track[K comparable, V any] struct {
	compare func(a, b V) int
	acked   map[K]V // what it has said that it has; nil: nothing
	sent    map[K]V // what was sent; nil: nothing
	at      time.Time
}

func newTrack[K comparable, V any](compare func(a, b V) int) track[K, V] {
	return track[K, V]{compare: compare}
}

// dueOne reports whether the peer needs to be sent a part of what we have: it was
// never sent, or sent some time ago and not acknowledged.
func (t *track[K, V]) dueOne(k K, v V, now time.Time) bool {
	return t.compare(v, t.acked[k]) > 0 && (!now.Before(t.at.Add(resendAfter)) || t.compare(v, t.sent[k]) > 0)
}

func (t *track[K, V]) sending(k K, v V, now time.Time) {
	put(&t.sent, k, v)
	t.at = now
}

// put sets an entry of a map that is made when it is first needed: most links of
// a large mesh never carry anything.
func put[M ~map[K]V, K comparable, V any](m *M, k K, v V) {
	if *m == nil {
		*m = make(M)
	}
	(*m)[k] = v
}

// has notes that the peer itself holds v, since it sent it.
func (t *track[K, V]) has(k K, v V) {
	if t.compare(v, t.acked[k]) > 0 {
		put(&t.acked, k, v)
	}
}

// confirm notes an acknowledgement. It may take one back: a peer forgets what
// it believes dead.
func (t *track[K, V]) confirm(k K, v V) { put(&t.acked, k, v) }

// SetPeers names all live members; this node may be among them. A peer that
// starts anew is told everything anew. The list is kept, as NewMembers says.
//
// Of those in other sites only the ones we speak to, or who speak to us, have a
// link: the relays, if we lead our site. In a large mesh that is few of many.
func (r *Replica) SetPeers(peers []Peer, now time.Time) {
	r.open(now)
	r.peers = NewMembers(peers)
	for _, l := range r.links {
		l.listed = false
	}
	for _, p := range r.peers {
		switch _, known := r.links[p.ID]; {
		case p.ID == r.cfg.Self.Node:
			r.noticeSelf(p.incarnation(), 0)
		case known || p.Site == r.cfg.Site:
			r.list(p)
		}
	}
	for _, l := range r.links {
		l.answered = l.answered && l.listed
	}
	r.findRelays()
	maps.DeleteFunc(r.links, func(_ crdt.NodeID, l *link) bool { return !r.wanted(l) && now.Sub(l.heard) > heardFor })
	r.order = nil
	r.forgetKeepers()
	maps.DeleteFunc(r.fill.strangers, func(id crdt.NodeID, _ *frame) bool { return r.links[id] == nil })
	r.fill.begin(now)
	r.checkReady(now)
}

// wanted reports whether a link is of use even when nothing comes from it.
func (r *Replica) wanted(l *link) bool {
	return l.listed && (l.peer.Site == r.cfg.Site || r.lead.on && r.isRelay(l))
}

// list keeps a link to a member, and returns it.
func (r *Replica) list(p Peer) *link {
	l, ok := r.links[p.ID]
	if !ok || l.peer.Boot < p.Boot {
		l = newLink(p)
		r.links[p.ID] = l
	}
	if p.Boot == l.peer.Boot {
		l.peer = p
		l.listed = true
	}
	r.order = nil
	return l
}

// link returns the link to the sender of a message; ok is false if the message
// comes from an earlier start of a node that has started again.
func (r *Replica) link(from Peer) (*link, bool) {
	l, ok := r.links[from.ID]
	if ok && from.Boot < l.peer.Boot {
		return nil, false
	}
	if ok && from.Boot == l.peer.Boot {
		return l, true
	}
	p, listed := r.peers.Find(from.ID)
	if listed && from.Boot < p.Boot {
		return nil, false
	}
	l = newLink(from)
	if listed && from.Boot == p.Boot {
		l.peer, l.listed = p, true
	}
	r.links[from.ID] = l
	r.order = nil
	return l, true
}

// noticeSelf keeps in mind that somebody else goes by our id: in a later start,
// or in this one, of which they know more changes than we have made.
func (r *Replica) noticeSelf(i crdt.Incarnation, changes uint64) {
	self := r.cfg.Self
	if i.Node != self.Node || i.Boot < self.Boot || i == self && changes <= r.rows.Known(self) {
		return
	}
	if r.conflict == nil || i.Boot > r.conflict.Boot {
		r.conflict = &i
	}
}

// sorted returns all links in order of id.
func (r *Replica) sorted() []*link {
	r.sort()
	return r.order
}

// mates returns the listed members of our site, in order of id.
func (r *Replica) mates() []*link {
	r.sort()
	return r.near
}

// sort works out who there is, if that has changed.
func (r *Replica) sort() {
	if r.order != nil {
		return
	}
	r.order = slices.SortedFunc(maps.Values(r.links), func(a, b *link) int { return a.peer.ID.Compare(b.peer.ID) })
	r.near = r.near[:0:0]
	r.lead.outranked = false
	for _, l := range r.order {
		if l.listed && l.peer.Site == r.cfg.Site {
			r.near = append(r.near, l)
			r.lead.outranked = r.lead.outranked || l.peer.Ready && score(r.cfg.Site, l.peer.ID) > score(r.cfg.Site, r.cfg.Self.Node)
		}
	}
	if r.order == nil {
		r.order = []*link{} // nobody is there, and that is known
	}
}

// speaks reports whether an incarnation is alive and was heard lately, so that
// nobody else may speak for it.
func (r *Replica) speaks(owner crdt.Incarnation, now time.Time) bool {
	l, ok := r.links[owner.Node]
	return ok && l.peer.Boot == owner.Boot && now.Sub(l.heard) <= heardFor
}
