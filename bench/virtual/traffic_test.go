package virtual

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
)

// shape says what a mesh is like, and what goes on in it.
type shape struct {
	sites    int
	nodes    int // in each site
	rooms    int // kept by all
	policy   room.Policy
	visitors float64       // who come to each room in each site, per second, and are let in, at random times to random nodes
	before   time.Duration // how long the mesh runs before and while bytes are counted
	span     time.Duration
}

const session = time.Minute // visitors leave after it

// within is how far a mesh may be off what it was found to say.
const within = 0.15

// TestMeshesSayAsMuchAsTheyDid counts the bytes of messages that small meshes send, and holds them to what they sent
// when this was written.
func TestMeshesSayAsMuchAsTheyDid(t *testing.T) {
	const start, day = 5 * time.Second, 65 * time.Second // of whole nodes: until as many leave as come
	for _, x := range []struct {
		shape
		all, far float64 // bytes a second: of a node, and of a relay to other sites
	}{
		{shape{1, 3, 10, room.Escrow, 0, start, 20 * time.Second}, 196, 0},
		{shape{3, 2, 1, room.Even, 0, start, 40 * time.Second}, 70, 31},
		{shape{1, 3, 10, room.Escrow, 1, day, 20 * time.Second}, 1458, 0},
		{shape{3, 2, 10, room.Escrow, 1. / 3, day, 40 * time.Second}, 1557, 932},
		{shape{8, 1, 10, room.Even, 1, day, 20 * time.Second}, 4450, 4450},
	} {
		t.Run(fmt.Sprintf("%d sites of %d, %d rooms, %s, %.2f visitors", x.sites, x.nodes, x.rooms, x.policy, x.visitors), func(t *testing.T) {
			t.Parallel()
			all, relay := traffic(t, x.shape, 1)
			hold(t, "bytes", all, x.all)
			if x.sites > 1 {
				hold(t, "bytes of a relay to other sites", relay, x.far)
			}
		})
	}
}

func hold(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got/want-1) > within {
		t.Errorf("a node sends %.0f %s per second, and sent %.0f", got, what, want)
	}
}

// TestSameSeedSameTraffic holds that nothing but the seed decides.
func TestSameSeedSameTraffic(t *testing.T) {
	s := shape{2, 2, 3, room.Escrow, 1, 5 * time.Second, 10 * time.Second}
	all, relay := traffic(t, s, 7)
	if again, too := traffic(t, s, 7); again != all || too != relay {
		t.Errorf("the same mesh twice: %v and %v, then %v and %v bytes per second", all, relay, again, too)
	}
}

// crowd is visitors of a mesh.
type crowd struct {
	*Mesh
	shape
	rng *rand.Rand
}

// traffic runs a mesh, and returns how many bytes a node sends per second on average, and those that a relay, the node that
// sends most to other sites, sends to these.
func traffic(t *testing.T, s shape, seed uint64) (all, relay float64) {
	t.Helper()
	c := &crowd{New(), s, rand.New(rand.NewPCG(seed, 1))}
	total, far := 0.0, make([]float64, s.sites*s.nodes)
	c.Sent = func(from, to *Node, msg node.Message) {
		size := float64(len(msg.Payload))
		if total += size; from.Site != to.Site {
			far[from.No] += size
		}
	}
	for i := range far {
		c.add(t, i, seed)
	}
	if err := c.Settle(); err != nil {
		t.Fatal(err)
	}
	if s.visitors > 0 {
		c.After(c.pause(), c.come)
	}
	c.Run(s.before)
	total = 0
	clear(far)
	c.Run(s.span)
	for site := range s.sites {
		most := 0.0
		for _, bytes := range far[site*s.nodes : (site+1)*s.nodes] {
			most = max(most, bytes)
		}
		relay += most / s.span.Seconds() / float64(s.sites)
	}
	return total / s.span.Seconds() / float64(len(far)), relay
}

func (c *crowd) add(t *testing.T, i int, seed uint64) {
	t.Helper()
	self := crdt.Incarnation{Boot: 1}
	binary.BigEndian.PutUint64(self.Node[:], c.rng.Uint64())
	binary.BigEndian.PutUint64(self.Node[8:], c.rng.Uint64())
	site := fmt.Sprintf("site-%03d", i/c.nodes)
	core, err := node.NewCore(node.CoreConfig{
		Self: self, Site: site, Rooms: c.settings(), OwnerKey: []byte("key"), Rand: rand.New(rand.NewPCG(seed, uint64(i)+2)),
		Entropy: rand.NewChaCha8([32]byte{byte(i), byte(i >> 8), byte(seed)}), Found: i == 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Add(self, site, core, time.Duration(c.rng.Float64()*float64(time.Second))) // so that no two keep time
}

// settings are those of the rooms, in which there is a place for everybody.
func (c *crowd) settings() []room.Settings {
	all := make([]room.Settings, c.rooms)
	for i := range all {
		all[i] = room.Settings{
			ID: crdt.RoomID{1, byte(i >> 8), byte(i)}, Name: fmt.Sprint("room-", i), Path: pathOf(i), Policy: c.policy,
			TotalActiveUsers: 1 << 20, NewUsersPerMinute: 1 << 20, SessionDuration: session, DisableSessionRenewal: true,
		}.WithDefaults()
	}
	return all
}

func pathOf(i int) string { return fmt.Sprintf("/%d", i) }

// pause is how long it takes until the next visitor comes.
func (c *crowd) pause() time.Duration {
	rate := c.visitors * float64(c.rooms*c.sites)
	return time.Duration(c.rng.ExpFloat64() / rate * float64(time.Second))
}

// come has a visitor ask a node, and the next one later.
func (c *crowd) come() {
	c.After(c.pause(), c.come)
	c.ask(c.Nodes[c.rng.IntN(len(c.Nodes))], c.rng.IntN(c.rooms), node.Pass{}, false)
}

// ask has a node decide about a request, and about the next one of a visitor who has to wait.
func (c *crowd) ask(n *Node, room int, pass node.Pass, known bool) {
	answered := func(v node.Verdict) {
		if !v.Admit {
			c.After(20*time.Second, func() { c.ask(n, room, v.Pass, true) })
		}
	}
	if v, ok := n.Core.Route("any", pathOf(room)).Begin(pass, known, c.Now, answered); ok {
		answered(v)
		return
	}
	c.Flush(n)
}
