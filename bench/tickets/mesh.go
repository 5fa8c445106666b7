//go:build linux

package tickets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// meshNodes is how many nodes the site has.
const meshNodes = 3

// places are more than visitors come for.
const places = 1 << 30

// mesh is a site of three nodes in this process, linked by QUIC over loopback, with their
// stores on disk.
type mesh struct {
	nodes   []*node.Node
	room    *load
	session time.Duration

	dir  string
	data []*node.DataDir
	end  context.CancelFunc
	ran  sync.WaitGroup

	mu   sync.Mutex // guards the following
	errs []error
}

// startMesh starts the site, and returns when all of its nodes have rights and give tickets.
func startMesh(ctx context.Context, session time.Duration) (*mesh, error) {
	running, end := context.WithCancel(ctx)
	m := &mesh{room: newLoad(), session: session, end: end}
	err := rig.Try(func() {
		m.dir = rig.Got(os.MkdirTemp("", "mesh"))
		secret := transport.NewSecret()
		var seeds []string
		for range meshNodes {
			seeds = []string{m.add(running, secret, seeds)}
		}
		m.await(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

// add starts the next node, which joins the seeds, and returns where others join it. Without seeds it makes the mesh.
func (m *mesh) add(ctx context.Context, secret transport.Secret, seeds []string) (address string) {
	name := fmt.Sprint("node-", len(m.nodes))
	data := rig.Got(node.OpenDataDir(filepath.Join(m.dir, name), crdt.NodeID{}))
	m.data = append(m.data, data)
	cfg := node.Config{
		Data: data, Name: name, Site: "a", OwnerKey: []byte("key"), Found: seeds == nil,
		Rooms: []room.Settings{room.Settings{
			ID: crdt.RoomID{1}, Name: "room", Path: "/", Policy: room.Escrow,
			TotalActiveUsers: places, NewUsersPerMinute: places, SessionDuration: m.session,
		}.WithDefaults()},
	}
	if seeds != nil {
		cfg.AwaitPeers = 10 * time.Second
	}
	n := rig.Got(node.New(cfg))
	t := transport.LAN()
	t.ID, t.Boot, t.Name, t.Site, t.Listen, t.Seeds = transport.PeerID(data.Self().Node), data.Self().Boot, name, "a", "127.0.0.1:0", seeds
	t.Identity = rig.Got(transport.IdentityFromSecret(secret, t.ID, name, "a", time.Now()))
	t.OnEvent, t.OnMessage = n.OnEvent, n.OnMessage
	link := rig.Got(transport.New(t))
	m.nodes = append(m.nodes, n)
	for _, run := range []func() error{func() error { return link.Run(ctx) }, func() error { return n.Run(ctx, link) }} {
		m.ran.Go(func() {
			err := run()
			m.mu.Lock()
			defer m.mu.Unlock()
			m.errs = append(m.errs, err)
		})
	}
	return link.Addr().String()
}

// await waits until the nodes have found each other and rights are spread, which takes seconds, and each node gives
// tickets.
func (m *mesh) await(ctx context.Context) {
	served := func(n *node.Node) bool {
		s := n.Status()
		return n.Ready() == nil && len(s.Rooms) == 1 && s.Rooms[0].Rights != nil && s.Rooms[0].Rights.Held.Places >= places/4 &&
			n.Route("h", "/").Decide(node.Pass{}, false, n.Now()).Admit
	}
	if !rig.Until(ctx, time.Minute, 50*time.Millisecond, func() bool { return !slices.ContainsFunc(m.nodes, func(n *node.Node) bool { return !served(n) }) }) {
		rig.Must(errors.New("the nodes do not give tickets after a minute"))
	}
}

// stop ends all nodes, and removes their data.
func (m *mesh) stop() error {
	m.end()
	m.ran.Wait()
	for _, d := range m.data {
		m.errs = append(m.errs, d.Close())
	}
	return errors.Join(append(m.errs, os.RemoveAll(m.dir))...)
}

// settles is how long it takes until as many leave as come: a session, and what leases last
// beyond it.
func (m *mesh) settles() time.Duration { return m.session + 600*time.Millisecond }

// lanes returns where visitors come.
func (m *mesh) lanes() (all []*lane) {
	for _, n := range m.nodes {
		all = append(all, &lane{decider: &newcomers{n, n.Route("h", "/")}})
	}
	return all
}

// newcomers are new visitors at one node, who leave word where they can be told.
type newcomers struct {
	node *node.Node
	room *node.Room
}

func (n *newcomers) begin(v *visitor) {
	done, ok := v.answer.(func(node.Verdict))
	if !ok {
		done = func(is node.Verdict) { v.answered(is.Admit) }
		v.answer = done
	}
	if is, ok := n.room.Begin(node.Pass{}, false, n.node.Now(), done); ok {
		v.answered(is.Admit)
	}
}
