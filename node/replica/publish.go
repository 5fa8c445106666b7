package replica

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/packed"
)

// leading is the part of a site's relay: it publishes the site's summary and
// passes on those of others. There is no election. Each node works out from the
// members it sees who it is; two that both think so are told apart by the
// versions of what they publish.
type leading struct {
	on        bool
	outranked bool                       // a ready member of the site has a better claim
	heard     crdt.Version               // newest of our site that others speak of
	urgent    map[crdt.RoomID]struct{}   // rooms that do not wait for the next summary
	told      uint64                     // lww.Tells when other sites were last pushed to
	stated    map[crdt.RoomID]crdt.Basis // of what was published, unless somebody waits
	counts    crdt.Counts                // scratch
}

// Urgent sends the news of one room with the next Tick, at most once in 50 ms:
// our row to the site and, if this node is its relay, the room's summary to
// other sites.
func (r *Replica) Urgent(room crdt.RoomID) { r.lead.urgent[room] = struct{}{} }

// score is a member's claim to being its site's relay. It depends on nothing
// that changes while the member lives, so relays move only with membership.
func score(site string, id crdt.NodeID) uint64 {
	h := binary.BigEndian.Uint64(id[:8]) ^ bits.RotateLeft64(binary.BigEndian.Uint64(id[8:]), 32)
	for i := range len(site) {
		h = (h ^ uint64(site[i])) * 0x100000001b3
	}
	// Ids are random, or made from certificates; this spreads what they have.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// findRelays works out who speaks for each other site: the listed member with
// the highest score of those that are ready, or of all if none is.
func (r *Replica) findRelays() {
	clear(r.relays)
	type claim struct {
		peer  Peer
		score uint64
	}
	best := make(map[string]claim)
	for _, p := range r.peers {
		if p.Site == r.cfg.Site || p.ID == r.cfg.Self.Node {
			continue
		}
		b, ok := best[p.Site]
		c := claim{p, score(p.Site, p.ID)}
		if !ok || p.Ready && !b.peer.Ready || p.Ready == b.peer.Ready && c.score > b.score {
			best[p.Site] = c
		}
	}
	for site, c := range best {
		r.relays[site] = c.peer.ID
	}
	r.linkRelays()
}

// linkRelays makes the links to other sites that leading ours takes.
func (r *Replica) linkRelays() {
	if !r.lead.on {
		return
	}
	for _, id := range r.relays {
		if p, ok := r.peers.Find(id); ok {
			r.list(p)
		}
	}
}

func (r *Replica) isRelay(l *link) bool { return r.relays[l.peer.Site] == l.peer.ID }

// checkLead takes the lead of our site or lays it down. A relay that others
// outrank with what they have heard takes over again, above that.
func (r *Replica) checkLead(now time.Time) {
	site, self := r.cfg.Site, r.cfg.Self
	r.sort()
	on := r.fill.done && !r.lead.outranked
	began := on && !r.lead.on
	if r.lead.on = on; began {
		r.linkRelays()
	}
	if on && (began || !r.sums.Leads(site, self) || r.lead.heard.Outranks(r.sums.Known(site))) {
		r.sums.TakeOver(site, self, r.lead.heard.Epoch, now)
		clear(r.lead.stated)
		r.publishAll(now)
	}
}

// outranked notes a version of our site's summary that another site holds. An
// epoch far in the future is nobody's.
func (r *Replica) outranked(v crdt.Version, now time.Time) {
	if v.Outranks(r.lead.heard) && v.Epoch <= uint64(now.Add(time.Hour).UnixMilli()) {
		r.lead.heard = v
	}
}

// publishAll states anew the rooms of our site whose counts have changed, and
// what is closed.
func (r *Replica) publishAll(now time.Time) {
	if !r.lead.on {
		return
	}
	rooms := r.unstated(now)
	slices.SortFunc(rooms, crdt.RoomID.Compare)
	for _, room := range slices.Compact(rooms) {
		r.publish(room, now)
	}
	if h, ok := r.rows.SiteHeader(r.cfg.Site, now); ok {
		r.sums.Close(r.cfg.Site, r.cfg.Self, h.Closed, now)
	}
}

// unstated returns the rooms of our site whose counts may not be as they were published: most of thousands
// of rooms are.
func (r *Replica) unstated(now time.Time) (rooms []crdt.RoomID) {
	site, known := r.cfg.Site, 0
	for room := range r.sums.Rooms(site) { // those that are gone from the rows are published once more, empty
		known++
		if !r.rows.Same(r.lead.stated[room], site, room, now, r.cfg.Retention) {
			rooms = append(rooms, room)
		}
	}
	for room := range r.rows.Rooms(site) {
		if !r.sums.Has(site, room) {
			rooms = append(rooms, room)
		}
	}
	if len(r.lead.stated) > known {
		for room := range r.lead.stated {
			if !r.sums.Has(site, room) {
				packed.Delete(&r.lead.stated, room)
			}
		}
	}
	return rooms
}

func (r *Replica) publishUrgent(now time.Time) {
	if !r.lead.on {
		return
	}
	// In order of id: the sequence numbers of changes are part of what is sent.
	for _, room := range slices.SortedFunc(maps.Keys(r.lead.urgent), crdt.RoomID.Compare) {
		r.publish(room, now)
	}
}

// publish states one room anew if its counts have changed. That a count has
// expired is no change: whoever holds it sees that by itself.
func (r *Replica) publish(room crdt.RoomID, now time.Time) {
	site, ret := r.cfg.Site, r.cfg.Retention
	r.lead.counts.Reset()
	basis := r.rows.AddSite(&r.lead.counts, site, room, now, ret)
	sum := crdt.Summarize(r.lead.counts, r.cfg.BucketSpan(room))
	if !sum.Equal(r.sums.Published(site, room).Unexpired(now, ret)) {
		r.sums.Publish(site, r.cfg.Self, room, sum, now)
	}
	if len(sum.Waiting) > 0 {
		basis = crdt.Basis{} // the spans in which they are counted may become others
	}
	r.lead.stated[room] = basis
}
