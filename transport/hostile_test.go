package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/testutils/simnet"
)

// rogue is an attacker with a socket on the simulated network.
type rogue struct {
	t    *testing.T
	quic *quic.Transport
}

func newRogue(t *testing.T, w *wire, host byte) *rogue {
	t.Helper()
	socket := simnet.NewBlockingSimConn(&net.UDPAddr{IP: net.IPv4(10, 9, 9, host).To4(), Port: 9999}, w)
	r := &rogue{t: t, quic: &quic.Transport{Conn: socket}}
	t.Cleanup(func() {
		_ = r.quic.Close()
		_ = socket.Close()
	})
	return r
}

// dial connects to a node and returns what it got: a connection, or the error
// of the handshake.
func (r *rogue) dial(to *testNode, conf *tls.Config) (*quic.Conn, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
	defer cancel()
	return r.quic.Dial(ctx, netUDPAddr(to.addr), conf, &quic.Config{EnableDatagrams: true, MaxIdleTimeout: 20 * time.Second, KeepAlivePeriod: 2 * time.Second})
}

// greeted connects with a good certificate and says hello.
func (r *rogue) greeted(to *testNode, id *Identity, h hello) *quic.Conn {
	r.t.Helper()
	conn, err := r.dial(to, id.tlsConfig())
	if err != nil {
		r.t.Fatalf("dial: %v", err)
	}
	s, err := conn.OpenStreamSync(r.t.Context())
	if err != nil {
		r.t.Fatalf("hello: %v", err)
	}
	_, _ = s.Write(appendHello([]byte{streamHello}, h))
	_ = s.Close()
	if _, err := readHello(s); err != nil {
		r.t.Fatalf("answer to hello: %v", err)
	}
	return conn
}

// TestStrangersGetNothing tries everything but a certificate of the cluster.
// Whatever a stranger manages to do, no stream and no datagram may come back.
func TestStrangersGetNothing(t *testing.T) {
	now := time.Now
	for name, conf := range map[string]func(c *cluster) *tls.Config{
		"another secret": func(*cluster) *tls.Config {
			id, _ := IdentityFromSecret(NewSecret(), testKey(2), "x", "site-0", now())
			return id.tlsConfig()
		},
		"no certificate": func(*cluster) *tls.Config {
			return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}
		},
		"another protocol": func(c *cluster) *tls.Config {
			id, _ := IdentityFromSecret(c.secret, testKey(2), "x", "site-0", now())
			conf := id.tlsConfig()
			conf.NextProtos, conf.VerifyConnection = []string{"h3"}, nil
			return conf
		},
		"no protocol": func(c *cluster) *tls.Config {
			id, _ := IdentityFromSecret(c.secret, testKey(2), "x", "site-0", now())
			conf := id.tlsConfig()
			conf.NextProtos, conf.VerifyConnection = nil, nil
			return conf
		},
		"expired certificate": func(c *cluster) *tls.Config {
			id, _ := IdentityFromSecret(c.secret, testKey(2), "x", "site-0", now().Add(-30*24*time.Hour))
			leaf := id.cur.leaf
			conf := id.tlsConfig()
			conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &leaf, nil }
			return conf
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWire(lanDelay)
				c := newCluster(t, w)
				n := c.start(c.config(1, 1, 0))
				conf := conf(c)
				conf.InsecureSkipVerify = true
				if conf.VerifyConnection != nil {
					conf.VerifyConnection = nil // the stranger takes any server
				}
				conn, err := newRogue(t, w, 1).dial(n, conf)
				if err == nil { // TLS 1.3 lets a client believe that it is in
					expectNothing(t, conn)
				}
				waitUntil(t, 5*time.Second, "counted", func() bool { return n.mesh.Stats().RefusedHandshakes == 1 })
				if n.mesh.Stats().Links != 0 || len(n.mesh.Members()) != 0 {
					t.Error("the stranger is a peer")
				}
			})
		})
	}
}

// expectNothing asks on a connection for all there is and fails if any byte
// comes back.
func expectNothing(t *testing.T, conn *quic.Conn) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if b, err := conn.ReceiveDatagram(t.Context()); err == nil {
			t.Errorf("got a datagram %x", b)
		}
	})
	if s, err := conn.OpenStream(); err == nil {
		_, _ = s.Write(appendHello([]byte{streamHello}, hello{boot: 1, name: "x"}))
		_ = s.Close()
		if n, err := s.Read(make([]byte, 1)); n > 0 {
			t.Errorf("got a byte (%v)", err)
		}
	}
	<-conn.Context().Done()
}

// TestGarbagePackets throws random UDP packets at a mesh.
func TestGarbagePackets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		ns := newCluster(t, w).nodes(2)
		socket := simnet.NewBlockingSimConn(&net.UDPAddr{IP: net.IPv4(10, 9, 9, 9).To4(), Port: 9999}, w)
		defer socket.Close()
		b := make([]byte, 1400)
		for i := range 2000 {
			rand.Read(b)
			if i%2 == 0 {
				b[0] = 0xc0 | b[0]&0x0f // looks like the start of a handshake
				copy(b[1:], []byte{0, 0, 0, 1, 8})
			}
			_, _ = socket.WriteTo(b[:1+i%1400], netUDPAddr(ns[0].addr))
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(15 * time.Second)
		if got := ns[0].eventsOf(ns[1].id); !slices.Equal(got, []EventType{Join}) {
			t.Errorf("events: got %v, want one join", got)
		}
	})
}

// TestNonsenseIsCutOff has a peer with a good certificate send nonsense of
// every kind. It is counted, changes nothing, and after a while the peer is
// cut off.
func TestNonsenseIsCutOff(t *testing.T) {
	call := func(method byte, n uint32, body string) []byte {
		b := []byte{streamCall, method, 0, 0, 1, 0}
		return append(binary.BigEndian.AppendUint32(b, n), body...)
	}
	for name, send := range map[string]func(c *quic.Conn){
		"unknown stream":       func(c *quic.Conn) { biStream(c, []byte{77, 1, 2, 3}) },
		"second hello":         func(c *quic.Conn) { biStream(c, appendHello([]byte{streamHello}, hello{name: "x"})) },
		"giant call":           func(c *quic.Conn) { biStream(c, call(0, 1<<31, "")) },
		"call too short":       func(c *quic.Conn) { biStream(c, call(0, 10, "abc")) },
		"call with more":       func(c *quic.Conn) { biStream(c, call(0, 1, "abc")) },
		"cut head":             func(c *quic.Conn) { biStream(c, []byte{streamCall, 1}) },
		"unknown control":      func(c *quic.Conn) { biStream(c, append([]byte{streamControl, 99}, make([]byte, 8)...)) },
		"unknown one-way":      func(c *quic.Conn) { uniStream(c, []byte{streamCall}) },
		"giant message":        func(c *quic.Conn) { uniStream(c, []byte{streamMessage, 1, 0xff, 0xff, 0xff}) },
		"cut message":          func(c *quic.Conn) { uniStream(c, []byte{streamMessage, 1, 0, 0, 9, 1}) },
		"giant exchange":       func(c *quic.Conn) { biStream(c, []byte{streamGossip, 0xff, 0xff, 0xff, 0xff}) },
		"exchange of nonsense": func(c *quic.Conn) { biStream(c, []byte{streamGossip, 0, 0, 0, 3, mlPushPull, 0xdf, 0xff}) },
		"msgpack bomb": func(c *quic.Conn) {
			biStream(c, []byte{streamGossip, 0, 0, 0, 7, mlPushPull, 0x81, 0xa1, 'N', 0xdd, 0xff, 0xff})
		},
		"empty datagram":     func(c *quic.Conn) { _ = c.SendDatagram(nil) },
		"unknown datagram":   func(c *quic.Conn) { _ = c.SendDatagram([]byte{99}) },
		"ping too long":      func(c *quic.Conn) { _ = c.SendDatagram(make([]byte, 100)) },
		"gossip of nonsense": func(c *quic.Conn) { _ = c.SendDatagram([]byte{datagramGossip, mlAlive, 0xc1}) },
		"user event":         func(c *quic.Conn) { _ = c.SendDatagram([]byte{datagramGossip, mlUser, 3, 0x80}) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWire(lanDelay)
				c := newCluster(t, w)
				cfg := c.config(1, 1, 0)
				var got collector
				cfg.OnMessage, cfg.OnCall = got.take, func(context.Context, Peer, uint8, []byte) ([]byte, error) {
					t.Error("nonsense reached the handler")
					return nil, nil
				}
				n := c.start(cfg)
				id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
				r := newRogue(t, w, 1)
				conn := r.greeted(n, id, hello{boot: 1, name: "rogue"})
				send(conn)
				waitUntil(t, 10*time.Second, "nonsense is counted", func() bool { return n.mesh.Stats().MalformedFrames == 1 })
				if conn.Context().Err() != nil {
					t.Fatal("cut off for one mistake")
				}
				for range strikeLimit {
					send(conn)
					time.Sleep(20 * time.Millisecond)
				}
				select {
				case <-conn.Context().Done():
				case <-time.After(5 * time.Second):
					t.Fatal("not cut off")
				}
				again, err := r.dial(n, id.tlsConfig())
				if err == nil {
					s, _ := again.OpenStream()
					_, _ = s.Write(appendHello([]byte{streamHello}, hello{boot: 1, name: "rogue"}))
					_ = s.Close()
					<-again.Context().Done()
					err = context.Cause(again.Context())
				}
				if app, ok := errors.AsType[*quic.ApplicationError](err); !ok || app.ErrorCode != closeMisbehaved {
					t.Errorf("second try: got %v, want a refusal", err)
				}
				if len(n.mesh.Members()) != 0 || got.count() != 0 {
					t.Error("nonsense changed something")
				}
			})
		})
	}
}

func biStream(c *quic.Conn, b []byte) {
	if s, err := c.OpenStream(); err == nil {
		_, _ = s.Write(b)
		_ = s.Close()
	}
}

func uniStream(c *quic.Conn, b []byte) {
	if s, err := c.OpenUniStream(); err == nil {
		_, _ = s.Write(b)
		_ = s.Close()
	}
}

// TestClaimsAreNotBelieved gossips about members that do not exist, that have
// another site than their certificate says, and about a later incarnation of
// a living one.
func TestClaimsAreNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		ns := c.nodes(3)
		victim := ns[1]
		id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
		conn := newRogue(t, w, 1).greeted(ns[0], id, hello{boot: 1, name: "rogue"})
		claim := func(id PeerID, boot uint64, site string, host byte) {
			_ = conn.SendDatagram(append([]byte{datagramGossip}, aliveMessage(memberName(id, boot), net.IPv4(10, 0, 0, host).To4(), 7000, map[string]string{tagName: "x", tagSite: site})...))
		}
		for range 20 {
			claim(testID(77), 1, "site-1", 77)   // nobody is there
			claim(testID(66), 1, "site-1", 3)    // the rogue, at another node's address
			claim(victim.id, 9, "site-0", 77)    // a successor that nobody has seen
			claim(victim.id, 1, "site-1", 2)     // another site
			claim(PeerID{}, 1, "site-1", 2)      // no identity
			claim(ns[0].id, 9, "site-1", 77)     // the node itself, later
			claim(testID(78), 1, "bad site!", 2) // a site that cannot be
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		for _, n := range []*testNode{ns[0], ns[2]} {
			if got := n.countAlive(); got != 2 {
				t.Errorf("%s sees %d alive, want 2: %+v", n.mesh.cfg.Name, got, n.mesh.Members())
			}
			if p := n.peer(victim.id); p.Boot != 1 || p.Site != "site-0" || p.State != Alive {
				t.Errorf("the victim became %+v", p)
			}
			if got := n.eventsOf(victim.id); !slices.Equal(got, []EventType{Join}) {
				t.Errorf("events about the victim: %v", got)
			}
		}
		if ns[0].mesh.Stats().RefusedPeers == 0 {
			t.Error("no claim was counted as refused")
		}
	})
}

// TestFloodOfClaims gossips about members that do not exist, far more
// than are checked at once. True members must not suffer.
func TestFloodOfClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		ns := c.nodes(2)
		id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
		conn := newRogue(t, w, 1).greeted(ns[0], id, hello{boot: 1, name: "rogue"})
		for i := range 500 {
			fake := PeerID{0: 200, 1: byte(i), 2: byte(i >> 8)}
			_ = conn.SendDatagram(append([]byte{datagramGossip}, aliveMessage(memberName(fake, 1), net.IPv4(10, 7, byte(i>>8), byte(i)).To4(), 7000, map[string]string{tagName: "x", tagSite: "s"})...))
			if i%100 == 99 {
				time.Sleep(100 * time.Millisecond)
			}
			ns[0].mesh.members.mu.Lock()
			if trying := ns[0].mesh.members.trying; trying > maxTrying {
				t.Errorf("%d claims are checked at once, at most %d may", trying, maxTrying)
			}
			ns[0].mesh.members.mu.Unlock()
		}
		time.Sleep(10 * time.Second)
		if got := ns[0].eventsOf(ns[1].id); !slices.Equal(got, []EventType{Join}) {
			t.Errorf("events about the true member: %v", got)
		}
		if got := ns[0].countAlive(); got != 1 {
			t.Errorf("%d alive, want 1", got)
		}
	})
}

// aliveMessage writes what memberlist gossips about a member.
func aliveMessage(name string, ip net.IP, port uint16, tags map[string]string) []byte {
	var b bytes.Buffer
	str := func(s string) {
		if len(s) < 32 {
			b.WriteByte(0xa0 | byte(len(s)))
		} else {
			b.WriteByte(0xda)
			_ = binary.Write(&b, binary.BigEndian, uint16(len(s)))
		}
		b.WriteString(s)
	}
	meta := []byte{serfTagsMagic, 0x80 | byte(len(tags))}
	for k, v := range tags {
		meta = append(meta, 0xa0|byte(len(k)))
		meta = append(meta, k...)
		meta = append(meta, 0xa0|byte(len(v)))
		meta = append(meta, v...)
	}
	b.Write([]byte{mlAlive, 0x86})
	str("Incarnation")
	b.WriteByte(100)
	str("Node")
	str(name)
	str("Addr")
	str(string(ip))
	str("Port")
	b.WriteByte(0xcd)
	_ = binary.Write(&b, binary.BigEndian, port)
	str("Meta")
	str(string(meta))
	str("Vsn")
	str(string([]byte{1, 5, 2, 2, 5, 5}))
	return b.Bytes()
}

// TestNoAnswerIsNoNonsense has a peer take exchanges and close them unanswered,
// as an overloaded or ending one does. That must not cut it off.
func TestNoAnswerIsNoNonsense(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		n := c.start(c.config(1, 1, 0))
		conn := newRogue(t, w, 1).greeted(n, mustIdentity(t, c.secret, testKey(66), "site-0", time.Now()), hello{boot: 1, name: "busy"})
		go func() {
			for {
				s, err := conn.AcceptStream(conn.Context())
				if err != nil {
					return
				}
				s.CancelRead(0)
				_ = s.Close()
			}
		}()
		waitUntil(t, time.Second, "connected", func() bool { return n.mesh.links.get(testID(66)) != nil })
		l := n.mesh.links.get(testID(66))
		for range strikeLimit {
			if err := n.mesh.gossip.join(t.Context(), l); err == nil {
				t.Fatal("an exchange without an answer succeeded")
			}
		}
		if got := n.mesh.Stats().MalformedFrames; got != 0 || conn.Context().Err() != nil {
			t.Errorf("%d counted as nonsense, cut off: %v", got, conn.Context().Err())
		}
	})
}

// TestSilentConnectionsDoNotPile connects with a good certificate and says
// nothing.
func TestSilentConnectionsDoNotPile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		n := c.start(c.config(1, 1, 0))
		id := mustIdentity(t, c.secret, testKey(66), "site-0", time.Now())
		conn, err := newRogue(t, w, 1).dial(n, id.tlsConfig())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-conn.Context().Done()
		if took := time.Since(began); took > LAN().Timing.DialTimeout+time.Second {
			t.Errorf("kept for %v", took)
		}
	})
}
