//go:build linux

package rig

import (
	"context"
	"net"
	"sync"

	"github.com/ropeline/ropeline/bench/rig/udp"
)

// Loopback is a network on the machine's own loopback, through proxies.
type Loopback struct {
	proxy  *udp.Proxy
	dialer net.Dialer

	mu    sync.Mutex // guards the following
	sites map[string]string
	shape udp.Link
	cut   map[[2]string]bool
}

// NewLoopback returns an empty network. Losses follow from seed.
func NewLoopback(seed uint64) *Loopback {
	return &Loopback{proxy: udp.NewProxy(seed), sites: map[string]string{}, cut: map[[2]string]bool{}}
}

// Join implements Network. Ports stay a node's own while it does not run: they are
// below those that the kernel takes for connections and for whoever asks for any.
func (n *Loopback) Join(name, site string) (Place, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ports, err := FreePorts(3)
	if err != nil {
		return Place{}, err
	}
	p := Place{HTTP: ports[0], Admin: ports[1], Mesh: ports[2]}
	if p.Advertise, err = n.proxy.Add(name, p.Mesh); err != nil {
		return Place{}, err
	}
	n.sites[name] = site
	n.applyLocked()
	return p, nil
}

// Dial implements Network.
func (n *Loopback) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.dialer.DialContext(ctx, network, address)
}

// Listen implements Network.
func (n *Loopback) Listen(string) (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }

// CutSites implements Network.
func (n *Loopback) CutSites(a, b string) error {
	return n.cutWhere(func(from, to string) bool {
		return n.sites[from] == a && n.sites[to] == b || n.sites[from] == b && n.sites[to] == a
	})
}

// CutNode implements Network.
func (n *Loopback) CutNode(name string) error {
	return n.cutWhere(func(from, to string) bool { return from == name || to == name })
}

// CutOneWay implements Network.
func (n *Loopback) CutOneWay(a, b string) error {
	return n.cutWhere(func(from, to string) bool { return from == a && to == b })
}

func (n *Loopback) cutWhere(is func(from, to string) bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for from := range n.sites {
		for to := range n.sites {
			if from != to && is(from, to) {
				n.cut[[2]string{from, to}] = true
			}
		}
	}
	n.applyLocked()
	return nil
}

// Shape implements Network.
func (n *Loopback) Shape(l udp.Link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = l
	n.applyLocked()
	return nil
}

// Heal implements Network.
func (n *Loopback) Heal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = udp.Link{}
	clear(n.cut)
	n.applyLocked()
	return nil
}

func (n *Loopback) applyLocked() {
	for from := range n.sites {
		for to := range n.sites {
			l := n.shape
			l.Cut = l.Cut || n.cut[[2]string{from, to}]
			n.proxy.Set(from, to, l)
		}
	}
}

// Close implements Network.
func (n *Loopback) Close() error { return n.proxy.Close() }
