package transport

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

var (
	errSelf     = errors.New("that is this very process")
	errOlder    = errors.New("a newer incarnation of that node is known")
	errBanned   = errors.New("peer is cut off for sending nonsense")
	errMismatch = errors.New("another node answered there")
)

// dialPause is the least time between two dials that nobody waits for, so
// that gossip toward a dead node does not become a storm of handshakes.
const dialPause = 500 * time.Millisecond

// links holds the connections of a mesh: at most one to each peer, and the
// dials under way.
type links struct {
	m *Mesh

	mu    sync.Mutex // guards the following
	byID  map[PeerID]*link
	dials map[dialKey]*dial
	last  map[dialKey]time.Duration // start of the last dial that failed
}

// dialKey is either a peer or, when it is not known who is there, an address.
type dialKey struct {
	id   PeerID
	addr netip.AddrPort
}

// dial is an attempt that others may wait for.
type dial struct {
	done    chan struct{} // closed at the end; link and err are valid then
	link    *link
	err     error
	pending [][]byte // gossip to send as soon as the link is there; under links.mu
}

func newLinks(m *Mesh) *links {
	return &links{m: m, byID: map[PeerID]*link{}, dials: map[dialKey]*dial{}, last: map[dialKey]time.Duration{}}
}

func (ls *links) len() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.byID)
}

// get returns the connection to a peer, or nil.
func (ls *links) get(id PeerID) *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byID[id]
}

// at returns a connection to whoever is at addr, or nil.
func (ls *links) at(addr netip.AddrPort) *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byID {
		if l.addr == addr {
			return l
		}
	}
	return nil
}

func (ls *links) all() []*link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	all := make([]*link, 0, len(ls.byID))
	for _, l := range ls.byID {
		all = append(all, l)
	}
	return all
}

// open returns the connection to a peer, dialling addr if there is none. With
// a zero id it takes whoever is there. It waits until ctx ends; the dial
// itself goes on for those who wait longer.
func (ls *links) open(ctx context.Context, id PeerID, addr netip.AddrPort) (*link, error) {
	l, d := ls.find(id, addr, nil)
	if l != nil {
		return l, nil
	}
	return d.wait(ctx)
}

// redial dials addr even though there is a connection to id, because that
// one seems dead.
func (ls *links) redial(ctx context.Context, id PeerID, addr netip.AddrPort) (*link, error) {
	ls.mu.Lock()
	d := ls.dialLocked(dialKey{id: id}, addr)
	ls.mu.Unlock()
	return d.wait(ctx)
}

func (d *dial) wait(ctx context.Context) (*link, error) {
	select {
	case <-d.done:
		return d.link, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// nudge dials a peer in the background if there is no connection, unless that
// failed a moment ago. packet, if any, is sent once connected.
func (ls *links) nudge(id PeerID, addr netip.AddrPort, packet []byte) {
	l, _ := ls.find(id, addr, func(d *dial) {
		if packet == nil {
			return
		}
		if len(d.pending) >= datagramQueue {
			ls.m.count.gossipDropped.Add(1)
			return
		}
		d.pending = append(d.pending, packet)
	})
	if l != nil && packet != nil {
		l.queueDatagram(packet)
	}
}

// find returns either a link or a dial under way. With background set, which
// is called on the dial under the lock, a dial that failed just now is not
// repeated and both results may be nil.
func (ls *links) find(id PeerID, addr netip.AddrPort, background func(*dial)) (*link, *dial) {
	key := dialKey{id: id}
	if id.IsZero() {
		key = dialKey{addr: addr}
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byID[id]; l != nil {
		return l, nil
	}
	if background == nil {
		return nil, ls.dialLocked(key, addr)
	}
	if at, ok := ls.last[key]; ok && ls.m.now()-at < dialPause && ls.dials[key] == nil {
		return nil, nil
	}
	d := ls.dialLocked(key, addr)
	background(d)
	return nil, d
}

// dialLocked joins the dial under way or starts one.
func (ls *links) dialLocked(key dialKey, addr netip.AddrPort) *dial {
	if d := ls.dials[key]; d != nil {
		return d
	}
	d := &dial{done: make(chan struct{})}
	ls.dials[key] = d
	if !ls.m.group.Go(func() { ls.run(key, addr, d) }) {
		delete(ls.dials, key)
		d.err = ErrClosed
		close(d.done)
	}
	return d
}

// run is one dial.
func (ls *links) run(key dialKey, addr netip.AddrPort, d *dial) {
	ctx, cancel := context.WithTimeout(ls.m.runCtx, ls.m.cfg.Timing.DialTimeout)
	defer cancel()
	began := ls.m.now()
	l, err := ls.m.dialPeer(ctx, key.id, addr)
	ls.m.heedRefusal(err)

	ls.mu.Lock()
	delete(ls.dials, key)
	delete(ls.last, key)
	if err != nil {
		if len(ls.last) > 4*ls.m.cfg.Limits.Links {
			clear(ls.last) // a memory of failures, not worth more than its bound
		}
		ls.last[key] = began
	}
	d.link, d.err = l, err
	pending := d.pending
	d.pending = nil
	ls.mu.Unlock()

	close(d.done)
	if l == nil {
		ls.m.count.gossipDropped.Add(uint64(len(pending)))
		return
	}
	for _, p := range pending {
		l.queueDatagram(p)
	}
}

// admit takes a new connection in and returns the one to use, which may be
// another one that was there before.
func (ls *links) admit(l *link) (*link, error) {
	if ls.m.strikes.banned(l.id, ls.m.now()) {
		l.close(closeMisbehaved, "cut off")
		return nil, errBanned
	}
	ls.mu.Lock()
	if err := ls.fitsLocked(l); err != nil {
		ls.mu.Unlock()
		ls.m.count.refusedPeers.Add(1)
		l.close(closeCode(err), err.Error())
		return nil, err
	}
	old := ls.byID[l.id]
	keep, drop, code := choose(old, l)
	if keep == l {
		ls.byID[l.id] = l
	}
	evict := ls.overfullLocked(l)
	ls.mu.Unlock()

	if keep == l {
		l.start()
	}
	if evict != nil {
		evict.close(closeIdle, "least used")
	}
	if drop == nil {
		return keep, nil
	}
	ls.m.log.Debug("connection given up for another", "peer", l.id.Short(), "dialled", drop.dialled, "code", uint64(code))
	if code != closeDuplicate {
		drop.close(code, keep.addr.String()) // it may want to know by whom, see seekDouble
		if drop == l {
			ls.m.count.refusedPeers.Add(1)
			return nil, errOlder
		}
		return keep, nil
	}
	if drop == l {
		l.start() // the other end may use it until it notices
	}
	ls.retire(drop)
	return keep, nil
}

// choose decides which of two connections to the same peer stays. old may be
// nil; drop is nil when nothing has to go.
func choose(old, l *link) (keep, drop *link, code quic.ApplicationErrorCode) {
	switch {
	case old == nil:
		return l, nil, 0
	case l.hello.boot < old.hello.boot:
		return old, l, closeSuperseded
	case l.hello.boot > old.hello.boot:
		return l, old, closeSuperseded
	case old.dead() || old.silentFor() >= silenceLimit:
		return l, old, closeDuplicate
	case l.hello.instance != old.hello.instance:
		// The same start twice: a copied data directory. Who is here
		// stays; the two of them settle it when they meet.
		return old, l, closeSuperseded
	case old.preferred() && !l.preferred():
		return old, l, closeDuplicate
	default:
		// Also when both were dialled by the same end: it would not
		// dial again while it has one.
		return l, old, closeDuplicate
	}
}

// retire stops using a connection and closes it when what is under way on it
// had time to end.
func (ls *links) retire(l *link) {
	l.retire.Do(func() { close(l.retired) })
	ls.m.group.Go(func() {
		select {
		case <-time.After(retireGrace):
		case <-l.conn.Context().Done():
		case <-ls.m.runCtx.Done():
		}
		l.close(closeDuplicate, "duplicate")
	})
}

// overfullLocked picks the connection to close when there are too many.
func (ls *links) overfullLocked(spare *link) *link {
	if len(ls.byID) <= ls.m.cfg.Limits.Links {
		return nil
	}
	var worst *link
	for _, l := range ls.byID {
		if l != spare && (worst == nil || l.lastUsed.Load() < worst.lastUsed.Load()) {
			worst = l
		}
	}
	if worst != nil {
		delete(ls.byID, worst.id)
	}
	return worst
}

// remove forgets a connection that has ended.
func (ls *links) remove(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.byID[l.id] == l {
		delete(ls.byID, l.id)
	}
}

// closeAll closes every connection.
func (ls *links) closeAll() {
	for _, l := range ls.all() {
		l.close(closeBye, "stopping")
	}
}
