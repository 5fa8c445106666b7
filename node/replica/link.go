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

	// What was received since the last push, to be acknowledged with it.
	oweRows bool
	oweSums map[string]struct{}
	oweLWW  map[crdt.NodeID]struct{}
}

func newLink(p Peer) *link {
	return &link{peer: p,
		rows:    newTrack[crdt.Incarnation](cmp.Compare[uint64]),
		sums:    newTrack[string](crdt.Version.Compare),
		lww:     newTrack[crdt.NodeID](cmp.Compare[uint64]),
		oweSums: make(map[string]struct{}), oweLWW: make(map[crdt.NodeID]struct{}),
	}
}

// track follows what a peer has of some parts of the state, by part.
type track[K comparable, V any] struct {
	compare func(a, b V) int
	acked   map[K]V // what it has said that it has
	sent    map[K]V // what was sent
	at      time.Time
}

func newTrack[K comparable, V any](compare func(a, b V) int) track[K, V] {
	return track[K, V]{compare: compare, acked: make(map[K]V), sent: make(map[K]V)}
}

// due reports whether the peer needs to be sent something of what we have: what
// was never sent, or sent some time ago and not acknowledged.
func (t *track[K, V]) due(have map[K]V, now time.Time) bool {
	late := !now.Before(t.at.Add(resendAfter))
	for k, v := range have {
		if t.compare(v, t.acked[k]) > 0 && (late || t.compare(v, t.sent[k]) > 0) {
			return true
		}
	}
	return false
}

func (t *track[K, V]) sending(k K, v V, now time.Time) {
	t.sent[k] = v
	t.at = now
}

// has notes that the peer itself holds v, since it sent it.
func (t *track[K, V]) has(k K, v V) {
	if t.compare(v, t.acked[k]) > 0 {
		t.acked[k] = v
	}
}

// confirm notes an acknowledgement. It may take one back: a peer forgets what
// it believes dead.
func (t *track[K, V]) confirm(k K, v V) { t.acked[k] = v }

// SetPeers names all live members except this node. A peer that starts anew is
// told everything anew.
func (r *Replica) SetPeers(peers []Peer, now time.Time) {
	r.open(now)
	for _, l := range r.links {
		l.listed = false
	}
	for _, p := range peers {
		if p.ID == r.cfg.Self.Node {
			r.noticeSelf(p.incarnation(), 0)
			continue
		}
		l, ok := r.links[p.ID]
		if !ok || l.peer.Boot < p.Boot {
			l = newLink(p)
			r.links[p.ID] = l
		}
		if p.Boot == l.peer.Boot {
			l.peer = p
			l.listed = true
		}
	}
	maps.DeleteFunc(r.links, func(_ crdt.NodeID, l *link) bool { return !l.listed && now.Sub(l.heard) > heardFor })
	r.findRelays()
	r.fill.begin(now)
	r.checkReady(now)
}

// link returns the link to the sender of a message; ok is false if the message
// comes from an earlier start of a node that has started again.
func (r *Replica) link(from Peer) (*link, bool) {
	l, ok := r.links[from.ID]
	if ok && from.Boot < l.peer.Boot {
		return nil, false
	}
	if !ok || from.Boot > l.peer.Boot {
		l = newLink(from)
		r.links[from.ID] = l
	}
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

// mates returns the listed members of our site, in order of id.
func (r *Replica) mates() []*link {
	var out []*link
	for _, l := range r.links {
		if l.listed && l.peer.Site == r.cfg.Site {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *link) int { return a.peer.ID.Compare(b.peer.ID) })
	return out
}

// speaks reports whether an incarnation is alive and was heard lately, so that
// nobody else may speak for it.
func (r *Replica) speaks(owner crdt.Incarnation, now time.Time) bool {
	l, ok := r.links[owner.Node]
	return ok && l.peer.Boot == owner.Boot && now.Sub(l.heard) <= heardFor
}
