package transport

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/quic-go/quic-go"
)

// dialPeer makes a connection to addr and checks that id answers there; a
// zero id takes anybody.
func (m *Mesh) dialPeer(ctx context.Context, id PeerID, addr netip.AddrPort) (*link, error) {
	if !addr.IsValid() || addr.Port() == 0 {
		return nil, fmt.Errorf("dial %s: no address", id.Short())
	}
	conn, err := m.quic.Dial(ctx, netUDPAddr(addr), m.tls, m.quicConfig())
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	l, err := m.greet(ctx, conn, id)
	if err != nil {
		_ = conn.CloseWithError(closeRefused, "no hello")
		return nil, fmt.Errorf("greet %s: %w", addr, err)
	}
	return m.links.admit(l)
}

// greet says hello as the one who dialled.
func (m *Mesh) greet(ctx context.Context, conn *quic.Conn, want PeerID) (*link, error) {
	id, site, err := peerOf(conn)
	if err != nil {
		return nil, err
	}
	if !want.IsZero() && id != want {
		return nil, fmt.Errorf("%w: want %s, got %s", errMismatch, want.Short(), id.Short())
	}
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	defer s.CancelRead(0)
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	said := m.says()
	if _, err := s.Write(appendHello([]byte{streamHello}, said)); err != nil {
		return nil, err
	}
	_ = s.Close()
	h, err := readHello(s)
	if err != nil {
		return nil, err
	}
	if err := m.meet(conn, id, h); err != nil {
		return nil, err
	}
	return m.newLink(conn, id, site, said, h, true), nil
}

// answer says hello as the one who was dialled.
func (m *Mesh) answer(ctx context.Context, conn *quic.Conn) (*link, error) {
	id, site, err := peerOf(conn)
	if err != nil {
		return nil, err
	}
	if m.strikes.banned(id, m.now()) {
		_ = conn.CloseWithError(closeMisbehaved, "cut off")
		return nil, errBanned
	}
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	defer s.CancelRead(0)
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	var kind [1]byte
	if err := readHead(s, kind[:]); err != nil {
		return nil, err
	}
	if kind[0] == streamTime {
		return nil, m.tellTime(ctx, conn, s)
	}
	if kind[0] != streamHello {
		return nil, malformed("first stream is of kind %d, want a hello", kind[0])
	}
	h, err := readHello(s)
	if err != nil {
		return nil, err
	}
	said := m.says()
	if _, err := s.Write(appendHello(nil, said)); err != nil {
		return nil, err
	}
	_ = s.Close()
	if err := m.meet(conn, id, h); err != nil {
		// Closing now would take our hello back, and a double must read
		// it to know that it is one. It closes when it has.
		select {
		case <-conn.Context().Done():
		case <-ctx.Done():
		}
		return nil, err
	}
	return m.newLink(conn, id, site, said, h, false), nil
}

// meet handles a peer that is of another mesh, or has this node's name or its own
// identity: the latter is either this process itself, found through a seed list, or a
// double, of which one has to stop.
func (m *Mesh) meet(conn *quic.Conn, id PeerID, h hello) error {
	if id != m.cfg.ID {
		if err := m.sameMesh(conn, id, h); err != nil {
			return err
		}
		return m.otherName(conn, id, h)
	}
	if h.instance == m.hello.instance {
		return errSelf
	}
	if h.boot > m.hello.boot || (h.boot == m.hello.boot && h.before(m.hello)) {
		m.stop(fmt.Errorf("%w: it says boot %d, this process has boot %d", ErrSuperseded, h.boot, m.hello.boot))
	}
	m.count.refusedPeers.Add(1)
	return ErrSuperseded
}

// heedRefusal looks at why a peer closed a connection: when it knows a later
// incarnation of this node, or another process of this one, it says where.
func (m *Mesh) heedRefusal(err error) {
	app, ok := errors.AsType[*quic.ApplicationError](err)
	if !ok || !app.Remote || app.ErrorCode != closeSuperseded {
		return
	}
	if addr, err := netip.ParseAddrPort(app.ErrorMessage); err == nil {
		m.seekDouble(addr)
	}
}

// seekDouble goes to see another process of this node's identity, of which
// gossip or a peer told that it is at addr. Nobody is believed: if it is
// there, it shows its certificate and one of the two stops.
func (m *Mesh) seekDouble(addr netip.AddrPort) {
	now := int64(m.now())
	last := m.lastSeek.Load()
	if now-last < int64(dialPause) && last != 0 || !m.lastSeek.CompareAndSwap(last, now) {
		return // it will be told of again
	}
	m.group.Go(func() {
		ctx, cancel := context.WithTimeout(m.runCtx, m.cfg.Timing.DialTimeout)
		defer cancel()
		_, _ = m.links.open(ctx, PeerID{}, addr)
	})
}

// peerOf reads who is at the other end out of its certificate.
func peerOf(conn *quic.Conn) (PeerID, string, error) {
	certs := conn.ConnectionState().TLS.PeerCertificates
	if len(certs) == 0 {
		return PeerID{}, "", errors.New("no certificate")
	}
	return nodeOf(certs[0])
}
