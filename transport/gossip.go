package transport

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/quic-go/quic-go"
)

const (
	// gossipPacket is the largest packet that memberlist may make. QUIC
	// starts with packets of 1,280 bytes, and its own head and ours must
	// fit in as well.
	gossipPacket = 1100

	gossipPacketQueue = 512
	gossipStreamQueue = 16

	failedKept = 24 * time.Hour // serf forgets failed members after this
	leftKept   = time.Hour      // and left ones after this
	reapEvery  = 15 * time.Second
)

// gossip runs serf over the links of a mesh. It is memberlist's transport.
type gossip struct {
	m     *Mesh
	serf  *serf.Serf
	check gossipCheck
	size  atomic.Int64 // members that serf knew when it was last asked

	packets chan *memberlist.Packet
	streams chan net.Conn
	closed  chan struct{} // closed by Shutdown
	joining chan struct{} // one token: serf takes one join at a time, and waits on a lock for it
	retag   chan struct{} // one token when the tags have to be told again
}

var (
	_ memberlist.NodeAwareTransport  = (*gossip)(nil)
	_ serf.MergeDelegate             = (*gossip)(nil)
	_ serf.ReconnectTimeoutOverrider = (*gossip)(nil)
)

func newGossip(m *Mesh) *gossip {
	return &gossip{
		m:       m,
		packets: make(chan *memberlist.Packet, gossipPacketQueue),
		streams: make(chan net.Conn, gossipStreamQueue),
		closed:  make(chan struct{}),
		joining: make(chan struct{}, 1),
		retag:   make(chan struct{}, 1),
	}
}

// start starts serf. What serf starts ends with shutdown.
func (g *gossip) start() error {
	events := make(chan serf.Event, 256)
	s, err := serf.Create(g.config(events))
	if err != nil {
		return fmt.Errorf("start serf: %w", err)
	}
	g.serf = s
	// Serf stops all its work while its event channel is full, so the
	// channel is emptied whatever happens. What the events say is not
	// used: members are read from serf's list, which is always right.
	g.m.group.Go(func() {
		for {
			select {
			case <-events:
				g.m.members.poke()
			case <-s.ShutdownCh():
				return
			}
		}
	})
	g.m.group.Go(g.tellTags)
	return nil
}

func (g *gossip) config(events chan<- serf.Event) *serf.Config {
	t := g.m.cfg.Timing
	logger := log.New(gossipLog{g.m.log}, "", 0)

	ml := memberlist.DefaultLANConfig()
	ml.Transport = g
	ml.Logger = logger
	ml.AdvertiseAddr, ml.AdvertisePort = g.m.advertise.Addr().String(), int(g.m.advertise.Port())
	ml.BindPort = ml.AdvertisePort
	ml.TCPTimeout = t.StreamTimeout
	ml.SuspicionMult = t.SuspicionMult
	ml.PushPullInterval = t.PushPullInterval
	ml.ProbeInterval, ml.ProbeTimeout = t.ProbeInterval, t.ProbeTimeout
	ml.GossipInterval, ml.GossipNodes = t.GossipInterval, t.GossipNodes
	ml.DisableTcpPings = true // would go over the same connection and tell nothing new
	ml.DeadNodeReclaimTime = 5 * time.Second
	ml.UDPBufferSize = gossipPacket
	ml.EnableCompression = false // tiny messages, and nothing to unpack for whoever floods us
	ml.DNSConfigPath = ""

	return &serf.Config{
		NodeName:          memberName(g.m.cfg.ID, g.m.cfg.Boot),
		Tags:              g.m.tags().encode(),
		EventCh:           events,
		ProtocolVersion:   serf.ProtocolVersionMax,
		ValidateNodeNames: true,
		// A clash of names would make serf vote and, with nobody to
		// vote, shut both nodes down. Names are proven instead.
		EnableNameConflictResolution: false,
		DisableCoordinates:           true, // links measure distance and clocks together
		Merge:                        g,
		ReconnectTimeoutOverride:     g,
		MemberlistConfig:             ml,
		Logger:                       logger,
		BroadcastTimeout:             t.LeaveTimeout / 4,
		LeavePropagateDelay:          t.LeaveTimeout / 4,
		ReapInterval:                 reapEvery,
		ReconnectInterval:            min(t.RetryInterval, 5*time.Second),
		ReconnectTimeout:             failedKept,
		TombstoneTimeout:             leftKept,
		FlapTimeout:                  time.Minute,
		RecentIntentTimeout:          5 * time.Minute,
		QueueCheckInterval:           30 * time.Second,
		QueueDepthWarning:            128,
		MaxQueueDepth:                4096,
		// Serf's events and queries are not used. The rings cannot be
		// empty, and travel along with every exchange.
		EventBuffer:            1,
		QueryBuffer:            1,
		QueryTimeoutMult:       16,
		QueryResponseSizeLimit: 1024,
		QuerySizeLimit:         1024,
		UserEventSizeLimit:     512,
	}
}

// claim is what gossip says about one incarnation of a peer. Nothing in it is
// proven.
type claim struct {
	id     PeerID
	boot   uint64
	addr   netip.AddrPort
	tags   tags
	status serf.MemberStatus
}

// claims returns all members that serf knows, except this process.
func (g *gossip) claims() []claim {
	var cs []claim
	mems := g.serf.Members()
	g.size.Store(int64(len(mems)))
	for _, mem := range mems {
		c, err := claimOf(&mem)
		if err != nil || (c.id == g.m.cfg.ID && c.boot == g.m.cfg.Boot) {
			continue // NotifyMerge said why
		}
		cs = append(cs, c)
	}
	return cs
}

func claimOf(mem *serf.Member) (claim, error) {
	id, boot, err := parseMemberName(mem.Name)
	if err != nil {
		return claim{}, err
	}
	t, err := decodeTags(mem.Tags)
	if err != nil {
		return claim{}, err
	}
	ip, ok := netip.AddrFromSlice(mem.Addr)
	if !ok || ip.IsUnspecified() || ip.IsMulticast() || mem.Port == 0 {
		return claim{}, fmt.Errorf("address %s:%d cannot be dialled", mem.Addr, mem.Port)
	}
	return claim{id: id, boot: boot, addr: netip.AddrPortFrom(ip.Unmap(), mem.Port), tags: t, status: mem.Status}, nil
}

// NotifyMerge implements [serf.MergeDelegate]. Serf calls it with one member
// for each piece of news, and with all members of the other side before a
// first exchange. Only single news can be refused here: turning a whole
// exchange down for one bad entry would let that entry keep nodes apart, and
// each entry comes again by itself.
func (g *gossip) NotifyMerge(mems []*serf.Member) error {
	if len(mems) != 1 {
		return nil
	}
	c, err := claimOf(mems[0])
	if err != nil {
		g.m.count.refusedPeers.Add(1)
		return err
	}
	if c.id == g.m.cfg.ID {
		return g.ownName(c)
	}
	if g.size.Load() >= maxGossipNodes && !g.m.members.mentions(c.id) {
		g.m.count.refusedPeers.Add(1)
		return fmt.Errorf("more than %d members", maxGossipNodes)
	}
	// A claim about a peer that is connected can be judged at once.
	if l := g.m.links.get(c.id); l != nil && l.hello.boot == c.boot && l.site != c.tags.site {
		g.m.count.refusedPeers.Add(1)
		return fmt.Errorf("member %s claims site %q, its certificate says %q", c.id.Short(), c.tags.site, l.site)
	}
	return nil
}

// ownName judges news about this node itself. An earlier incarnation is
// history. The present one at another address, or a later one, is a double:
// it has to prove itself on a connection, where one of the two will stop.
func (g *gossip) ownName(c claim) error {
	if c.boot < g.m.cfg.Boot || (c.boot == g.m.cfg.Boot && c.addr == g.m.advertise) {
		return nil
	}
	g.m.seekDouble(c.addr)
	return fmt.Errorf("member %s at %s has this node's identity", c.id.Short(), c.addr)
}

// ReconnectTimeout implements [serf.ReconnectTimeoutOverrider]: incarnations
// that have a successor are forgotten at once, so that restarts leave nothing
// behind.
func (g *gossip) ReconnectTimeout(mem *serf.Member, timeout time.Duration) time.Duration {
	id, boot, err := parseMemberName(mem.Name)
	if err != nil || g.m.members.superseded(id, boot) {
		return 0
	}
	return timeout
}

// join exchanges state with the peer at the other end of l.
func (g *gossip) join(ctx context.Context, l *link) error {
	select {
	case g.joining <- struct{}{}:
		defer func() { <-g.joining }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, err := g.serf.Join([]string{memberName(l.id, l.hello.boot) + "/" + l.addr.String()}, true)
	return err
}

// tellAgain is how often tags are told again after a change, after a second, two and so
// on. Gossip reaches each node in all likelihood and not for sure; who has missed it,
// since it was just connecting for instance, would learn it only with the next full
// exchange.
const tellAgain = 2

// tellTags passes on changes of the tags. Serf waits until it has told
// somebody, which is why this has a goroutine of its own.
func (g *gossip) tellTags() {
	again := time.NewTimer(time.Second)
	again.Stop()
	defer again.Stop()
	told := tellAgain
	for {
		select {
		case <-g.closed:
			return
		case <-g.retag:
			told = 0
		case <-again.C:
			told++
		}
		if err := g.serf.SetTags(g.m.tags().encode()); err != nil {
			g.m.log.Debug("tags not told", "error", err.Error())
		}
		if told < tellAgain {
			again.Reset(time.Duration(told+1) * time.Second)
		}
	}
}

// leave says good-bye, and gives up after a while.
func (g *gossip) leave() {
	done := make(chan struct{})
	g.m.group.Go(func() {
		defer close(done)
		defer func() {
			// Where this takes longer than we wait, serf has been shut down meanwhile,
			// and memberlist panics rather than say so: a process that stops while the
			// machine is busy would end in a crash.
			if p := recover(); p != nil {
				g.m.log.Debug("leave", "error", fmt.Sprint(p))
			}
		}()
		if err := g.serf.Leave(); err != nil {
			g.m.log.Debug("leave", "error", err.Error())
		}
	})
	timer := time.NewTimer(g.m.cfg.Timing.LeaveTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

func (g *gossip) queueDepth() int {
	select {
	case <-g.m.ready:
	default:
		return 0
	}
	n, _ := strconv.Atoi(g.serf.Stats()["intent_queue"])
	return n
}

// FinalAdvertiseAddr implements [memberlist.Transport].
func (g *gossip) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return g.m.advertise.Addr().AsSlice(), int(g.m.advertise.Port()), nil
}

// PacketCh implements [memberlist.Transport].
func (g *gossip) PacketCh() <-chan *memberlist.Packet { return g.packets }

// StreamCh implements [memberlist.Transport].
func (g *gossip) StreamCh() <-chan net.Conn { return g.streams }

// Shutdown implements [memberlist.Transport].
func (g *gossip) Shutdown() error {
	select {
	case <-g.closed:
	default:
		close(g.closed)
	}
	return nil
}

// WriteTo implements [memberlist.Transport].
func (g *gossip) WriteTo(b []byte, addr string) (time.Time, error) {
	return g.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements [memberlist.NodeAwareTransport]. It never waits:
// memberlist's one gossip loop would stand still with it. Packets follow the
// name; the address counts only where it is that of a known member, so that
// no packet can make this node knock at somebody else's door.
func (g *gossip) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	now := time.Now()
	packet := append([]byte{datagramGossip}, b...)
	id, boot, err := parseMemberName(to.Name)
	if err != nil {
		if addr, err := netip.ParseAddrPort(to.Addr); err == nil {
			if l := g.m.links.at(addr); l != nil {
				l.queueDatagram(packet)
				return now, nil
			}
		}
		g.m.count.gossipDropped.Add(1)
		return now, nil
	}
	if l := g.m.links.get(id); l != nil {
		if !g.answered(b, boot, l) {
			l.queueDatagram(packet)
		}
		return now, nil
	}
	addr, ok := g.m.members.addr(id)
	if !ok {
		g.m.count.gossipDropped.Add(1)
		return now, nil
	}
	g.m.links.nudge(id, addr, packet)
	return now, nil
}

// packet takes one datagram of a peer.
func (g *gossip) packet(l *link, b []byte) error {
	if err := g.check.packet(b); err != nil {
		return err
	}
	g.deliver(l, b)
	return nil
}

// DialTimeout implements [memberlist.Transport].
func (g *gossip) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return g.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements [memberlist.NodeAwareTransport].
func (g *gossip) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(g.m.runCtx, timeout)
	defer cancel()
	addr, err := netip.ParseAddrPort(to.Addr)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", to.Addr, err)
	}
	id, _, err := parseMemberName(to.Name)
	if err != nil {
		return nil, err
	}
	l, err := g.m.links.open(ctx, id, addr)
	if err != nil {
		return nil, err
	}
	s, err := l.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	return &gossipConn{g: g, l: l, s: s, head: []byte{streamGossip}}, nil
}

// serve takes an exchange that a peer began. Its first half is read and
// checked before memberlist hears of it.
func (g *gossip) serve(l *link, s *quic.Stream) {
	c := &gossipConn{g: g, l: l, s: s}
	_ = s.SetReadDeadline(time.Now().Add(g.m.cfg.Timing.StreamTimeout))
	if err := c.fill(); err != nil {
		_ = c.Close()
		l.blame(err)
		return
	}
	select {
	case g.streams <- c:
	case <-g.closed:
		_ = c.Close()
	}
}

// gossipLog turns serf's lines into records. Serf reports as an error what is
// an ordinary day on a network, so nothing is above the info level.
type gossipLog struct{ log *slog.Logger }

func (w gossipLog) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(text, []byte("[ERR] ")); ok {
		level, text = slog.LevelInfo, rest
	}
	w.log.Log(context.Background(), level, "gossip", "text", string(text))
	return len(line), nil
}
