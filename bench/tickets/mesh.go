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

// mesh is a site of three nodes in this process, linked by QUIC over loopback, with their
// stores on disk.
type mesh struct {
	room    *load
	session time.Duration
	dir     string
	nodes   []*meshNode
	cancel  context.CancelFunc
	ran     sync.WaitGroup

	mu   sync.Mutex // guards the following
	errs []error
}

type meshNode struct {
	*node.Node
	data *node.DataDir
	mesh *transport.Mesh
}

// places are more than visitors come for.
const places = 1 << 30

func roomOf(session time.Duration) room.Settings {
	return room.Settings{
		ID: crdt.RoomID{1}, Name: "room", Path: "/", Policy: room.Escrow,
		TotalActiveUsers: places, NewUsersPerMinute: places, SessionDuration: session,
	}.WithDefaults()
}

// startMesh starts the site, and returns when all of its nodes have rights and give tickets.
func startMesh(ctx context.Context, session time.Duration) (m *mesh, err error) {
	m = &mesh{room: newLoad(), session: session}
	if m.dir, err = os.MkdirTemp("", "tickets"); err != nil {
		return nil, err
	}
	ctx, m.cancel = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.stop())
		}
	}()
	secret := transport.NewSecret()
	for i := range meshNodes {
		n, err := m.newNode(i, secret)
		if err != nil {
			return nil, err
		}
		m.nodes = append(m.nodes, n)
		m.goOn(func() error { return n.mesh.Run(ctx) })
		m.goOn(func() error { return n.Run(ctx, n.mesh) })
	}
	return m, m.await(ctx)
}

func (m *mesh) goOn(run func() error) {
	m.ran.Go(func() {
		err := run()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.errs = append(m.errs, err)
	})
}

func (m *mesh) newNode(i int, secret transport.Secret) (n *meshNode, err error) {
	name := fmt.Sprint("a", i)
	dir, err := node.OpenDataDir(filepath.Join(m.dir, name), crdt.NodeID{})
	if err != nil {
		return nil, err
	}
	cfg := node.Config{Data: dir, Name: name, Site: "a", Rooms: []room.Settings{roomOf(m.session)}, OwnerKey: []byte("key"), Found: i == 0}
	t := transport.LAN()
	t.ID, t.Boot, t.Name, t.Site, t.Listen = transport.PeerID(dir.Self().Node), dir.Self().Boot, name, "a", "127.0.0.1:0"
	if i > 0 {
		cfg.AwaitPeers = 10 * time.Second
		t.Seeds = []string{m.nodes[0].mesh.Addr().String()}
	}
	err = rig.Try(func() {
		n = &meshNode{Node: rig.Got(node.New(cfg)), data: dir}
		t.Identity = rig.Got(transport.IdentityFromSecret(secret, t.ID, name, "a", time.Now()))
		t.OnMessage, t.OnEvent = n.OnMessage, n.OnEvent
		n.mesh = rig.Got(transport.New(t))
	})
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return n, nil
}

// await waits until rights are spread, which takes seconds, and each node gives tickets.
func (m *mesh) await(ctx context.Context) error {
	served := func(n *meshNode) bool {
		if n.Ready() != nil {
			return false
		}
		s := n.Status()
		return len(s.Peers) >= meshNodes-1 && len(s.Rooms) == 1 && s.Rooms[0].Rights != nil && s.Rooms[0].Rights.Held.Places >= places/4 &&
			n.Route("h", "/").Decide(node.Pass{}, false, n.Now()).Admit
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if !slices.ContainsFunc(m.nodes, func(n *meshNode) bool { return !served(n) }) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("the nodes do not give tickets after a minute")
		}
	}
}

// settles is how long it takes until as many leave as come: a session, and what leases last
// beyond it.
func (m *mesh) settles() time.Duration { return m.session + 600*time.Millisecond }

// lanes returns where visitors come who leave word where they can be told; goroutines says
// that each keeps a goroutine waiting instead, as requests of HTTP do.
func (m *mesh) lanes(goroutines bool) []*lane {
	var all []*lane
	for _, n := range m.nodes {
		come := newcomers{n.Node, n.Route("h", "/")}
		if goroutines {
			all = append(all, &lane{decider: &waiting{newcomers: come}})
		} else {
			all = append(all, &lane{decider: &come})
		}
	}
	return all
}

func (m *mesh) stop() error {
	m.cancel()
	m.ran.Wait()
	for _, n := range m.nodes {
		m.errs = append(m.errs, n.data.Close())
	}
	return errors.Join(append(m.errs, os.RemoveAll(m.dir))...)
}

// newcomers are new visitors at one node.
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

// waiting are new visitors at one node who keep a goroutine each.
type waiting struct {
	newcomers
	mu sync.Mutex // one is answered at a time
}

func (n *waiting) begin(v *visitor) {
	go func() {
		is := n.room.Decide(node.Pass{}, false, n.node.Now())
		n.mu.Lock()
		defer n.mu.Unlock()
		v.answered(is.Admit)
	}()
}
