//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

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
	if p.Advertise != "" {
		return p.Advertise
	}
	return p.Mesh
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

	// CutSites cuts all that goes between two sites.
	CutSites(a, b string) error
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
