package room

import (
	"fmt"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// rowKept is the least for which the waiting of a node that is gone count on.
const rowKept = 30 * time.Second

// kill takes a node away. What it had told is what others know of it, until it
// fades: the waiting after two and a half intervals, the active after a session.
func (m *mesh) kill(i int) {
	n := m.nodes[i]
	if !n.alive {
		return
	}
	m.trace("node %d dies", i)
	n.alive, n.site.deadAt = false, m.now
	m.crashes++
	m.faulted()
	r := n.row
	told := 0
	for _, other := range n.site.nodes {
		if r.index < len(other.own.read) && other != n {
			told = max(told, other.own.read[r.index])
		}
	}
	for _, s := range m.sites {
		if p := s.outside[n.site.index()]; s != n.site && r.index < len(p.read) {
			told = max(told, p.read[r.index])
		}
	}
	for _, c := range r.changes[told:] {
		if c.kind == crdt.Active {
			m.lost++
			m.lostUntil = m.now.Add(5 * time.Minute)
		}
	}
	r.changes = r.changes[:told]
	m.after(max(m.settings.RefreshInterval*5/2, rowKept), func() { m.fade(r, crdt.Waiting) })
	m.after(longestSession(&m.settings)+400*time.Millisecond, func() { m.fade(r, crdt.Active) })
	for _, other := range n.site.nodes {
		other.leads = m.now.Add(m.near + m.viewAge + resendAfter)
	}
}

// longestSession is how long a lease may run, whatever event it began in.
func longestSession(s *Settings) time.Duration {
	longest := s.SessionDuration
	for _, e := range s.Events {
		if e.SessionDuration != nil {
			longest = max(longest, *e.SessionDuration)
		}
	}
	return longest
}

// fade ends what a dead node counted, for everybody at once: it is a function of
// time.
func (m *mesh) fade(r *row, kind crdt.Kind) {
	left := map[int64]int64{}
	for _, c := range r.changes {
		if c.kind == kind {
			left[c.at] += c.n
		}
	}
	for at, n := range left { // the order does not matter: counts are sums
		r.changes = append(r.changes, cell{kind, at, -n, m.now})
	}
	for _, n := range r.node.site.nodes {
		m.read(&n.own, r, len(r.changes))
	}
	for _, s := range m.sites {
		if s != r.node.site {
			m.read(&s.outside[r.node.site.index()], r, len(r.changes))
		}
	}
}

// revive starts a node that was killed.
func (m *mesh) revive(i int) {
	n := m.nodes[i]
	if n.alive {
		return
	}
	m.trace("node %d is back", i)
	m.faulted()
	m.boot(n)
	n.leads = m.now.Add(m.near + m.viewAge + resendAfter)
}

// cutOff separates a site from the others.
func (m *mesh) cutOff(s *meshSite) {
	m.trace("site %s is cut off", s.name)
	m.faulted()
	for _, n := range m.nodes {
		if n.alive {
			m.input(n) // nodes look at each other all the time, not only when somebody asks
		}
	}
	s.cut, s.cutAt = true, m.now
}

// heal ends a cut. Everything is told again.
func (m *mesh) heal(s *meshSite) {
	m.trace("site %s is back", s.name)
	m.faulted()
	s.cut, m.healed = false, m.now
	for _, other := range m.sites {
		for _, r := range other.rows {
			if r.node.row == r && r.node.alive {
				m.publish(r, 1, m.far)
			} else {
				m.lastWords(r)
			}
		}
		if !other.cut {
			for _, n := range other.nodes {
				m.learn(n, m.settings)
			}
		}
	}
}

// lastWords brings the rows of dead nodes to all who can be reached.
func (m *mesh) lastWords(r *row) {
	from := r.node.site.index()
	for _, s := range m.sites {
		if s != r.node.site && !s.cut && !r.node.site.cut {
			m.read(&s.outside[from], r, len(r.changes))
		}
	}
}

// change has the operator write new settings. Nodes learn of them as they learn
// of counts.
func (m *mesh) change(f func(s *Settings)) {
	f(&m.settings)
	m.settings = m.settings.WithDefaults()
	s := m.settings
	m.trace("settings: %s", describe(&s))
	m.version++
	version := m.version
	for _, n := range m.nodes {
		if !n.site.cut {
			m.after(time.Duration(m.rng.Int64N(int64(m.far)+1)), func() {
				if version == m.version {
					m.learn(n, s)
				}
			})
		}
	}
}

func (m *mesh) learn(n *meshNode, s Settings) {
	n.settings = s
	n.line.SetSettings(complete(s))
	n.view = nil
}

func describe(s *Settings) string {
	return fmt.Sprintf("%s, %s, %d, %d per minute, sessions of %v, buckets of %v, refresh %v, places kept %v, queue all %v, suspended %v, no renewal %v",
		s.QueueingMethod, s.Policy, s.TotalActiveUsers, s.NewUsersPerMinute, s.SessionDuration, s.BucketSpan,
		s.RefreshInterval, s.PlaceKept, s.QueueAll, s.Suspended, s.DisableSessionRenewal)
}
