package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestSimultaneousDial has two nodes dial each other in the same instant, many
// times: each pair must end with one connection, the same one at both ends.
func TestSimultaneousDial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(10 * time.Millisecond)
		c := newCluster(t, w)
		var ns []*testNode
		for i := range 5 {
			ns = append(ns, c.start(c.config(i+1, 1, 0)))
		}
		time.Sleep(10 * time.Millisecond)
		var wg sync.WaitGroup
		for _, a := range ns {
			for _, b := range ns {
				if a == b {
					continue
				}
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					if l, err := a.mesh.links.open(ctx, b.id, b.addr); err != nil || l.id != b.id {
						t.Errorf("open: %v", err)
					}
				})
			}
		}
		wg.Wait()
		time.Sleep(retireGrace + time.Second)
		for _, a := range ns {
			if got := a.mesh.Stats().Links; got != len(ns)-1 {
				t.Errorf("node %s has %d links, want %d", a.id.Short(), got, len(ns)-1)
			}
			for _, b := range ns {
				if a == b {
					continue
				}
				l, r := a.mesh.links.get(b.id), b.mesh.links.get(a.id)
				if l == nil || r == nil || l.dead() || r.dead() || l.dialled == r.dialled {
					t.Errorf("%s and %s do not share one connection", a.id.Short(), b.id.Short())
					continue
				}
				if lower := string(a.id[:]) < string(b.id[:]); l.dialled != lower {
					t.Errorf("%s to %s: the connection dialled by the higher id was kept", a.id.Short(), b.id.Short())
				}
			}
		}
	})
}

// TestCallsSurviveADuplicate has calls under way while a second connection
// takes the place of the first.
func TestCallsSurviveADuplicate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := pairOf(t, newWire(10*time.Millisecond), func(c *Config) {
			c.OnCall = func(ctx context.Context, _ Peer, _ uint8, _ []byte) ([]byte, error) {
				time.Sleep(300 * time.Millisecond)
				return []byte("done"), nil
			}
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := a.mesh.Call(t.Context(), b.id, 0, nil); err != nil {
				t.Errorf("call: %v", err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		before := a.mesh.links.get(b.id)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if l, err := a.mesh.links.redial(ctx, b.id, b.addr); err != nil || l == before {
			t.Fatalf("redial: %v", err)
		}
		wg.Wait()
	})
}

func TestChoose(t *testing.T) {
	w := newWire(lanDelay)
	bubble(t, func(t *testing.T) {
		a, b := pairOf(t, w, nil)
		live := a.mesh.links.get(b.id).conn // any connection that is not dead
		mk := func(boot uint64, instance byte, dialled bool) *link {
			return a.mesh.newLink(live, b.id, "site-0", a.mesh.says(), hello{boot: boot, instance: [16]byte{instance}}, dialled)
		}
		silent := mk(1, 1, true)
		silent.pings.sent(1, a.mesh.now()-silenceLimit)
		for name, tc := range map[string]struct {
			old, l   *link
			keepsNew bool
		}{
			"later start":                {mk(1, 1, true), mk(2, 2, false), true},
			"earlier start":              {mk(2, 2, false), mk(1, 1, true), false},
			"copy of the data directory": {mk(1, 1, false), mk(1, 2, true), false},
			"lower id dialled":           {mk(1, 1, false), mk(1, 1, true), true},
			"higher id dialled":          {mk(1, 1, true), mk(1, 1, false), false},
			"dialled again":              {mk(1, 1, true), mk(1, 1, true), true},
			"the old one is silent":      {silent, mk(1, 1, false), true},
		} {
			if keep, drop, _ := choose(tc.old, tc.l); (keep == tc.l) != tc.keepsNew || keep == drop {
				t.Errorf("%s: kept the new one: %v, want %v", name, keep == tc.l, tc.keepsNew)
			}
		}
	})
}

// TestLinkLimit gives a node fewer connections than there are peers.
func TestLinkLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		cfg := c.config(1, 1, 0)
		cfg.Limits.Links = 3
		hub := c.start(cfg)
		var ns []*testNode
		for i := range 6 {
			cfg := c.config(i+2, 1, 0)
			cfg.Seeds = []string{hub.addr.String()}
			cfg.OnCall = handler(nil)
			ns = append(ns, c.start(cfg))
		}
		hub.waitAlive(6, 30*time.Second)
		for range 3 {
			for _, n := range ns {
				if _, err := hub.mesh.Call(t.Context(), n.id, methodEcho, nil); err != nil {
					t.Errorf("call: %v", err)
				}
				if got := hub.mesh.Stats().Links; got > 3 {
					t.Fatalf("%d links, at most 3 are allowed", got)
				}
			}
		}
		time.Sleep(time.Minute)
		for _, n := range ns {
			if got := hub.eventsOf(n.id); !slices.Equal(got, []EventType{Join}) {
				t.Errorf("closing a connection for want of room: events %v", got)
			}
		}
	})
}

// TestPingsGoTogether: however far apart peers came, a node at rest pings all of them at one moment, as often as ever.
func TestPingsGoTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		ns := []*testNode{c.start(c.config(1, 1, 0))}
		for i := range 3 {
			time.Sleep(phase(t))
			cfg := c.config(i+2, 1, 0)
			cfg.Seeds = []string{ns[0].addr.String()}
			ns = append(ns, c.start(cfg))
		}
		ns[0].waitAlive(3, 30*time.Second)
		interval := LAN().Timing.PingInterval
		time.Sleep(2 * interval)
		pings := func() (sent int, moments map[time.Duration]bool) {
			moments = map[time.Duration]bool{}
			for _, n := range ns[1:] {
				l := ns[0].mesh.links.get(n.id)
				l.pingMu.Lock()
				sent += l.pings.n
				moments[l.pings.lastOut] = true
				l.pingMu.Unlock()
			}
			return sent, moments
		}
		before, _ := pings()
		time.Sleep(10 * interval)
		sent, moments := pings()
		if len(moments) != 1 {
			t.Errorf("the last pings of three links went at %v, want one moment", moments)
		}
		if n := sent - before; n != 30 {
			t.Errorf("%d pings on three links in ten intervals, want 30", n)
		}
	})
}

// TestRestartInPlace restarts a node on its old port. The stateless reset must
// tell the others of it long before their connections time out.
func TestRestartInPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		ns := c.nodes(2)
		a, b := ns[0], ns[1]
		old := a.mesh.links.get(b.id)
		b.kill()
		again := c.start(c.config(2, 2, 0))
		began := time.Now()
		<-old.conn.Context().Done()
		if took := time.Since(began); took > LAN().Timing.PingInterval+pingRetry {
			t.Errorf("the old connection lived on for %v", took)
		}
		if _, err := again.mesh.Join(t.Context(), a.addr.String()); err != nil {
			t.Fatalf("join: %v", err)
		}
		waitUntil(t, 3*time.Second, "back", func() bool { p := a.peer(b.id); return p.State == Alive && p.Boot == 2 })
		if got, want := a.eventsOf(b.id), []EventType{Join, Rejoin}; !slices.Equal(got, want) {
			t.Errorf("events: got %v, want %v", got, want)
		}
	})
}

func TestRememberedPeers(t *testing.T) {
	dir := t.TempDir()
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		a := c.start(c.config(1, 1, 0))
		cfg := c.config(2, 1, 0)
		cfg.DataDir, cfg.Seeds = dir, []string{a.addr.String()}
		b := c.start(cfg)
		b.waitAlive(1, 5*time.Second)
		time.Sleep(2 * LAN().Timing.RetryInterval)
		b.kill()

		cfg = c.config(2, 2, 7001)
		cfg.DataDir = dir // and no seed
		again := c.start(cfg)
		again.waitAlive(1, detectionGoal)
	})
}

func TestRunTwiceAndClose(t *testing.T) {
	c := newCluster(t, nil)
	m, err := New(c.config(1, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx); err != nil {
		t.Errorf("Run under an ended context: %v", err)
	}
	if err := m.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("second Run: got %v, want ErrClosed", err)
	}
	if _, err := m.Call(t.Context(), testID(2), 0, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("call after the end: %v", err)
	}
	idle, err := New(c.config(1, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	_ = fmt.Sprint(idle.Stats(), idle.Members())
	idle.SetReady(true)
	idle.Send(testID(2), 0, 0, nil)
	if _, err := idle.Call(t.Context(), testID(2), 0, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("call before Run: %v", err)
	}
	if err := errors.Join(idle.Close(), idle.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestConnectedPeersAreAdopted connects two nodes of which gossip says nothing
// to each other, as when its news was lost.
func TestConnectedPeersAreAdopted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		a, b := c.start(c.config(1, 1, 0)), c.start(c.config(2, 1, 0))
		time.Sleep(time.Second)
		if _, err := a.mesh.links.open(t.Context(), b.id, b.addr); err != nil {
			t.Fatal(err)
		}
		a.waitAlive(1, detectionGoal)
		b.waitAlive(1, detectionGoal)
	})
}
