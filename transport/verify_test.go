package transport

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/quic-go/quic-go"
)

// TestLeavingForTooLong looks at a peer that gossip calls leaving and that
// never goes: after a while it is checked like one that failed.
func TestLeavingForTooLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		ms := c.start(c.config(1, 1, 0)).mesh.members
		id, addr := testID(2), netip.MustParseAddrPort("10.0.0.2:7000")
		mb := &member{
			peer:   Peer{ID: id, Boot: 1, Addr: addr, State: Alive},
			claims: map[uint64]claim{1: {id: id, boot: 1, addr: addr, status: serf.StatusLeaving}},
		}
		checked := func() bool {
			ms.mu.Lock()
			defer ms.mu.Unlock()
			if ev, told := ms.decideLocked(id, mb); told {
				t.Errorf("told %v of a peer that is only leaving", ev.Type)
			}
			return mb.checking
		}
		for range 60 {
			if checked() {
				t.Fatal("checked while it may still be leaving")
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if !checked() {
			t.Error("not checked after more than a minute")
		}
	})
}

// forgetful is a member that is reached, keeps its connection alive and does
// not list whoever asks.
func forgetful(conn *quic.Conn) (asked func() int) {
	var (
		mu    sync.Mutex
		count int
	)
	go func() {
		for {
			b, err := conn.ReceiveDatagram(conn.Context())
			if err != nil {
				return
			}
			if t1, ok := parsePing(b[1:]); b[0] == datagramPing && ok {
				now := time.Now().UnixNano()
				_ = conn.SendDatagram(appendPong(nil, t1, now, now))
			}
		}
	}()
	go func() {
		for {
			s, err := conn.AcceptStream(conn.Context())
			if err != nil {
				return
			}
			var kind [1]byte
			_ = readHead(s, kind[:])
			if kind[0] != streamControl {
				s.CancelRead(0)
				s.CancelWrite(0)
				continue
			}
			mu.Lock()
			count++
			mu.Unlock()
			_, _ = s.Write(appendAnswer(nil, statusOK, 0, []byte{0}))
			_ = s.Close()
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex // guards the following
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAuditFindsOutWhoIsForgotten has a member not list the node that lists
// it. The node must notice, say so and join it again.
func TestAuditFindsOutWhoIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		cfg := c.config(1, 1, 0)
		// Nothing but the audit may look at the peer or exchange with it.
		cfg.Timing.ProbeInterval, cfg.Timing.PushPullInterval = time.Hour, time.Hour
		var log logged
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		n := c.start(cfg)
		id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
		conn := newRogue(t, w, 1).greeted(n, id, hello{boot: 1, name: "x"})
		asked := forgetful(conn)
		_ = conn.SendDatagram(append([]byte{datagramGossip}, aliveMessage(memberName(testID(66), 1), []byte{10, 9, 9, 1}, 9999, map[string]string{tagName: "x", tagSite: "site-0"})...))
		n.waitState(testID(66), Alive, 3*time.Second)
		waitUntil(t, 2*cfg.Timing.ReconcileInterval, "the audit speaks up", func() bool { return strings.Contains(log.String(), "does not list this node") })
		if got := asked(); got < 2 {
			t.Errorf("spoke up after %d questions, want two: the first may be too early", got)
		}
	})
}

// TestSourcesAreVerifiedUnderLoad opens more connections at once than
// handshakes are allowed: those above must first prove where they are, and get
// in all the same.
func TestSourcesAreVerifiedUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		cfg := c.config(1, 1, 0)
		cfg.Limits.Handshakes = 2
		n := c.start(cfg)
		id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
		r := newRogue(t, w, 1)
		var retries atomic.Int64 // packets that tell a client to come again with a token
		w.tapPackets(func(from netip.AddrPort, b []byte) {
			if from == n.addr && b[0]&0xf0 == 0xf0 { // a long head of type Retry, in version 1
				retries.Add(1)
			}
		})
		connect := func(what string, want bool) {
			before := retries.Load()
			if _, err := r.dial(n, id.tlsConfig()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if got := retries.Load() > before; got != want {
				t.Errorf("%s: had to prove its address: %v, want %v", what, got, want)
			}
		}
		for range cfg.Limits.Handshakes {
			connect("within the limit", false)
		}
		connect("above the limit", true)
		connect("further above it", true)
		time.Sleep(5 * time.Second)
		connect("after the rush", false)
	})
}

// TestSeedByName joins by a name instead of an address.
func TestSeedByName(t *testing.T) {
	c := newCluster(t, nil)
	a := c.start(c.config(1, 1, 0))
	cfg := c.config(2, 1, 0)
	_, port, _ := strings.Cut(a.addr.String(), ":")
	// A name with spaces in it fails without asking anybody.
	cfg.Seeds = []string{"no such host:" + port, "localhost:" + port}
	b := c.start(cfg)
	b.waitAlive(1, detectionGoal)
	if _, err := b.mesh.Join(t.Context(), "no such host:"+port); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("a name that nobody has: got error %v, want one that says which", err)
	}
}
