package memnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/transport"
	"github.com/ropeline/ropeline/transport/internal/skew"
)

// Mesh is one node on a [Network]. Make it with [Network.New], then call Run.
type Mesh struct {
	net   *Network
	cfg   transport.Config
	addr  netip.AddrPort
	began time.Time
	inbox *inbox

	runCtx  context.Context // set by Run before up is closed
	up      chan struct{}   // closed once Run has begun
	started atomic.Bool
	fatal   chan error
	wg      sync.WaitGroup
	stats   counters

	mu     sync.Mutex // guards the following
	ready  bool
	closed bool // no goroutine may be started any more
	seeds  map[netip.AddrPort]bool
	peers  map[transport.PeerID]*peer
	calls  map[uint64]chan packet // those that wait for an answer
	nextID uint64
}

type counters struct {
	bytesIn, bytesOut, callsIn, callsOut, messagesIn, messagesOut, dropped, panics atomic.Uint64
}

// New puts a node on the network. Of cfg it uses ID, Boot, Name, Site,
// Listen (an IP address and port, or empty for any), Seeds (the same), the
// callbacks, Clock, Timing.CallTimeout and Timing.LeaveTimeout; no identity
// is needed, since everybody here is who they say.
func (n *Network) New(cfg transport.Config) (*Mesh, error) {
	if cfg.ID.IsZero() {
		return nil, errors.New("memnet: Config.ID is zero")
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Timing.CallTimeout <= 0 {
		cfg.Timing.CallTimeout = transport.LAN().Timing.CallTimeout
	}
	m := &Mesh{
		net: n, cfg: cfg, began: time.Now(), inbox: newInbox(),
		up: make(chan struct{}), fatal: make(chan error, 1),
		seeds: map[netip.AddrPort]bool{},
		peers: map[transport.PeerID]*peer{},
		calls: map[uint64]chan packet{},
	}
	for _, s := range cfg.Seeds {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("memnet: seed %q: %w", s, err)
		}
		m.seeds[ap] = true
	}
	if err := n.attach(m, cfg.Listen); err != nil {
		return nil, err
	}
	return m, nil
}

// Run does the work of the mesh until ctx ends, then says good-bye and
// returns nil.
func (m *Mesh) Run(ctx context.Context) error {
	if m.started.Swap(true) {
		return fmt.Errorf("memnet: run: %w", transport.ErrClosed)
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.runCtx = runCtx
	close(m.up)
	err := m.loop(ctx)
	if err == nil {
		m.broadcast(packet{kind: goodbye})
	}
	m.net.detach(m)
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	cancel()
	m.wg.Wait()
	return err
}

// loop delivers packets and beats. It is the one goroutine that tells of
// events and hands over messages.
func (m *Mesh) loop(ctx context.Context) error {
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	arrival := time.NewTimer(beatInterval) // set anew with the first packet
	defer arrival.Stop()
	m.beat()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-m.fatal:
			return err
		case <-beat.C:
			m.beat()
		case <-m.inbox.wake:
		case <-arrival.C:
		}
		for {
			p, wait, ok := m.inbox.take()
			if !ok {
				arrival.Reset(wait)
				break
			}
			m.deliver(p)
		}
	}
}

// Close takes a mesh off the network that was never run.
func (m *Mesh) Close() error {
	if !m.started.Swap(true) {
		m.net.detach(m)
	}
	return nil
}

// stop ends Run with err. The node is off the network at once.
func (m *Mesh) stop(err error) {
	m.net.detach(m)
	select {
	case m.fatal <- err:
	default:
	}
}

// goRun runs f in a goroutine for which Run waits.
func (m *Mesh) goRun(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.wg.Go(f)
	}
}

// Addr returns the address of the node.
func (m *Mesh) Addr() netip.AddrPort { return m.addr }

// Join makes the node try the given addresses, now and until somebody
// answers. It returns how many answered within ctx, or within the timeout of
// a call.
func (m *Mesh) Join(ctx context.Context, seeds ...string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timing.CallTimeout)
	defer cancel()
	want := map[netip.AddrPort]bool{}
	m.mu.Lock()
	for _, s := range seeds {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			m.mu.Unlock()
			return 0, fmt.Errorf("join %q: %w", s, err)
		}
		if ap != m.addr {
			want[ap], m.seeds[ap] = true, true
		}
	}
	m.mu.Unlock()
	for {
		n := 0
		for _, p := range m.Members() {
			if p.State == transport.Alive && want[p.Addr] {
				n++
			}
		}
		if n == len(want) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			if n > 0 {
				return n, nil
			}
			return 0, fmt.Errorf("join: %w", context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Members returns the other nodes, ordered by ID.
func (m *Mesh) Members() []transport.Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	ps := make([]transport.Peer, 0, len(m.peers))
	for _, p := range m.peers {
		if p.peer.State != 0 {
			ps = append(ps, p.peer)
		}
	}
	slices.SortFunc(ps, func(a, b transport.Peer) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return ps
}

// SetReady tells the others whether this node takes traffic.
func (m *Mesh) SetReady(ready bool) {
	m.mu.Lock()
	m.ready = ready
	m.mu.Unlock()
	select {
	case <-m.up:
		m.broadcast(packet{kind: heartbeat, beat: m.ownBeat()})
	default: // the first beat says it
	}
}

// Send tells a peer something without waiting. The slot plays no part here.
func (m *Mesh) Send(to transport.PeerID, kind uint8, _ uint64, msg []byte) {
	addr, ok := m.reach(to)
	if !ok || len(msg) > transport.MaxMessage {
		m.stats.dropped.Add(1)
		return
	}
	m.stats.messagesOut.Add(1)
	m.stats.bytesOut.Add(uint64(len(msg)))
	m.net.send(m, addr, packet{kind: message, method: kind, body: msg})
}

// Call asks a peer and waits for its answer; see the method of transport.Mesh.
func (m *Mesh) Call(ctx context.Context, to transport.PeerID, method uint8, req []byte) ([]byte, error) {
	if len(req) > transport.MaxCall {
		return nil, fmt.Errorf("call %s: %w: request of %d bytes", to.Short(), transport.ErrTooLarge, len(req))
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.cfg.Timing.CallTimeout)
		defer cancel()
	}
	addr, ok := m.reach(to)
	if !ok {
		return nil, fmt.Errorf("call %s: %w: no such member", to.Short(), transport.ErrUnreachable)
	}
	deadline, _ := ctx.Deadline()
	answers := make(chan packet, 1)
	m.mu.Lock()
	m.nextID++
	id := m.nextID
	m.calls[id] = answers
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.calls, id)
	}()
	m.stats.callsOut.Add(1)
	m.stats.bytesOut.Add(uint64(len(req)))
	if !m.net.send(m, addr, packet{kind: request, method: method, body: slices.Clone(req), call: id, expiry: deadline}) {
		return nil, fmt.Errorf("call %s: %w: nobody is there", to.Short(), transport.ErrUnreachable)
	}
	select {
	case p := <-answers:
		if p.err != nil {
			return nil, fmt.Errorf("call %s: %w", to.Short(), p.err)
		}
		return p.body, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("call %s: %w", to.Short(), ctx.Err())
	}
}

// reach returns where a peer is, once Run has begun.
func (m *Mesh) reach(id transport.PeerID) (netip.AddrPort, bool) {
	select {
	case <-m.up:
	default:
		return netip.AddrPort{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[id]
	if p == nil || p.peer.State == 0 {
		return netip.AddrPort{}, false
	}
	return p.peer.Addr, true
}

// RTT returns the shortest of the last round trips to a peer.
func (m *Mesh) RTT(id transport.PeerID) (time.Duration, bool) {
	s, ok := m.sample(id)
	return s.RTT, ok
}

// Offset returns how far the clock of a peer is ahead of this node's.
func (m *Mesh) Offset(id transport.PeerID) (time.Duration, bool) {
	s, ok := m.sample(id)
	return s.Offset, ok
}

func (m *Mesh) sample(id transport.PeerID) (skew.Sample, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.peers[id]
	if p == nil {
		return skew.Sample{}, false
	}
	return p.clock.Best()
}

// Stats returns the counters that make sense here; bytes are those of bodies.
func (m *Mesh) Stats() transport.Stats {
	c := &m.stats
	return transport.Stats{
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		CallsIn: c.callsIn.Load(), CallsOut: c.callsOut.Load(),
		MessagesIn: c.messagesIn.Load(), MessagesOut: c.messagesOut.Load(),
		MessagesDropped: c.dropped.Load(), HandlerPanics: c.panics.Load(),
	}
}
