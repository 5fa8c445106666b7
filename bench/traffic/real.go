package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ropeline/ropeline/bench/live"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// wire is what one node of a real mesh sends, per second: payloads of messages, and UDP payload
// with all that QUIC, TLS, pings and gossip add.
type wire struct {
	Payload volume
	UDP     float64
}

// measureWire starts a mesh of real links, lets visitors come, and counts what is sent. Without
// rooms the nodes are members of the mesh and nothing else.
func measureWire(ctx context.Context, s shape) (w wire, err error) {
	var sites []string
	for i := range s.Sites * s.Nodes {
		sites = append(sites, siteName(i/s.Nodes))
	}
	m, err := live.Start(ctx, sites, rooms(s))
	if err != nil {
		return w, err
	}
	defer func() { err = errors.Join(err, m.Stop()) }()
	visiting, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { visit(visiting, m, s) })
	defer wg.Wait()
	defer stop()
	if err := rig.Sleep(ctx, s.Before); err != nil {
		return w, err
	}
	before, start := total(m), time.Now()
	if err := rig.Sleep(ctx, s.Span); err != nil {
		return w, err
	}
	after, per := total(m), time.Since(start).Seconds()*float64(len(m.Nodes))
	return wire{Payload: after.Payload.plus(before.Payload.over(-1)).over(per), UDP: (after.UDP - before.UDP) / per}, nil
}

// total returns what all nodes have sent so far. What is sent arrives, on loopback.
func total(m *live.Mesh) (w wire) {
	for _, n := range m.Nodes {
		s := n.Link.Stats()
		w.UDP += float64(s.BytesOut)
		w.Payload = w.Payload.plus(volume{float64(s.MessagesOut), float64(n.Received.Load())})
	}
	return w
}

// visit has visitors come at random times to random nodes.
func visit(ctx context.Context, m *live.Mesh, s shape) {
	rate := s.Visitors * float64(s.Rooms*s.Sites)
	if rate == 0 {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for next := time.Now(); ; {
		next = next.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if rig.Sleep(ctx, time.Until(next)) != nil {
			return
		}
		n, path := m.Nodes[rand.IntN(len(m.Nodes))], roomPath(rand.IntN(s.Rooms))
		wg.Go(func() { n.Route("any", path).Decide(node.Pass{}, false, time.Now()) })
	}
}
