package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if seed := os.Getenv(childSeed); seed != "" {
		if err := runChild(seed, os.Getenv(childSecret)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Memberlist finishes its last probe after it was shut down; nothing
	// can hurry it, and it takes a few seconds.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// wire is a simulated network: every packet takes delay, is lost with
// probability loss, or stops at a cut.
type wire struct {
	mu    sync.Mutex // guards the following
	nodes map[netip.AddrPort]simnet.PacketReceiver
	delay time.Duration
	loss  float64
	room  int // bytes of the largest UDP payload that arrives; 0: any
	rng   *rand.Rand
	cut   func(from, to netip.AddrPort) bool
	tap   func(p simnet.Packet)
}

func newWire(delay time.Duration) *wire {
	return &wire{nodes: map[netip.AddrPort]simnet.PacketReceiver{}, delay: delay, rng: rand.New(rand.NewPCG(1, 2))}
}

func (w *wire) AddNode(addr net.Addr, r simnet.PacketReceiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[mustAddrPort(addr)] = r
}

func (w *wire) SendPacket(p simnet.Packet) error {
	from, to := mustAddrPort(p.From), mustAddrPort(p.To)
	w.mu.Lock()
	r := w.nodes[to]
	lost := r == nil || (w.cut != nil && w.cut(from, to)) || (w.loss > 0 && w.rng.Float64() < w.loss) || (w.room > 0 && len(p.Data) > w.room)
	tap, delay := w.tap, w.delay
	w.mu.Unlock()
	if tap != nil {
		tap(p)
	}
	if !lost {
		time.AfterFunc(delay, func() { r.RecvPacket(p) })
	}
	return nil
}

// isolate cuts the given nodes off from all others, and from each other.
// Without nodes it heals everything.
func (w *wire) isolate(ns ...*testNode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	off := map[netip.AddrPort]bool{}
	for _, n := range ns {
		off[n.addr] = true
	}
	w.cut = func(from, to netip.AddrPort) bool { return off[from] || off[to] }
}

// block cuts one direction between two nodes.
func (w *wire) block(from, to *testNode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = func(f, t netip.AddrPort) bool { return f == from.addr && t == to.addr }
}

// tapPackets shows f every packet from now on, from several goroutines at once.
func (w *wire) tapPackets(f func(from netip.AddrPort, b []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tap = func(p simnet.Packet) { f(mustAddrPort(p.From), p.Data) }
}

func (w *wire) setLoss(p float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loss = p
}

func mustAddrPort(a net.Addr) netip.AddrPort {
	ap, err := addrPortOf(a)
	if err != nil {
		panic(err)
	}
	return ap
}

// testNode is a running mesh and what it told.
type testNode struct {
	t      *testing.T
	mesh   *Mesh
	id     PeerID
	addr   netip.AddrPort
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex // guards the following
	events []Event
	told   []time.Time // when the events came
}

// cluster makes nodes that share a secret.
type cluster struct {
	t      *testing.T
	wire   *wire // nil: loopback
	secret Secret
	timing func() Config
	made   func(*Mesh) // what start does to a node before it runs; nil: nothing
}

func newCluster(t *testing.T, w *wire) *cluster {
	if w != nil {
		// Serf's last goroutines end with their timers, and the time of
		// a bubble stands still once the test has returned.
		t.Cleanup(func() { time.Sleep(5 * time.Minute) })
	}
	return &cluster{t: t, wire: w, secret: NewSecret(), timing: LAN}
}

func testKey(i int) []byte { return []byte{byte(i)} }

func testID(i int) PeerID { return IDOf(testKey(i)) }

// config is the configuration of node i in its given start; port 0 is its
// usual one.
func (c *cluster) config(i int, boot uint64, port uint16) Config {
	c.t.Helper()
	site := fmt.Sprintf("site-%d", i%2)
	id, err := IdentityFromSecret(c.secret, testKey(i), fmt.Sprintf("node-%d", i), site, time.Now())
	if err != nil {
		c.t.Fatalf("identity: %v", err)
	}
	cfg := c.timing()
	cfg.ID, cfg.Boot, cfg.Name, cfg.Site, cfg.Identity = testID(i), boot, fmt.Sprintf("node-%d", i), site, id
	cfg.Logger = slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: testLevel})).With("at", cfg.Name)
	if c.wire == nil {
		cfg.Listen = "127.0.0.1:0"
		return cfg
	}
	if port == 0 {
		port = 7000
	}
	cfg.PacketConn = c.conn(i, port)
	return cfg
}

// conn is a socket at the address of node i.
func (c *cluster) conn(i int, port uint16) net.PacketConn {
	return simSocket{simnet.NewBlockingSimConn(&net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(i)).To4(), Port: int(port)}, c.wire)}
}

// simSocket fails as sockets do once its deadline has passed.
type simSocket struct{ net.PacketConn }

func (s simSocket) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	if n, from, err = s.PacketConn.ReadFrom(b); errors.Is(err, simnet.ErrDeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	return n, from, err
}

// start runs a node with cfg until the test ends or it is stopped.
func (c *cluster) start(cfg Config) *testNode {
	c.t.Helper()
	n := &testNode{t: c.t, id: cfg.ID, done: make(chan error, 1)}
	if cfg.OnEvent == nil {
		cfg.OnEvent = n.record
	}
	mesh, err := New(cfg)
	if err != nil {
		c.t.Fatalf("New: %v", err)
	}
	n.mesh, n.addr = mesh, mesh.Addr()
	if c.made != nil {
		c.made(mesh)
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	go func() { n.done <- mesh.Run(ctx) }()
	c.t.Cleanup(n.kill)
	return n
}

// nodes starts n nodes that join the first one, and waits until all know all.
func (c *cluster) nodes(n int) []*testNode {
	c.t.Helper()
	var ns []*testNode
	for i := range n {
		cfg := c.config(i+1, 1, 0)
		if i > 0 {
			cfg.Seeds = []string{ns[0].addr.String()}
		}
		ns = append(ns, c.start(cfg))
	}
	for _, nd := range ns {
		nd.waitAlive(n-1, 15*time.Second)
	}
	return ns
}

func (n *testNode) record(ev Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, ev)
	n.told = append(n.told, time.Now())
}

// eventsOf returns what was told about a peer, in order.
func (n *testNode) eventsOf(id PeerID) []EventType {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ts []EventType
	for _, ev := range n.events {
		if ev.Peer.ID == id && ev.Type != Update {
			ts = append(ts, ev.Type)
		}
	}
	return ts
}

// toldOf returns when the last event of that type about a peer came.
func (n *testNode) toldOf(id PeerID, typ EventType) (at time.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, ev := range n.events {
		if ev.Peer.ID == id && ev.Type == typ {
			at, ok = n.told[i], true
		}
	}
	return at, ok
}

func (n *testNode) peer(id PeerID) Peer {
	for _, p := range n.mesh.Members() {
		if p.ID == id {
			return p
		}
	}
	return Peer{}
}

func (n *testNode) countAlive() int {
	count := 0
	for _, p := range n.mesh.Members() {
		if p.State == Alive {
			count++
		}
	}
	return count
}

// waitUntil waits for cond, in the time of the bubble or the real one.
func waitUntil(t *testing.T, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !cond() {
		if time.Since(began) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

func (n *testNode) waitAlive(want int, limit time.Duration) time.Duration {
	n.t.Helper()
	return waitUntil(n.t, limit, fmt.Sprintf("%s sees %d living peers", n.mesh.cfg.Name, want), func() bool { return n.countAlive() == want })
}

func (n *testNode) waitState(id PeerID, want State, limit time.Duration) time.Duration {
	n.t.Helper()
	return waitUntil(n.t, limit, fmt.Sprintf("%s sees %s as %s", n.mesh.cfg.Name, id.Short(), want), func() bool { return n.peer(id).State == want })
}

// stop ends a node gracefully and returns what Run returned.
func (n *testNode) stop() error {
	n.cancel()
	err := <-n.done
	n.done <- err
	return err
}

// kill ends a node without a word to anybody, as kill -9 would: its socket
// goes first.
func (n *testNode) kill() {
	_ = n.mesh.socket.Close()
	n.mesh.stop(errKilled)
	err := <-n.done
	n.done <- err
	n.cancel()
}

var errKilled = fmt.Errorf("killed by the test")

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if raceEnabled {
		// All timers of a bubble share one thread of the race detector,
		// and go1.26 crashes when two of them fire on two processors at
		// once, as QUIC's do. Races are found on one processor as well.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}

// testLevel is lowered by hand to see all that a test does.
const testLevel = slog.LevelInfo
