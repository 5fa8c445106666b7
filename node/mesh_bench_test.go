package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// live is a node that runs over real QUIC on loopback.
type live struct {
	*Node
	mesh *transport.Mesh
	site string
}

// startLive starts one node per site named and waits until all see all.
func startLive(tb testing.TB, rooms []room.Settings, sites ...string) []*live {
	tb.Helper()
	dir := tb.TempDir() // before Cleanup: it goes when all nodes have stopped
	secret := transport.NewSecret()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var nodes []*live
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
		for _, n := range nodes {
			n.cfg.Data.Close()
		}
	})
	for i, site := range sites {
		var seeds []string
		if i > 0 {
			seeds = []string{nodes[0].mesh.Addr().String()}
		}
		name := fmt.Sprint(site, i)
		n := newLive(tb, filepath.Join(dir, name), secret, name, site, rooms, seeds)
		wg.Go(func() {
			if err := n.mesh.Run(ctx); err != nil {
				tb.Error(err)
			}
		})
		wg.Go(func() {
			if err := n.Run(ctx, n.mesh); err != nil {
				tb.Error(err)
			}
		})
		nodes = append(nodes, n)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		settled := !slices.ContainsFunc(nodes, func(n *live) bool {
			return n.Ready() != nil || len(alive(n.mesh.Members())) != len(nodes)-1 ||
				slices.ContainsFunc(n.mesh.Members(), func(p transport.Peer) bool { return !p.Ready })
		})
		if settled {
			return nodes
		}
		if time.Now().After(deadline) {
			tb.Fatal("the mesh did not come together within a minute")
		}
	}
}

// newLive makes a node that has not started yet.
func newLive(tb testing.TB, data string, secret transport.Secret, name, site string, rooms []room.Settings, seeds []string) *live {
	tb.Helper()
	dir, err := OpenDataDir(data, crdt.NodeID{})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Config{Data: dir, Name: name, Site: site, Rooms: rooms, OwnerKey: []byte("key"), Found: len(seeds) == 0}
	if len(seeds) > 0 {
		cfg.AwaitPeers = 10 * time.Second
	}
	n, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	id := transport.PeerID(dir.Self().Node)
	identity, err := transport.IdentityFromSecret(secret, dir.Key(), name, site, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	t := transport.LAN()
	t.ID, t.Boot, t.Name, t.Site = id, dir.Self().Boot, name, site
	t.Listen, t.Identity, t.Seeds = "127.0.0.1:0", identity, seeds
	t.OnMessage, t.OnEvent = n.OnMessage, n.OnEvent
	mesh, err := transport.New(t)
	if err != nil {
		tb.Fatal(err)
	}
	return &live{Node: n, mesh: mesh, site: site}
}

func openRooms(n int) []room.Settings {
	rooms := make([]room.Settings, n)
	for i := range rooms {
		rooms[i] = room.Settings{
			ID: crdt.RoomID{1, byte(i >> 8), byte(i)}, Name: fmt.Sprint("room", i), Policy: room.Even, Path: fmt.Sprintf("/%d", i),
			TotalActiveUsers: 1 << 20, NewUsersPerMinute: 1 << 20,
			SessionDuration: 24 * time.Hour,
		}.WithDefaults()
	}
	return rooms
}

func (n *live) active(i int) int64 { return n.Status().Rooms[i].Active }

// BenchmarkSpread measures how long it takes until an admission at one node is
// seen in the view of every other: of the same site, and of another.
func BenchmarkSpread(b *testing.B) {
	nodes := startLive(b, openRooms(1), "a", "a", "a", "b", "b")
	rng := rand.New(rand.NewPCG(1, 1))
	var site, mesh []time.Duration
	want := int64(0)
	for b.Loop() {
		// Not in step with anybody's timers.
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		from := nodes[rng.IntN(len(nodes))]
		from.Route("h", "/0").Decide(Pass{}, false, time.Now())
		want++
		start := time.Now()
		pending := slices.DeleteFunc(slices.Clone(nodes), func(n *live) bool { return n == from })
		for len(pending) > 0 {
			time.Sleep(time.Millisecond)
			pending = slices.DeleteFunc(pending, func(n *live) bool {
				if n.active(0) < want {
					return false
				}
				if n.site == from.site {
					site = append(site, time.Since(start))
				} else {
					mesh = append(mesh, time.Since(start))
				}
				return true
			})
		}
	}
	report := func(name string, d []time.Duration) {
		slices.Sort(d)
		b.ReportMetric(float64(d[len(d)/2]), name+"-p50-ns")
		b.ReportMetric(float64(d[len(d)*99/100]), name+"-p99-ns")
	}
	report("same-site", site)
	report("other-site", mesh)
	b.ReportMetric(0, "ns/op")
}

// BenchmarkWire measures what the mesh itself costs: UDP payload bytes that a
// node sends per second, at rest and while a hundred rooms change every second.
func BenchmarkWire(b *testing.B) {
	for _, sites := range [][]string{
		{"a", "a", "b"},
		{"a", "a", "a", "b", "b", "b"},
		{"a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "c", "c"},
	} {
		for _, changing := range []bool{false, true} {
			name := fmt.Sprintf("nodes=%d/rooms=at_rest", len(sites))
			if changing {
				name = fmt.Sprintf("nodes=%d/rooms=changing", len(sites))
			}
			b.Run(name, func(b *testing.B) {
				nodes := startLive(b, openRooms(100), sites...)
				time.Sleep(3 * time.Second) // the start's own exchange is over
				before, start := sent(nodes), time.Now()
				for b.Loop() { // one loop is a second
					for i := range 100 * boolInt(changing) {
						nodes[i%len(nodes)].Route("h", fmt.Sprintf("/%d", i)).Decide(Pass{}, false, time.Now())
					}
					time.Sleep(time.Second)
				}
				per := float64(sent(nodes)-before) / time.Since(start).Seconds() / float64(len(nodes))
				b.ReportMetric(per, "B/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func boolInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

func sent(nodes []*live) (bytes uint64) {
	for _, n := range nodes {
		bytes += n.mesh.Stats().BytesOut
	}
	return bytes
}
