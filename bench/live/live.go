// Package live has meshes of nodes in this process, with real links on loopback and stores on disk: for what is measured of
// them without HTTP, and needs no process to be killed.
//
// A [Mesh] belongs to one goroutine; its nodes are used as any others.
package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/transport"
)

// Node is one node of a mesh.
type Node struct {
	*node.Node                 // nil: it is a member and nothing else
	Link       *transport.Mesh //
	Received   atomic.Uint64   // bytes of messages that have come

	data *node.DataDir
}

// Mesh is nodes that run.
type Mesh struct {
	Nodes []*Node

	dir  string
	stop context.CancelFunc
	ran  sync.WaitGroup

	mu   sync.Mutex // guards the following
	errs []error
}

// Start starts a node in each of the sites, all with the same rooms, and returns when all see all and are ready. Without rooms
// they are members of a mesh and nothing else. Stop it, or end ctx.
func Start(ctx context.Context, sites []string, rooms []room.Settings) (_ *Mesh, err error) {
	running, stop := context.WithCancel(ctx)
	m := &Mesh{stop: stop}
	err = rig.Try(func() {
		m.dir = rig.Got(os.MkdirTemp("", "mesh"))
		secret := transport.NewSecret()
		for _, site := range sites {
			m.add(running, site, rooms, secret)
		}
		m.await(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// add starts the next node.
func (m *Mesh) add(ctx context.Context, site string, rooms []room.Settings, secret transport.Secret) {
	first, name := len(m.Nodes) == 0, fmt.Sprint("node-", len(m.Nodes))
	n := &Node{data: rig.Got(node.OpenDataDir(filepath.Join(m.dir, name), crdt.NodeID{}))}
	m.Nodes = append(m.Nodes, n)
	t := transport.LAN()
	t.ID, t.Boot, t.Name, t.Site, t.Listen = transport.PeerID(n.data.Self().Node), n.data.Self().Boot, name, site, "127.0.0.1:0"
	t.Identity = rig.Got(transport.IdentityFromSecret(secret, t.ID, name, site, time.Now()))
	cfg := node.Config{Data: n.data, Name: name, Site: site, Rooms: rooms, OwnerKey: []byte("key"), Found: first}
	if !first {
		t.Seeds, cfg.AwaitPeers = []string{m.Nodes[0].Link.Addr().String()}, 10*time.Second
	}
	if len(rooms) > 0 {
		n.Node = rig.Got(node.New(cfg))
		t.OnEvent = n.OnEvent
		t.OnMessage = func(from transport.Peer, kind uint8, msg []byte) {
			n.Received.Add(uint64(len(msg)))
			n.OnMessage(from, kind, msg)
		}
	}
	n.Link = rig.Got(transport.New(t))
	m.run(func() error { return n.Link.Run(ctx) })
	if n.Node != nil {
		m.run(func() error { return n.Run(ctx, n.Link) })
	}
}

func (m *Mesh) run(what func() error) {
	m.ran.Go(func() {
		err := what()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.errs = append(m.errs, err)
	})
}

// settles is how long a mesh may take to come together.
const settles = time.Minute

// await waits until all see all, and are ready.
func (m *Mesh) await(ctx context.Context) {
	if !rig.Until(ctx, settles, 20*time.Millisecond, func() bool { return !slices.ContainsFunc(m.Nodes, func(n *Node) bool { return !m.met(n) }) }) {
		rig.Must(fmt.Errorf("%d nodes have not found each other within %v", len(m.Nodes), settles))
	}
}

func (m *Mesh) met(n *Node) bool {
	there := 0
	for _, p := range n.Link.Members() {
		if p.State == transport.Alive && (p.Ready || n.Node == nil) {
			there++
		}
	}
	return there == len(m.Nodes)-1 && (n.Node == nil || n.Ready() == nil)
}

// Stop ends all nodes, and removes their data.
func (m *Mesh) Stop() error {
	m.stop()
	m.ran.Wait()
	for _, n := range m.Nodes {
		m.errs = append(m.errs, n.data.Close())
	}
	return errors.Join(append(m.errs, os.RemoveAll(m.dir))...)
}
