package transport

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/time/rate"

	"github.com/ropeline/ropeline/transport/internal/skew"
)

// maxGreeting bounds the connections that have still to say hello.
const maxGreeting = 64

// Mesh is one node's part of the mesh. Make it with [New], then call
// [Mesh.Run].
type Mesh struct {
	cfg       Config
	log       *slog.Logger
	began     time.Time // start of the monotonic clock
	hello     hello     // what this process says about itself, but for the mesh: see says
	belongs   atomic.Pointer[mesh]
	advertise netip.AddrPort
	bound     netip.AddrPort
	socket    net.PacketConn
	quic      *quic.Transport
	tls       *tls.Config

	links   *links
	post    *post
	gossip  *gossip
	members *members
	strikes strikes
	count   counters

	lastSeek atomic.Int64 // when seekDouble last went, in m.now()

	lastForeign, lastName, lastAddr atomic.Int64 // when a warning was last given that a peer is of another mesh, or has a name twice, or this node's address

	greeting  chan struct{} // one token per connection that has not said hello
	group     group
	started   atomic.Bool
	serving   atomic.Bool // what SetReady was told
	ready     chan struct{}
	runCtx    context.Context // of everything under way; set by Run before group opens
	stopCause context.CancelCauseFunc
	fatal     chan error // the first reason to stop by itself
}

// New checks cfg and binds the socket, so that Addr is known. It starts
// nothing. A mesh that is not run must be closed.
func New(cfg Config) (*Mesh, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Mesh{cfg: cfg, began: time.Now(), ready: make(chan struct{}), fatal: make(chan error, 1), greeting: make(chan struct{}, maxGreeting)}
	m.log = cfg.Logger.With("component", "transport")
	m.hello = hello{boot: cfg.Boot, started: cfg.Clock().UnixNano(), name: cfg.Name}
	rand.Read(m.hello.instance[:])
	m.belongs.Store(&mesh{id: cfg.Mesh, pending: cfg.Pending})
	m.links = newLinks(m)
	m.post = &post{m: m, boxes: map[PeerID]*outbox{}}
	m.gossip = newGossip(m)
	m.members = newMembers(m)
	m.tls = cfg.Identity.tlsConfig()

	if m.socket, err = bindSocket(cfg, &m.count.traffic); err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	if err := m.address(); err != nil {
		return nil, errors.Join(fmt.Errorf("transport: %w", err), m.socket.Close())
	}
	m.quic = m.quicTransport()
	return m, nil
}

// address finds out where this node is.
func (m *Mesh) address() (err error) {
	if m.bound, err = localAddrPort(m.socket); err != nil {
		return err
	}
	m.advertise, err = advertised(m.cfg, m.bound)
	return err
}

// quicTransport serves both listening and dialling on the one socket.
func (m *Mesh) quicTransport() *quic.Transport {
	limiter := rate.NewLimiter(rate.Limit(m.cfg.Limits.Handshakes), m.cfg.Limits.Handshakes)
	reset := quic.StatelessResetKey(m.cfg.Identity.resetKey)
	return &quic.Transport{
		Conn: m.socket,
		// The same key after a restart: peers that still send on a
		// connection of the process before learn at once that it is gone.
		StatelessResetKey: &reset,
		// Under a flood of handshakes whoever dials must first prove
		// that it receives at its address.
		VerifySourceAddress: func(net.Addr) bool { return !limiter.Allow() },
		ConnContext:         m.watchHandshake,
	}
}

// quicConfig bounds what one peer can take: 64 calls at once and 2 MiB of
// bytes not yet read. Ping datagrams keep connections alive; QUIC's own
// keep-alive steps in where those are lost.
func (m *Mesh) quicConfig() *quic.Config {
	idle := m.cfg.Timing.IdleTimeout
	return &quic.Config{
		// The least that QUIC allows (RFC 9000, 14.1), and never more: a path that turns out to carry longer
		// packets may carry them no more tomorrow, and the library would send what was lost at that
		// length again and again, while short pings say that all is well.
		InitialPacketSize:              1200,
		DisablePathMTUDiscovery:        true,
		HandshakeIdleTimeout:           min(2*time.Second, m.cfg.Timing.DialTimeout),
		MaxIdleTimeout:                 idle,
		KeepAlivePeriod:                idle / 3,
		InitialStreamReceiveWindow:     256 << 10,
		MaxStreamReceiveWindow:         512 << 10,
		InitialConnectionReceiveWindow: 512 << 10,
		MaxConnectionReceiveWindow:     2 << 20,
		MaxIncomingStreams:             64,
		MaxIncomingUniStreams:          64,
		EnableDatagrams:                true,
		Allow0RTT:                      false,
	}
}

// handshakeKey finds the watch of a handshake in the context of its connection.
type handshakeKey struct{}

// watchHandshake counts handshakes that never became a connection. QUIC ends
// the context of a connection when it closes and when its handshake fails;
// only those that were accepted are marked before.
func (m *Mesh) watchHandshake(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	accepted := new(atomic.Bool)
	context.AfterFunc(ctx, func() {
		if !accepted.Load() {
			m.count.refusedHandshakes.Add(1)
		}
	})
	return context.WithValue(ctx, handshakeKey{}, accepted), nil
}

// Close gives the socket of a mesh back that was never run. After Run it does
// nothing.
func (m *Mesh) Close() error {
	if m.started.Swap(true) {
		return nil
	}
	return m.socket.Close()
}

// Run does the work of the mesh until ctx ends, then says good-bye to the
// others and returns nil. It returns an error when the mesh cannot go on by
// itself, [ErrSuperseded] among them. It can be called once.
func (m *Mesh) Run(ctx context.Context) error {
	if m.started.Swap(true) {
		return fmt.Errorf("transport: run: %w", ErrClosed)
	}
	// Good-byes are said after ctx has ended.
	m.runCtx, m.stopCause = context.WithCancelCause(context.WithoutCancel(ctx))
	m.group.setOpen(true)
	quietQUIC(m.socket)
	listener, err := m.quic.Listen(m.tls, m.quicConfig())
	if err != nil {
		return errors.Join(fmt.Errorf("transport: listen: %w", err), m.shutdown(nil))
	}
	if err := m.gossip.start(); err != nil {
		return errors.Join(fmt.Errorf("transport: %w", err), m.shutdown(nil))
	}
	close(m.ready)
	if advice := bufferAdvice(m.socket); advice != "" {
		m.log.Warn("the kernel gives sockets less buffer than QUIC wants; packets may be lost under load", "remedy", advice)
	}
	m.log.Info("mesh up", "node", m.cfg.ID.String(), "boot", m.cfg.Boot, "site", m.cfg.Site, "addr", m.bound.String(), "advertise", m.advertise.String())
	m.group.Go(func() { m.accept(listener) })
	m.group.Go(m.members.run)
	m.group.Go(m.keepSeeds)

	select {
	case <-ctx.Done():
		m.gossip.leave()
		err = nil
	case err = <-m.fatal:
	case <-m.gossip.serf.ShutdownCh():
		err = errors.New("serf stopped by itself")
	}
	if err != nil {
		err = fmt.Errorf("transport: %w", err)
	}
	return m.shutdown(err)
}

// shutdown ends everything and waits for it.
func (m *Mesh) shutdown(cause error) error {
	m.group.setOpen(false)
	m.stopCause(ErrClosed) // first: what fails from here on says nothing about peers
	if m.gossip.serf != nil {
		if err := m.gossip.serf.Shutdown(); err != nil {
			m.log.Debug("serf shutdown", "error", err.Error())
		}
	}
	m.links.closeAll()
	_ = m.quic.Close() // closes what is left, and has nothing to say
	err := m.socket.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	m.group.wg.Wait()
	return errors.Join(cause, err)
}

// stop ends Run with err. Only the first reason counts.
func (m *Mesh) stop(err error) {
	select {
	case m.fatal <- err:
	default:
	}
}

// accept takes connections in.
func (m *Mesh) accept(listener *quic.Listener) {
	for {
		conn, err := listener.Accept(m.runCtx)
		if err != nil {
			if m.runCtx.Err() == nil {
				m.stop(fmt.Errorf("accept: %w", err))
			}
			return
		}
		if mark, ok := conn.Context().Value(handshakeKey{}).(*atomic.Bool); ok {
			mark.Store(true)
		}
		if !m.group.Go(func() { m.welcome(conn) }) {
			return
		}
	}
}

// welcome makes a link of a connection that came in.
func (m *Mesh) welcome(conn *quic.Conn) {
	ctx, cancel := context.WithTimeout(m.runCtx, m.cfg.Timing.DialTimeout)
	defer cancel()
	select {
	case m.greeting <- struct{}{}:
		defer func() { <-m.greeting }()
	default:
		_ = conn.CloseWithError(closeIdle, "too many at once")
		return
	}
	l, err := m.answer(ctx, conn)
	if err != nil {
		if errors.Is(err, errMalformed) {
			m.count.malformed.Add(1)
		}
		m.log.Debug("connection refused", "addr", conn.RemoteAddr().String(), "error", err.Error())
		_ = conn.CloseWithError(closeRefused, "no hello")
		return
	}
	_, _ = m.links.admit(l) // it says itself what becomes of the connection
}

// Addr returns the address bound.
func (m *Mesh) Addr() netip.AddrPort { return m.bound }

// Advertised returns the address that others are told.
func (m *Mesh) Advertised() netip.AddrPort { return m.advertise }

// SetReady tells the others whether this node takes traffic; a new mesh says
// that it does not. It does not wait until they know.
func (m *Mesh) SetReady(ready bool) {
	if m.serving.Swap(ready) == ready {
		return
	}
	select {
	case m.gossip.retag <- struct{}{}:
	default: // the tags are read when they are told
	}
}

func (m *Mesh) tags() tags {
	return tags{name: m.cfg.Name, site: m.cfg.Site, ready: m.serving.Load(), pending: m.belongs.Load().pending}
}

// RTT returns the shortest of the last round trips to a peer, and reports
// whether there is a connection to it that has been measured.
func (m *Mesh) RTT(id PeerID) (time.Duration, bool) {
	s, ok := m.sample(id)
	return s.RTT, ok
}

// Offset returns how far the clock of a peer is ahead of this node's; it is
// negative for a clock that is behind. The error is at most half of the RTT.
func (m *Mesh) Offset(id PeerID) (time.Duration, bool) {
	s, ok := m.sample(id)
	return s.Offset, ok
}

func (m *Mesh) sample(id PeerID) (skew.Sample, bool) {
	l := m.links.get(id)
	if l == nil {
		return skew.Sample{}, false
	}
	return l.clock.Best()
}

// now is the mesh's monotonic clock. It starts above zero.
func (m *Mesh) now() time.Duration { return time.Since(m.began) + 1 }

// clock is the wall clock that peers are told, in Unix nanoseconds.
func (m *Mesh) clock() int64 { return m.cfg.Clock().UnixNano() }

func netUDPAddr(a netip.AddrPort) *net.UDPAddr { return net.UDPAddrFromAddrPort(a) }
