package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Rotation decides by which of several secrets a node goes, while one replaces another.
// It is a state machine without clock and network: it is told which secrets the operator
// has given this node and what peers say of theirs, and says what to use.
//
//	announce  a secret is given to the node: it accepts what comes from it
//	use       all peers have had it for a while: the node's own comes from it
//	retire    it was taken out, and nobody has used it for as long as what came from it
//	          may be shown
//
// Each node decides by itself. Since none uses what another does not accept, it does not
// matter in which order nodes are told, or that they decide at different moments.
// A Rotation is not safe for concurrent use.
type Rotation struct {
	settle, linger time.Duration

	given []SecretID             // by the operator, the newest first
	kept  []SecretID             // taken out by the operator, and not retired yet
	since map[SecretID]time.Time // accepted
	used  map[SecretID]time.Time // of kept ones, when anybody was last known to use it
	uses  SecretID
	peers map[PeerID]Announcement // of members, as they said last
}

// Announcement is what a node says of its secrets.
type Announcement struct {
	Uses SecretID
	Has  []HeldSecret
}

// HeldSecret is one that a node accepts, and for how long it has done so.
type HeldSecret struct {
	ID  SecretID
	For time.Duration // in full seconds
}

// NewRotation begins with the secrets given, the newest first; there is one at least.
// Used is the one that the node used before it was restarted: it goes on with it. If it is
// not among them, or zero, the node begins with the oldest, which those have as well who
// have not heard of the others. A newer one is used when all have had it for settle; one
// that was taken out is accepted until nobody has used it for linger.
func NewRotation(given []SecretID, used SecretID, settle, linger time.Duration, now time.Time) *Rotation {
	r := &Rotation{settle: settle, linger: linger, since: map[SecretID]time.Time{}, used: map[SecretID]time.Time{}, peers: map[PeerID]Announcement{}}
	r.Give(given, now)
	if r.uses = given[len(given)-1]; slices.Contains(given, used) {
		r.uses = used
	}
	return r
}

// Give replaces what the operator has given. What is taken out is retired by Decide.
func (r *Rotation) Give(given []SecretID, now time.Time) {
	for _, id := range given {
		if _, known := r.since[id]; !known {
			r.since[id] = now
		}
	}
	for _, id := range r.given {
		if !slices.Contains(given, id) && !slices.Contains(r.kept, id) {
			r.kept = append(r.kept, id)
			r.used[id] = now
		}
	}
	r.given = slices.Clone(given)
	r.kept = slices.DeleteFunc(r.kept, func(id SecretID) bool { return slices.Contains(given, id) })
}

// Waits reports whether the newest secret is not used yet, and Retires whether one that
// was taken out is still accepted. Where neither is so, peers need not be asked.
func (r *Rotation) Waits() bool   { return r.uses != r.given[0] }
func (r *Rotation) Retires() bool { return len(r.kept) > 0 }

// Uses returns the secret that is used.
func (r *Rotation) Uses() SecretID { return r.uses }

// Given reports whether the operator has given a secret, and not taken it out.
func (r *Rotation) Given(id SecretID) bool { return slices.Contains(r.given, id) }

// Accepts returns all secrets that are accepted, the newest first, and those that were
// taken out last.
func (r *Rotation) Accepts() []SecretID { return slices.Concat(r.given, r.kept) }

// Announce returns what this node has to say.
func (r *Rotation) Announce(now time.Time) Announcement {
	a := Announcement{Uses: r.uses}
	accepts := r.Accepts()
	for _, id := range accepts[:min(len(accepts), 2*MaxSecrets)] {
		a.Has = append(a.Has, HeldSecret{id, max(0, now.Sub(r.since[id])).Truncate(time.Second)})
	}
	return a
}

// Heard notes what a peer says. One that has been silent since counts as it was then.
func (r *Rotation) Heard(from PeerID, a Announcement) { r.peers[from] = a }

// Decide looks whether the newest secret can be used, and which can go, given the members
// of the mesh but for this node, those out of reach included. It reports whether anything
// has changed.
func (r *Rotation) Decide(members []PeerID, now time.Time) (changed bool) {
	for id := range r.peers {
		if !slices.Contains(members, id) {
			delete(r.peers, id)
		}
	}
	if newest := r.given[0]; r.uses != newest && now.Sub(r.since[newest]) >= r.settle && len(r.Missing(members)) == 0 {
		r.uses, changed = newest, true
	}
	before := len(r.kept)
	r.kept = slices.DeleteFunc(r.kept, func(id SecretID) bool {
		if r.mayBeUsed(id, members) {
			r.used[id] = now
		}
		gone := now.Sub(r.used[id]) >= r.linger
		if gone {
			delete(r.since, id)
			delete(r.used, id)
		}
		return gone
	})
	return changed || len(r.kept) != before
}

// mayBeUsed reports whether this node uses a secret, or a member that says so, or that
// has said nothing yet.
func (r *Rotation) mayBeUsed(id SecretID, members []PeerID) bool {
	return id == r.uses || slices.ContainsFunc(members, func(p PeerID) bool {
		a, heard := r.peers[p]
		return !heard || a.Uses == id
	})
}

// Missing returns the members that have not had the newest secret for long enough, or
// have not said so.
func (r *Rotation) Missing(members []PeerID) (missing []PeerID) {
	for _, p := range members {
		has := slices.ContainsFunc(r.peers[p].Has, func(h HeldSecret) bool { return h.ID == r.given[0] && h.For >= r.settle })
		if !has {
			missing = append(missing, p)
		}
	}
	return missing
}

// An announcement on the wire: version 1 B, the secret that is used, then those that are
// accepted, each with seconds 4 B.
const announcementVersion = 1

// AppendAnnouncement appends a in the form that ParseAnnouncement reads.
func AppendAnnouncement(dst []byte, a Announcement) []byte {
	dst = append(append(dst, announcementVersion), a.Uses[:]...)
	for _, h := range a.Has {
		dst = append(dst, h.ID[:]...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(min(max(h.For/time.Second, 0), 1<<32-1)))
	}
	return dst
}

// ParseAnnouncement reads what a peer has sent. What is not of that form is an error.
func ParseAnnouncement(b []byte) (a Announcement, err error) {
	const head, each = 1 + len(a.Uses), len(a.Uses) + 4
	if len(b) < head || len(b) > head+2*MaxSecrets*each || (len(b)-head)%each != 0 {
		return a, fmt.Errorf("announcement of %d bytes", len(b))
	}
	if b[0] != announcementVersion {
		return a, errors.New("announcement of another version")
	}
	copy(a.Uses[:], b[1:])
	for b = b[head:]; len(b) > 0; b = b[each:] {
		a.Has = append(a.Has, HeldSecret{SecretID(b[:len(a.Uses)]), time.Duration(binary.BigEndian.Uint32(b[len(a.Uses):])) * time.Second})
	}
	return a, nil
}
