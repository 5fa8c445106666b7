package transport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTwoMeshesKeepApart has nodes of two meshes join each other, and one that is of none yet
// reach both, so that gossip tells each of the other.
func TestTwoMeshesKeepApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		var ns []*testNode
		for i, mesh := range []MeshID{{1}, {2}, {}} {
			cfg := c.config(i+1, 1, 0)
			cfg.Mesh, cfg.Pending = mesh, mesh == MeshID{}
			for _, n := range ns {
				cfg.Seeds = append(cfg.Seeds, n.addr.String())
			}
			ns = append(ns, c.start(cfg))
		}
		x, y, z := ns[0], ns[1], ns[2]
		z.waitAlive(2, 15*time.Second)
		if p := x.peer(z.id); !p.Pending {
			t.Errorf("x sees %+v, want it to be of no mesh yet", p)
		}
		time.Sleep(time.Minute)
		if a, b := x.peer(y.id), y.peer(x.id); a.State == Alive || b.State == Alive {
			t.Errorf("nodes of two meshes list each other: %+v, %+v", a, b)
		}
		z.mesh.SetMesh(MeshID{2})
		time.Sleep(30 * time.Second)
		if l := z.mesh.links.get(x.id); l != nil {
			t.Errorf("z keeps its connection to x, %+v", l.hello)
		}
		if p := y.peer(z.id); p.State != Alive || p.Pending {
			t.Errorf("y sees %+v, want it alive and in its mesh", p)
		}
		if p := x.peer(z.id); p.State == Alive {
			t.Errorf("x sees %+v, want it gone: it is of mesh 2 now", p)
		}
	})
}

// TestOneName has two nodes with one name meet, at each other and at a third one: the
// one that was started later stops, and says who both are.
func TestOneName(t *testing.T) {
	for _, seed := range []int{0, 1} {
		bubble(t, func(t *testing.T) {
			c := newCluster(t, newWire(lanDelay))
			ns := c.nodes(2)
			time.Sleep(time.Second)
			cfg := c.config(3, 1, 0)
			cfg.Name = "node-1"
			cfg.Seeds = []string{ns[seed].addr.String()}
			later := c.start(cfg)
			select {
			case err := <-later.done:
				later.done <- err // for the end of the test
				text := fmt.Sprint(err)
				if !errors.Is(err, ErrNameTaken) || !strings.Contains(text, ns[0].id.String()) || !strings.Contains(text, later.id.String()) || !strings.Contains(text, ns[0].addr.String()) {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				// Told by a third node only: it never gets in.
				if seed == 0 {
					t.Error("it goes on")
				}
			}
			for _, n := range ns {
				if p := n.peer(later.id); p.State == Alive {
					t.Errorf("%s lists it: %+v", n.mesh.cfg.Name, p)
				}
			}
			if p := ns[1].peer(ns[0].id); p.State != Alive {
				t.Errorf("the first is %v", p.State)
			}
		})
	}
}

// TestANameComesBack has a node with a new id come under the name of one that has crashed.
func TestANameComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(lanDelay))
		ns := c.nodes(3)
		c.wire.isolate(ns[0]) // it says no good-bye
		cfg := c.config(4, 1, 0)
		cfg.Name = "node-1"
		cfg.Seeds = []string{ns[1].addr.String()}
		next := c.start(cfg)
		next.waitAlive(2, 20*time.Second)
	})
}
