package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const lanDelay = 2 * time.Millisecond

// detectionGoal is how soon everybody must know of a crash, and how soon a
// node must be back after a restart or a cut.
const detectionGoal = 10 * time.Second

// phase returns a random moment within the longest of the LAN intervals, so
// that what is measured does not depend on when timers happen to fire.
func phase(t *testing.T) time.Duration {
	t.Helper()
	d := rand.N(LAN().Timing.RetryInterval)
	t.Logf("phase %v", d)
	return d
}

func TestJoinAndMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		ns := c.nodes(3)
		got := ns[2].peer(ns[1].id)
		want := Peer{ID: ns[1].id, Name: "node-2", Site: "site-0", Boot: 1, Addr: ns[1].addr, State: Alive}
		if got != want {
			t.Errorf("peer: got %+v, want %+v", got, want)
		}
		for _, n := range ns {
			if p := n.peer(n.id); p != (Peer{}) {
				t.Errorf("%s lists itself: %+v", n.mesh.cfg.Name, p)
			}
			for _, o := range ns {
				if o != n && !slices.Equal(n.eventsOf(o.id), []EventType{Join}) {
					t.Errorf("%s about %s: got events %v, want one join", n.mesh.cfg.Name, o.mesh.cfg.Name, n.eventsOf(o.id))
				}
			}
		}
	})
}

// TestLeavingTooLate has memberlist be shut down before the good-bye that it is asked for, as
// where a machine is so busy that nobody waits for that any more: it panics, and the process
// must not.
func TestLeavingTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ns := newCluster(t, newWire(lanDelay)).nodes(2)
		g := ns[1].mesh.gossip
		if err := g.serf.Memberlist().Shutdown(); err != nil {
			t.Fatal(err)
		}
		g.leave()
	})
}

func TestReadyTravels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ns := newCluster(t, newWire(lanDelay)).nodes(3)
		for _, ready := range []bool{true, false} {
			ns[0].mesh.SetReady(ready)
			for _, n := range ns[1:] {
				waitUntil(t, 5*time.Second, "readiness is known", func() bool { return n.peer(ns[0].id).Ready == ready })
			}
		}
	})
}

// TestReadyReachesWhoMissedIt has a node hear nothing while the others tell each other
// that one of them is ready. It hears of that soon, and not with the next full exchange.
func TestReadyReachesWhoMissedIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		ns := newCluster(t, w).nodes(3)
		w.isolate(ns[2])
		ns[0].mesh.SetReady(true)
		time.Sleep(1500 * time.Millisecond)
		if !ns[1].peer(ns[0].id).Ready || ns[2].peer(ns[0].id).Ready {
			t.Fatal("want one who knows and one who does not")
		}
		w.isolate()
		waitUntil(t, 5*time.Second, "readiness is known to who missed it", func() bool { return ns[2].peer(ns[0].id).Ready })
	})
}

func TestLeave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ns := newCluster(t, newWire(lanDelay)).nodes(3)
		if err := ns[1].stop(); err != nil {
			t.Fatalf("Run: got %v, want nil after a graceful end", err)
		}
		for _, n := range []*testNode{ns[0], ns[2]} {
			n.waitState(ns[1].id, Left, 2*time.Second)
			time.Sleep(30 * time.Second)
			if got, want := n.eventsOf(ns[1].id), []EventType{Join, Leave}; !slices.Equal(got, want) {
				t.Errorf("events: got %v, want %v", got, want)
			}
			if n.countAlive() != 1 {
				t.Errorf("alive: got %d, want 1", n.countAlive())
			}
		}
	})
}

// TestCrashIsNoticed kills a node without a word and measures until all others
// know.
func TestCrashIsNoticed(t *testing.T) {
	sizes := []int{2, 3, 6, 12}
	if testing.Short() {
		sizes = sizes[:3]
	}
	for _, n := range sizes {
		t.Run(fmt.Sprintf("%d nodes", n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ns := newCluster(t, newWire(lanDelay)).nodes(n)
				time.Sleep(17*time.Second + phase(t))
				victim := ns[n/2]
				victim.kill()
				killed := time.Now()
				for _, o := range ns {
					if o == victim {
						continue
					}
					o.waitState(victim.id, Failed, detectionGoal-time.Since(killed))
					if o.countAlive() != n-2 {
						t.Errorf("%s sees %d alive, want %d: a living node was given up", o.mesh.cfg.Name, o.countAlive(), n-2)
					}
				}
				t.Logf("all knew after %v", time.Since(killed))
				time.Sleep(time.Second) // for a second event, if there is one
				for _, o := range ns {
					if o == victim {
						continue
					}
					if at, ok := o.toldOf(victim.id, Fail); !ok || at.Sub(killed) > detectionGoal {
						t.Errorf("%s was told of the failure after %v (%v), want within %v", o.mesh.cfg.Name, at.Sub(killed), ok, detectionGoal)
					}
					if got, want := o.eventsOf(victim.id), []EventType{Join, Fail}; !slices.Equal(got, want) {
						t.Errorf("%s was told %v, want %v", o.mesh.cfg.Name, got, want)
					}
				}
			})
		})
	}
}

// TestRestartElsewhere restarts a killed node at once, under the same identity
// and name, on another port.
func TestRestartElsewhere(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Second, 20 * time.Second} {
		t.Run(pause.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCluster(t, newWire(lanDelay))
				ns := c.nodes(4)
				time.Sleep(20 * time.Second)
				ns[3].kill()
				time.Sleep(pause)
				cfg := c.config(4, 2, 7777)
				cfg.Seeds = []string{ns[0].addr.String()}
				began := time.Now()
				back := c.start(cfg)
				for _, n := range ns[:3] {
					waitUntil(t, detectionGoal, "node is back", func() bool {
						p := n.peer(back.id)
						return p.State == Alive && p.Boot == 2 && p.Addr == back.addr
					})
				}
				back.waitAlive(3, detectionGoal)
				t.Logf("back after %v", time.Since(began))
				time.Sleep(time.Minute)
				for _, n := range ns[:3] {
					if p := n.peer(back.id); p.State != Alive || p.Boot != 2 {
						t.Errorf("a minute later: got %+v", p)
					}
					if got := len(n.mesh.gossip.serf.Members()); got != 4 {
						t.Errorf("serf keeps %d members, want 4: the earlier incarnation is still there", got)
					}
				}
			})
		})
	}
}

// TestLongCutHeals cuts a node off for ten minutes, and then everybody from
// everybody.
func TestLongCutHeals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		ns := newCluster(t, w).nodes(3)
		cuts := [][]*testNode{ns[2:], ns}
		if testing.Short() {
			cuts = cuts[:1]
		}
		for _, cut := range cuts {
			w.isolate(cut...)
			time.Sleep(10*time.Minute + phase(t))
			if got := ns[2].countAlive(); got != 0 {
				t.Fatalf("cut off: sees %d alive", got)
			}
			w.isolate()
			healed := time.Now()
			for _, n := range ns {
				n.waitAlive(2, detectionGoal-time.Since(healed))
			}
			t.Logf("cut of %d nodes healed after %v", len(cut), time.Since(healed))
		}
	})
}

// TestOneWayCut stops packets from one node to another: both are reached by
// the third, so nobody may be given up.
func TestOneWayCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		ns := newCluster(t, w).nodes(3)
		w.block(ns[0], ns[1])
		time.Sleep(2 * time.Minute)
		if got := ns[2].eventsOf(ns[0].id); !slices.Equal(got, []EventType{Join}) {
			t.Errorf("the third node about the first: got %v, want one join", got)
		}
		w.isolate()
		healed := time.Now()
		for _, n := range ns {
			n.waitAlive(2, detectionGoal-time.Since(healed))
		}
	})
}

// TestLossyPath loses packets for two minutes; nobody may be given up for good.
func TestLossyPath(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(20 * time.Millisecond)
		ns := newCluster(t, w).nodes(4)
		w.setLoss(0.1)
		time.Sleep(2 * time.Minute)
		failed := 0
		for _, n := range ns {
			for _, o := range ns {
				if slices.Contains(n.eventsOf(o.id), Fail) {
					failed++
				}
			}
		}
		if failed > 0 {
			t.Errorf("at 10 %% loss %d living peers were given up", failed)
		}
		w.setLoss(0)
		for _, n := range ns {
			n.waitAlive(3, detectionGoal)
		}
	})
}

// TestDoubleStops starts a second process on a copied data directory: exactly
// one of the two must stop, and say why.
func TestDoubleStops(t *testing.T) {
	for _, boot := range []uint64{4, 5, 6} {
		t.Run(fmt.Sprintf("boot %d against 5", boot), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCluster(t, newWire(lanDelay))
				a := c.start(c.config(1, 1, 0))
				cfg := c.config(2, 5, 0)
				cfg.Seeds = []string{a.addr.String()}
				first := c.start(cfg)
				a.waitAlive(1, 5*time.Second)
				time.Sleep(5 * time.Second)

				cfg = c.config(2, boot, 7001)
				cfg.Seeds = []string{a.addr.String()}
				second := c.start(cfg)
				stays, stops := first, second
				if boot > 5 {
					stays, stops = second, first
				}
				select {
				case err := <-stops.done:
					stops.done <- err
					if !errors.Is(err, ErrSuperseded) {
						t.Errorf("Run: got %v, want ErrSuperseded", err)
					}
				case err := <-stays.done:
					t.Fatalf("the wrong one stopped: %v", err)
				case <-time.After(detectionGoal):
					t.Fatal("nobody stopped")
				}
				waitUntil(t, detectionGoal, "the other goes on", func() bool {
					p := a.peer(stays.id)
					return p.State == Alive && p.Addr == stays.addr && p.Boot == stays.mesh.cfg.Boot
				})
			})
		})
	}
}

// TestSeedsAreTriedAgain starts the only seed three minutes late.
func TestSeedsAreTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		cfg := c.config(1, 1, 0)
		cfg.Seeds = []string{"10.0.0.2:7000", "10.0.0.1:7000"} // the second is itself
		a := c.start(cfg)
		time.Sleep(3 * time.Minute)
		b := c.start(c.config(2, 1, 0))
		a.waitAlive(1, detectionGoal)
		b.waitAlive(1, detectionGoal)
	})
}

// TestDeadSeedsDoNotHideLivingOnes lists many seeds that are gone in front of
// the one that is there, as an old list of addresses does.
func TestDeadSeedsDoNotHideLivingOnes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		b := c.start(c.config(2, 1, 0))
		cfg := c.config(1, 1, 0)
		for i := range 20 {
			cfg.Seeds = append(cfg.Seeds, fmt.Sprintf("10.0.1.%d:7000", i))
		}
		cfg.Seeds = append(cfg.Seeds, b.addr.String())
		a := c.start(cfg)
		a.waitAlive(1, detectionGoal)
	})
}

// TestWildcardListen binds all addresses, as servers do, and is reached over
// both families where the machine has them.
func TestWildcardListen(t *testing.T) {
	c := newCluster(t, nil)
	cfg := c.config(1, 1, 0)
	cfg.Listen = ":0"
	a := c.start(cfg)
	cfg = c.config(2, 1, 0)
	cfg.Listen, cfg.Seeds = ":0", []string{fmt.Sprintf("127.0.0.1:%d", a.addr.Port())}
	b := c.start(cfg)
	a.waitAlive(1, 10*time.Second)
	b.waitAlive(1, 10*time.Second)
	if p := b.peer(a.id); p.Addr.Addr().IsUnspecified() || p.Addr != a.mesh.Advertised() {
		t.Errorf("address: got %v, want %v", p.Addr, a.mesh.Advertised())
	}
}

// TestNobodyWithoutTheDirectoryStopsANode: whoever has the secret goes by a node's id, as a start to come or as this one that is
// older, and by its name. The node goes on, and so does another one with it.
func TestNobodyWithoutTheDirectoryStopsANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(lanDelay)
		c := newCluster(t, w)
		cfg := c.config(1, 5, 0)
		n := c.start(cfg)
		third := c.config(3, 1, 0)
		third.Seeds = []string{n.addr.String()}
		other := c.start(third)
		other.waitAlive(1, 10*time.Second)
		time.Sleep(2 * nameSettles)
		rogue := newRogue(t, w, 1)
		for _, to := range []*testNode{n, other} {
			forged := forgedIdentity(t, c.secret, cfg.ID, "site-1", time.Now())
			for _, boot := range []uint64{5, 6, maxBoot} {
				if conn, err := rogue.dial(to, forged.tlsConfig()); err == nil { // TLS 1.3 lets a client believe that it is in
					if s, err := conn.OpenStream(); err == nil {
						_, _ = s.Write(appendHello([]byte{streamHello}, hello{boot: boot, instance: [16]byte{1}, started: 1, name: cfg.Name}))
					}
					expectNothing(t, conn)
				}
			}
			rogue.greeted(to, mustIdentity(t, c.secret, testKey(77), "site-0", time.Now()), hello{boot: 1, started: 1, name: n.mesh.hello.name})
		}
		time.Sleep(5 * time.Second)
		for _, to := range []*testNode{n, other} {
			select {
			case err := <-to.done:
				to.done <- err
				t.Fatalf("the node stopped: %v", err)
			default:
			}
		}
		if p := other.peer(cfg.ID); p.State != Alive || p.Boot != 5 {
			t.Errorf("the other one knows %+v", p)
		}
	})
}
