package transport

import (
	"sync"
	"time"
)

const (
	strikeLimit = 16          // pieces of nonsense within strikeSpan
	strikeSpan  = time.Minute // also how often one peer is logged
	banTime     = time.Minute // for which a peer over the limit is refused
	strikePeers = 4096        // remembered; enough for any mesh of honest size
)

// strikes remembers which peers send nonsense. The zero value is empty.
type strikes struct {
	mu    sync.Mutex // guards the following
	peers map[PeerID]*strikeCount
}

type strikeCount struct {
	since  time.Duration // start of the span
	n      int           // strikes in it
	banned time.Duration // until then
}

// add counts one strike at now. It reports whether the strike is to be logged,
// which the first of a span is, and whether the peer has used up its patience.
func (s *strikes) add(id PeerID, now time.Duration) (log, ban bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers == nil || len(s.peers) >= strikePeers {
		s.peers = map[PeerID]*strikeCount{}
	}
	c := s.peers[id]
	if c == nil || now-c.since >= strikeSpan {
		fresh := &strikeCount{since: now}
		if c != nil {
			fresh.banned = c.banned
		}
		c = fresh
		s.peers[id] = c
	}
	c.n++
	if c.n >= strikeLimit {
		c.banned = now + banTime
		return c.n == 1, true
	}
	return c.n == 1, false
}

// banned reports whether a peer is refused at now.
func (s *strikes) banned(id PeerID, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.peers[id]
	return c != nil && now < c.banned
}

// strike counts nonsense from a peer, and cuts it off when there is too much.
func (m *Mesh) strike(l *link, err error) {
	m.count.malformed.Add(1)
	log, ban := m.strikes.add(l.id, m.now())
	if log {
		m.log.Warn("nonsense from a peer", "peer", l.id.String(), "site", l.site, "addr", l.addr.String(), "error", err.Error())
	}
	if ban {
		m.log.Warn("peer cut off", "peer", l.id.String(), "site", l.site, "for", banTime.String())
		l.close(closeMisbehaved, "too much nonsense")
	}
}
