package transport

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/ropeline/ropeline/transport/internal/skew"
)

// Why a connection is closed, as the other end sees it.
const (
	closeBye        quic.ApplicationErrorCode = iota // this node stops
	closeDuplicate                                   // two nodes dialled each other, the other connection stays
	closeSuperseded                                  // a newer incarnation of that node is known
	closeRefused                                     // hello missing, wrong or unwanted
	closeMisbehaved                                  // too much nonsense came in
	closeIdle                                        // too many connections, this one was used least
	closeForeign                                     // of another mesh, or a mesh where there was none
	closeName                                        // another node has that name
)

const (
	datagramQueue = 64 // packets; a few rounds of gossip

	// retireGrace lets what is under way on a superfluous connection end.
	retireGrace = 2 * time.Second
)

// link is one connection to one peer, after both have said hello. Its fields
// do not change, but for those that say so.
type link struct {
	m       *Mesh
	conn    *quic.Conn
	id      PeerID // from the certificate
	site    string // from the certificate
	hello   hello  // of the peer
	said    hello  // by this node
	dialled bool   // by this node
	addr    netip.AddrPort

	datagrams chan []byte   // to be sent; full: dropped
	answered  chan struct{} // one token when a ping has been
	retired   chan struct{} // closed when another link to the same peer is kept
	retire    sync.Once
	clock     skew.Filter

	since     time.Duration // when it came up, in m.now()
	adopted   atomic.Bool   // an exchange was begun because gossip did not know the peer
	lastUsed  atomic.Int64  // when a call or message last used it, in m.now()
	lastHeard atomic.Int64  // when a ping was last answered, in m.now()

	pingMu sync.Mutex // guards the following
	pings  pinger
}

func (m *Mesh) newLink(conn *quic.Conn, id PeerID, site string, said, h hello, dialled bool) *link {
	addr, _ := addrPortOf(conn.RemoteAddr()) // zero for an unknown kind of address, which then matches nothing
	l := &link{
		m: m, conn: conn, id: id, site: site, hello: h, said: said, dialled: dialled, addr: addr,
		datagrams: make(chan []byte, datagramQueue),
		answered:  make(chan struct{}, 1),
		retired:   make(chan struct{}),
		since:     m.now(),
	}
	l.touch()
	l.lastHeard.Store(int64(m.now()))
	return l
}

// preferred reports whether this is the connection to keep of two: the one
// that the lower id dialled. Both ends come to the same answer.
func (l *link) preferred() bool {
	return l.dialled == (string(l.m.cfg.ID[:]) < string(l.id[:]))
}

func (l *link) touch() { l.lastUsed.Store(int64(l.m.now())) }

func (l *link) heard() { l.lastHeard.Store(int64(l.m.now())) }

// silentFor returns for how long pings have gone unanswered; zero when the
// last one was answered.
func (l *link) silentFor() time.Duration {
	l.pingMu.Lock()
	defer l.pingMu.Unlock()
	return l.pings.silence(l.m.now())
}

func (l *link) dead() bool { return l.conn.Context().Err() != nil }

func (l *link) isRetired() bool {
	select {
	case <-l.retired:
		return true
	default:
		return false
	}
}

func (l *link) close(code quic.ApplicationErrorCode, why string) {
	_ = l.conn.CloseWithError(code, why) // the first reason stands
}

// start runs the goroutines of a link. They end with the connection.
func (l *link) start() {
	for _, f := range []func(){l.acceptStreams, l.acceptMessages, l.receiveDatagrams, l.sendDatagrams, l.sendMessages} {
		if !l.m.group.Go(f) {
			l.close(closeBye, "stopping")
			return
		}
	}
	l.m.group.Go(func() {
		<-l.conn.Context().Done()
		l.m.links.remove(l)
		if !l.m.members.mentions(l.id) && l.m.links.get(l.id) == nil {
			l.m.post.forget(l.id)
		}
		l.m.members.linkDown(l, context.Cause(l.conn.Context()))
	})
}

// acceptStreams serves what the peer asks. QUIC bounds the number of streams
// that a peer may have open, and with it the goroutines here.
func (l *link) acceptStreams() {
	for {
		s, err := l.conn.AcceptStream(l.conn.Context())
		if err != nil {
			return
		}
		if !l.m.group.Go(func() { l.serveStream(s) }) {
			return
		}
	}
}

// serveTimeout limits how long a peer may take to write a request.
const serveTimeout = 5 * time.Second

func (l *link) serveStream(s *quic.Stream) {
	_ = s.SetReadDeadline(time.Now().Add(serveTimeout))
	var kind [1]byte
	if err := readHead(s, kind[:]); err != nil {
		l.refuse(s, err)
		return
	}
	switch kind[0] {
	case streamCall:
		l.serveCall(s, l.m.onCall)
	case streamControl:
		l.serveCall(s, l.m.onControl)
	case streamGossip:
		l.m.gossip.serve(l, s)
	default:
		l.refuse(s, malformed("stream of kind %d", kind[0]))
	}
}

// refuse gives a stream up, and counts it when the peer is to blame.
func (l *link) refuse(s *quic.Stream, err error) {
	s.CancelRead(0)
	s.CancelWrite(0)
	l.blame(err)
}

// blame counts err against the peer when it is nonsense of its making; what
// merely broke or took too long is nobody's fault.
func (l *link) blame(err error) {
	if errors.Is(err, errMalformed) || errors.Is(err, io.EOF) {
		l.m.strike(l, err)
	}
}

// sendDatagrams sends gossip and pings. QUIC blocks when its own short queue
// is full, which is why nobody else may send.
func (l *link) sendDatagrams() {
	timer := time.NewTimer(l.ping()) // the first goes at once
	defer timer.Stop()
	for {
		select {
		case <-l.conn.Context().Done():
			return
		case b := <-l.datagrams:
			l.sendDatagram(b)
		case <-l.answered: // the timer is for an answer that does not come
			timer.Reset(l.ping())
		case <-timer.C:
			timer.Reset(l.ping())
		}
	}
}

func (l *link) sendDatagram(b []byte) {
	err := l.conn.SendDatagram(b)
	if _, ok := errors.AsType[*quic.DatagramTooLargeError](err); ok {
		// Gossip is cut to size; a path with less room than QUIC itself
		// asks for must not go unnoticed.
		l.m.count.gossipDropped.Add(1)
		l.m.log.Debug("datagram too large", "peer", l.id.Short(), "bytes", len(b))
	}
}

// queueDatagram never waits.
func (l *link) queueDatagram(b []byte) {
	select {
	case l.datagrams <- b:
	default:
		l.m.count.gossipDropped.Add(1)
	}
}

// ping asks for the peer's clock if it is time to, and returns when to look
// again.
func (l *link) ping() time.Duration {
	now := l.m.now()
	l.pingMu.Lock()
	wait := l.pings.wait(now, l.m.cfg.Timing.PingInterval)
	silence := l.pings.silence(now)
	var t1 int64
	if wait <= 0 {
		t1 = l.m.clock()
		l.pings.sent(t1, now)
	}
	l.pingMu.Unlock()
	if wait > 0 {
		return wait
	}
	if silence >= silenceLimit {
		l.m.members.suspect(l.id)
	}
	l.sendDatagram(appendPing(make([]byte, 0, 1+pingSize), t1))
	return pingRetry
}

func (l *link) receiveDatagrams() {
	for {
		b, err := l.conn.ReceiveDatagram(l.conn.Context())
		if err != nil {
			return
		}
		if err := l.datagram(b); err != nil {
			l.blame(err)
		}
	}
}

func (l *link) datagram(b []byte) error {
	if len(b) == 0 {
		return malformed("empty datagram")
	}
	switch b[0] {
	case datagramGossip:
		return l.m.gossip.packet(l, b[1:])
	case datagramPing:
		t2 := l.m.clock()
		t1, ok := parsePing(b[1:])
		if !ok {
			return malformed("ping of %d bytes", len(b))
		}
		l.queueDatagram(appendPong(make([]byte, 0, 1+pongSize), t1, t2, l.m.clock()))
		return nil
	case datagramPong:
		t1, t2, t3, ok := parsePong(b[1:])
		if !ok {
			return malformed("pong of %d bytes", len(b))
		}
		l.pong(t1, t2, t3)
		return nil
	}
	return malformed("datagram of kind %d", b[0])
}

// pong takes an answer. One to a ping that is no longer waited for is late or
// made up, and either way of no use.
func (l *link) pong(t1, t2, t3 int64) {
	now := l.m.now()
	l.pingMu.Lock()
	elapsed, ok := l.pings.answered(t1, now)
	l.pingMu.Unlock()
	if !ok {
		return
	}
	l.heard()
	select {
	case l.answered <- struct{}{}:
	default:
	}
	if s, ok := skew.New(t1, t2, t3, elapsed); ok {
		l.clock.Add(s)
	}
}
