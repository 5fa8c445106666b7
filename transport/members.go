package transport

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// members knows who is there. Gossip says so first, and is not believed: a
// peer is Alive only after it proved its identity and incarnation on a
// connection, and Failed only after a direct call to it failed as well.
//
//	            proven                  silent, call fails,
//	(claimed) ─────────▶ Alive ──────────────────────────────▶ Failed
//	                     │  ▲            nobody reaches it       │
//	           says so   │  │ proven again, or a newer boot      │
//	                     ▼  └────────────────────────────────────┘
//	                    Left
//
// One goroutine, run, changes the list and tells of changes; all others read.
// While mu is held no method of serf may be called: serf calls superseded and
// mentions under its own locks.
type members struct {
	m    *Mesh
	kick chan struct{} // one token when something may have changed
	done chan verdict  // checks that have ended

	mu     sync.Mutex // guards the following
	byID   map[PeerID]*member
	trying int // checks of claimed incarnations under way
}

// member is what is known about one node. It is changed by run only, except
// for the fields under "from outside", all under members.mu.
type member struct {
	peer   Peer             // as told to others; State is zero until the peer is proven
	claims map[uint64]claim // by boot, as of the last look at gossip

	checking  bool          // a check is under way
	nextCheck time.Duration // no check of the incarnation listed before that, in m.now()
	nextTry   time.Duration // no check of one that is only claimed before that
	tries     int           // checks of claimed incarnations so far
	leaving   time.Duration // since when gossip calls it leaving; 0: it does not

	sameAddress time.Duration // since when it claims this node's address; 0: it does not

	// from outside
	suspected bool   // its connection broke or fell silent
	bye       uint64 // boot+1 of the incarnation that said good-bye; 0: none
}

func newMembers(m *Mesh) *members {
	return &members{m: m, kick: make(chan struct{}, 1), done: make(chan verdict), byID: map[PeerID]*member{}}
}

// Members returns the other nodes, alive or not, ordered by ID. Nodes that
// left are listed for an hour, failed ones for a day.
func (m *Mesh) Members() []Peer {
	ms := m.members
	ms.mu.Lock()
	defer ms.mu.Unlock()
	peers := make([]Peer, 0, len(ms.byID))
	for _, mb := range ms.byID {
		if mb.peer.State != 0 {
			peers = append(peers, mb.peer)
		}
	}
	slices.SortFunc(peers, func(a, b Peer) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return peers
}

// poke makes run look again soon.
func (ms *members) poke() {
	select {
	case ms.kick <- struct{}{}:
	default:
	}
}

// addr returns where a peer is, or where gossip says so.
func (ms *members) addr(id PeerID) (netip.AddrPort, bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mb := ms.byID[id]
	if mb == nil {
		return netip.AddrPort{}, false
	}
	if cs := mb.candidates(); len(cs) > 0 && mb.peer.State != Alive {
		return cs[0].addr, true
	}
	return mb.peer.Addr, mb.peer.State != 0
}

// alive returns the address of a living peer.
func (ms *members) alive(id PeerID) (netip.AddrPort, bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mb := ms.byID[id]
	if mb == nil || mb.peer.State != Alive {
		return netip.AddrPort{}, false
	}
	return mb.peer.Addr, true
}

// mentions reports whether a peer is listed or at least claimed.
func (ms *members) mentions(id PeerID) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.byID[id] != nil
}

// claimed reports whether gossip speaks of that very incarnation.
func (ms *members) claimed(id PeerID, boot uint64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mb := ms.byID[id]
	if mb == nil {
		return false
	}
	_, ok := mb.claims[boot]
	return ok
}

// lists reports whether that very incarnation is listed as alive.
func (ms *members) lists(id PeerID, boot uint64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mb := ms.byID[id]
	return mb != nil && mb.peer.State == Alive && mb.peer.Boot == boot
}

// superseded reports whether a later incarnation than boot has been proven.
func (ms *members) superseded(id PeerID, boot uint64) bool {
	if id == ms.m.cfg.ID {
		return boot < ms.m.cfg.Boot
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mb := ms.byID[id]
	return mb != nil && mb.peer.State != 0 && mb.peer.Boot > boot
}

// describe returns the peer at the other end of a link, as listed if it is.
func (ms *members) describe(l *link) Peer {
	p := Peer{ID: l.id, Name: l.hello.name, Site: l.site, Boot: l.hello.boot, Addr: l.addr, State: Alive, Pending: l.hello.mesh.pending}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if mb := ms.byID[l.id]; mb != nil && mb.peer.State == Alive && mb.peer.Boot == p.Boot {
		return mb.peer
	}
	return p
}

// suspect says that a peer does not answer.
func (ms *members) suspect(id PeerID) {
	ms.mu.Lock()
	mb := ms.byID[id]
	news := mb != nil && mb.peer.State == Alive && !mb.suspected
	if news {
		mb.suspected = true
	}
	ms.mu.Unlock()
	if news {
		ms.poke()
	}
}

// linkDown is told why a link ended.
func (ms *members) linkDown(l *link, cause error) {
	if app, ok := errors.AsType[*quic.ApplicationError](cause); ok {
		switch app.ErrorCode {
		case closeDuplicate, closeSuperseded, closeIdle, closeForeign, closeName:
			ms.m.heedRefusal(cause)
			return
		case closeBye:
			if app.Remote {
				ms.saidBye(l)
				return
			}
		}
	}
	if !l.isRetired() && ms.m.links.get(l.id) == nil {
		ms.suspect(l.id)
	}
}

func (ms *members) saidBye(l *link) {
	ms.mu.Lock()
	if mb := ms.byID[l.id]; mb != nil && l.hello.boot >= mb.peer.Boot {
		mb.bye = l.hello.boot + 1
	}
	ms.mu.Unlock()
	ms.poke()
}
