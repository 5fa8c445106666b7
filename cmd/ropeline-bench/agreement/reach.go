package agreement

import (
	"slices"
	"time"

	"github.com/ropeline/ropeline/node/replica"
)

// Which nodes are in reach of each other, and what of that they are told.

const (
	goneSeen = 1500 * time.Millisecond // after which membership tells that a node is down or cut off
	backSeen = 300 * time.Millisecond  // the same, that it is there
	knowWell = 30 * time.Second        // for which two nodes are in reach of each other until each knows of the other for good
)

// link is how another node stands in the eyes of one.
type link struct {
	up, is bool // as was told, and the truth since
	since  time.Duration
}

func (l *link) lasts(now time.Duration) bool { return l.up && l.is && now >= l.since+knowWell }

// hears reports whether a node hears what another one says.
func (w *world) hears(m, from *machine) bool {
	return !m.cut && !from.cut && !m.deaf && !from.mute && (m.Site == from.Site || !w.away[m.Site] && !w.away[from.Site])
}

func (w *world) tellMembers(m *machine) {
	var peers []replica.Peer
	for _, o := range w.nodes {
		if o == m || o.Boot == 0 {
			continue
		}
		l, is := m.links[o.ID], o.core != nil && w.hears(m, o)
		if l == nil {
			l = &link{}
			m.links[o.ID] = l
		}
		if l.is != is {
			l.is, l.since = is, w.now
		}
		after := goneSeen
		if l.is {
			after = backSeen
		}
		if w.now >= l.since+after || w.now < m.started+backSeen {
			l.up = l.is
		}
		if l.up {
			peer := o.Peer
			peer.Ready = o.ready()
			peers = append(peers, peer)
		}
		if back := o.links[m.ID]; m.ready() && o.ready() && l.lasts(w.now) && back != nil && back.lasts(w.now) {
			m.knows[o.ID] = true
		}
	}
	if w.now < m.started+backSeen || m.joins() && len(peers) == 0 { // who is new waits for others
		return
	}
	slices.SortFunc(peers, func(a, b replica.Peer) int { return a.ID.Compare(b.ID) })
	if slices.Equal(peers, m.told) && w.now < m.toldAt+time.Second {
		return
	}
	m.told, m.toldAt = peers, w.now
	if len(peers) > 0 { // a node alone has no clock to compare its own with
		m.core.SetClock(!m.wrong(), m.ahead, w.time(m))
	}
	m.core.SetPeers(peers, w.time(m))
}

func (w *world) together() {
	clear(w.away)
	for _, m := range w.nodes {
		m.cut, m.mute, m.deaf = false, false, false
	}
}

// cutSoon has some of those that join be cut off while they do, or just after.
func (w *world) cutSoon(m *machine, s Step) {
	if s.Thing%3 > 0 {
		return
	}
	id, d := m.ID, time.Duration(s.Node*10)*time.Millisecond
	w.every(time.Millisecond, 0, func() bool {
		if m.ID != id || m.Boot > 1 {
			return false
		}
		if m.Boot == 1 {
			w.after(d, func() { m.cut = m.cut || !w.healed })
		}
		return m.Boot == 0
	})
}
