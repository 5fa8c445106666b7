//go:build linux

package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/ropeline/ropeline/bench/rig/udp"
)

// Place is where a node listens.
type Place struct {
	HTTP      string // for visitors
	Admin     string // for status
	Mesh      string // for other nodes
	Advertise string // what other nodes are told; empty: Mesh
	Namespace string // of its network; empty: the machine's
}

// seed returns the address that others join at.
func (p Place) seed() string {
	return cmp.Or(p.Advertise, p.Mesh)
}

// Network is what the nodes of a mesh reach each other through. Visitors and the
// origin are not part of it: their connections hold whatever is cut.
type Network interface {
	// Join makes room for a node.
	Join(name, site string) (Place, error)
	// Dial opens a connection to the HTTP address of a node's Place. Any
	// goroutine may call it.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Listen opens a port next to a node, on its own loopback.
	Listen(name string) (net.Listener, error)

	// CutSite cuts a site off from all others.
	CutSite(name string) error
	// CutNode cuts a node off from all others.
	CutNode(name string) error
	// CutOneWay loses what one node sends to another, and nothing else.
	CutOneWay(from, to string) error
	// Shape has every link fare like l. It returns an error that wraps
	// ErrCannot where nothing can be shaped.
	Shape(l udp.Link) error
	// Heal undoes all of these.
	Heal() error

	Close() error
}

// ErrCannot is what errors about things wrap that this machine, or this kind of
// network, does not allow.
var ErrCannot = errors.New("not possible here")

var (
	_ Network = (*Loopback)(nil)
	_ Network = (*Namespaces)(nil)
)

// What networks are called.
const (
	RealLinks = "network namespaces"
	Proxies   = "proxies"
)

// NewNetwork returns a network of namespaces if real links are to be cut and can be here, and one of proxies on
// loopback otherwise, and what it is called. It tells log why links are not real.
func NewNetwork(real bool, seed uint64, log io.Writer) (_ Network, through string, err error) {
	if real {
		n, err := NewNamespaces()
		if err == nil {
			return n, RealLinks, nil
		}
		if !errors.Is(err, ErrCannot) {
			return nil, "", err
		}
		fmt.Fprintf(log, "through proxies: %v\n", err)
	}
	return NewLoopback(seed), Proxies, nil
}

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
	n := &Loopback{sites: map[string]string{}, cut: map[[2]string]bool{}}
	n.proxy = udp.NewProxy(seed, n.link)
	return n
}

// Join implements Network. Ports stay a node's own while it does not run: they are
// below those that the kernel takes for connections and for whoever asks for any.
func (n *Loopback) Join(name, site string) (Place, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var p Place
	var err error
	for _, at := range []*string{&p.HTTP, &p.Admin, &p.Mesh} {
		if *at, err = Free(); err != nil {
			return Place{}, err
		}
	}
	if p.Advertise, err = n.proxy.Add(name, p.Mesh); err != nil {
		return Place{}, err
	}
	n.sites[name] = site
	return p, nil
}

// Dial implements Network.
func (n *Loopback) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.dialer.DialContext(ctx, network, address)
}

// Listen implements Network.
func (n *Loopback) Listen(string) (net.Listener, error) { return net.Listen("tcp4", "127.0.0.1:0") }

// CutSite implements Network.
func (n *Loopback) CutSite(name string) error {
	return n.cutWhere(func(from, to string) bool { return (n.sites[from] == name) != (n.sites[to] == name) })
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
	return nil
}

// Shape implements Network.
func (n *Loopback) Shape(l udp.Link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = l
	return nil
}

// Heal implements Network.
func (n *Loopback) Heal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = udp.Link{}
	clear(n.cut)
	return nil
}

func (n *Loopback) link(from, to string) udp.Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.shape
	l.Cut = n.cut[[2]string{from, to}]
	return l
}

// Close implements Network.
func (n *Loopback) Close() error { return n.proxy.Close() }
