package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/transport"
)

// wire is what one node of a real mesh sends, per second: payloads of messages, and UDP payload
// with all that QUIC, TLS, pings and gossip add.
type wire struct {
	Payload volume
	UDP     float64
}

// live is a node with real links on loopback; node is nil for one that is only a member.
type live struct {
	node    *node.Node
	mesh    *transport.Mesh
	data    *node.DataDir
	payload atomic.Uint64 // bytes of messages that have come
}

// cluster is a real mesh, all in this process.
type cluster struct {
	shape
	dir   string
	nodes []*live
	stop  context.CancelFunc
	wg    sync.WaitGroup
	errs  chan error
}

// settles is how long a mesh may take to come together.
const settles = time.Minute

// measureWire starts a mesh of real links, lets visitors come, and counts what is sent. Without
// rooms the nodes are members of the mesh and nothing else.
func measureWire(ctx context.Context, s shape) (w wire, err error) {
	c, err := startCluster(ctx, s)
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return c.measure(ctx)
}

func startCluster(ctx context.Context, s shape) (*cluster, error) {
	dir, err := os.MkdirTemp("", "traffic")
	if err != nil {
		return nil, err
	}
	c := &cluster{shape: s, dir: dir, errs: make(chan error, 2*s.Sites*s.Nodes)}
	running, stop := context.WithCancel(ctx)
	c.stop = stop
	secret := transport.NewSecret()
	for i := range s.Sites * s.Nodes {
		if err := c.add(running, i, secret); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	if err := c.await(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// add starts the next node.
func (c *cluster) add(ctx context.Context, i int, secret transport.Secret) error {
	name, site := fmt.Sprint("node-", i), siteName(i/c.Nodes)
	x := &live{}
	var err error
	if x.data, err = node.OpenDataDir(filepath.Join(c.dir, name), crdt.NodeID{}); err != nil {
		return err
	}
	c.nodes = append(c.nodes, x)
	t := transport.LAN()
	t.ID, t.Boot, t.Name, t.Site, t.Listen = transport.PeerID(x.data.Self().Node), x.data.Self().Boot, name, site, "127.0.0.1:0"
	if t.Identity, err = transport.IdentityFromSecret(secret, t.ID, name, site, time.Now()); err != nil {
		return err
	}
	if i > 0 {
		t.Seeds = []string{c.nodes[0].mesh.Addr().String()}
	}
	if c.Rooms > 0 {
		cfg := node.Config{Data: x.data, Name: name, Site: site, Rooms: rooms(c.shape), OwnerKey: []byte("key"), Found: i == 0}
		if i > 0 {
			cfg.AwaitPeers = 10 * time.Second
		}
		if x.node, err = node.New(cfg); err != nil {
			return err
		}
		t.OnEvent = x.node.OnEvent
		t.OnMessage = func(from transport.Peer, kind uint8, msg []byte) {
			x.payload.Add(uint64(len(msg)))
			x.node.OnMessage(from, kind, msg)
		}
	}
	if x.mesh, err = transport.New(t); err != nil {
		return err
	}
	c.wg.Go(func() { c.errs <- x.mesh.Run(ctx) })
	if x.node != nil {
		c.wg.Go(func() { c.errs <- x.node.Run(ctx, x.mesh) })
	}
	return nil
}

// await waits until all see all, and are ready.
func (c *cluster) await(ctx context.Context) error {
	for deadline := time.Now().Add(settles); ; time.Sleep(20 * time.Millisecond) {
		missing := slices.IndexFunc(c.nodes, func(x *live) bool { return !c.met(x) })
		switch {
		case missing < 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("%d × %d nodes have not found each other within %v", c.Sites, c.Nodes, settles)
		}
	}
}

func (c *cluster) met(x *live) bool {
	there := 0
	for _, p := range x.mesh.Members() {
		if p.State == transport.Alive && (p.Ready || x.node == nil) {
			there++
		}
	}
	return there == len(c.nodes)-1 && (x.node == nil || x.node.Ready() == nil)
}

// measure lets visitors come and counts what is sent.
func (c *cluster) measure(ctx context.Context) (wire, error) {
	visiting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.visit(visiting) })
	defer wg.Wait()
	defer stop()
	if err := sleep(ctx, c.Before); err != nil {
		return wire{}, err
	}
	before, start := c.total(), time.Now()
	if err := sleep(ctx, c.Span); err != nil {
		return wire{}, err
	}
	after, per := c.total(), time.Since(start).Seconds()*float64(len(c.nodes))
	return wire{
		Payload: volume{after.Payload.Messages - before.Payload.Messages, after.Payload.Bytes - before.Payload.Bytes}.over(per),
		UDP:     (after.UDP - before.UDP) / per,
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// total returns what all nodes have sent so far. What is sent arrives, on loopback.
func (c *cluster) total() (w wire) {
	for _, x := range c.nodes {
		s := x.mesh.Stats()
		w.UDP += float64(s.BytesOut)
		w.Payload.Messages += float64(s.MessagesOut)
		w.Payload.Bytes += float64(x.payload.Load())
	}
	return w
}

// visit has visitors come at random times to random nodes.
func (c *cluster) visit(ctx context.Context) {
	rate := c.Visitors * float64(c.Rooms*c.Sites)
	if rate == 0 {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for next := time.Now(); ; {
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if sleep(ctx, time.Until(next)) != nil {
			return
		}
		x, path := c.nodes[rand.IntN(len(c.nodes))], roomPath(rand.IntN(c.Rooms))
		wg.Go(func() { x.node.Route("any", path).Decide(node.Pass{}, false, time.Now()) })
	}
}

// close ends all nodes.
func (c *cluster) close() error {
	c.stop()
	c.wg.Wait()
	close(c.errs)
	var errs []error
	for err := range c.errs {
		errs = append(errs, err)
	}
	for _, x := range c.nodes {
		errs = append(errs, x.data.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
