// Package memnet is the mesh of package transport in memory: a [Mesh] has the
// same methods and callbacks as a transport.Mesh, and a [Network] between
// them delays, loses, doubles and cuts as it is told. It is for tests and
// simulations of what runs on a mesh.
//
// It is harsher than the real one in two ways: one-way messages can arrive
// twice, and a call can reach its handler twice, as it would if a caller
// repeated it. It is kinder in that a message leaves at once, so that none is
// ever replaced by a newer one.
//
// Everything is timed by package time and blocks on channels only, and so
// runs in a bubble of testing/synctest. What happens to packets is drawn from
// a generator with the seed given.
//
// All methods may be called from any number of goroutines.
package memnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/ropeline/ropeline/transport"
)

// Link says what happens to packets from one node to another. The zero value
// delivers everything at once, exactly once.
type Link struct {
	Delay     time.Duration // one way
	Jitter    time.Duration // up to that much more, so that packets overtake each other
	Loss      float64       // probability that a packet is lost
	Duplicate float64       // probability that it comes twice
	Down      bool          // nothing passes
}

type pair struct{ from, to transport.PeerID }

// Network connects meshes. Make it with [NewNetwork].
type Network struct {
	mu     sync.Mutex // guards the following
	rng    *rand.Rand
	usual  Link
	links  map[pair]Link
	side   map[transport.PeerID]int // side of the cut; absent: 0
	byAddr map[netip.AddrPort]*Mesh
	next   uint16 // port of the next node
}

// NewNetwork returns a network whose links are all as usual says.
func NewNetwork(seed uint64, usual Link) *Network {
	return &Network{
		rng:    rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		usual:  usual,
		links:  map[pair]Link{},
		side:   map[transport.PeerID]int{},
		byAddr: map[netip.AddrPort]*Mesh{},
		next:   7000,
	}
}

// SetLink changes one direction between two nodes.
func (n *Network) SetLink(from, to transport.PeerID, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[pair{from, to}] = l
}

// SetUsual changes all links that SetLink has not set.
func (n *Network) SetUsual(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.usual = l
}

// Cut stops packets from one node to another, in that direction only. What is
// under way still arrives.
func (n *Network) Cut(from, to transport.PeerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.links[pair{from, to}]
	if !ok {
		l = n.usual
	}
	l.Down = true
	n.links[pair{from, to}] = l
}

// Partition splits the network: only nodes of the same group reach each
// other. Nodes that are named nowhere form one more group.
func (n *Network) Partition(groups ...[]transport.PeerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.side)
	for i, g := range groups {
		for _, id := range g {
			n.side[id] = i + 1
		}
	}
}

// Heal ends every Partition and Cut, and leaves all else as it is.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.side)
	for p, l := range n.links {
		l.Down = false
		n.links[p] = l
	}
}

// Crash stops a node without a word to anybody; its Run returns [ErrCrashed].
// It reports whether such a node was running.
func (n *Network) Crash(id transport.PeerID) bool {
	n.mu.Lock()
	var victim *Mesh
	for _, m := range n.byAddr {
		if m.cfg.ID == id {
			victim = m
		}
	}
	n.mu.Unlock()
	if victim == nil {
		return false
	}
	victim.stop(ErrCrashed)
	return true
}

// ErrCrashed is what Run of a crashed mesh returns.
var ErrCrashed = errors.New("crashed by the test")

// attach gives a mesh its address.
func (n *Network) attach(m *Mesh, listen string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	ap, err := netip.ParseAddrPort(listen)
	if listen == "" || (err == nil && ap.Port() == 0) {
		n.next++
		ap = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), n.next)
	} else if err != nil {
		return fmt.Errorf("memnet: listen on %q: %w", listen, err)
	}
	if n.byAddr[ap] != nil {
		return fmt.Errorf("memnet: listen on %s: address in use", ap)
	}
	m.addr = ap
	n.byAddr[ap] = m
	return nil
}

func (n *Network) detach(m *Mesh) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byAddr[m.addr] == m {
		delete(n.byAddr, m.addr)
	}
}

// send carries a packet to whoever is at addr when it arrives. It reports
// whether anybody is there now; a packet that is lost counts as sent.
func (n *Network) send(from *Mesh, addr netip.AddrPort, p packet) bool {
	n.mu.Lock()
	to := n.byAddr[addr]
	if to == nil || n.byAddr[from.addr] != from {
		n.mu.Unlock()
		return false
	}
	l, ok := n.links[pair{from.cfg.ID, to.cfg.ID}]
	if !ok {
		l = n.usual
	}
	copies := 1
	switch {
	case l.Down || n.side[from.cfg.ID] != n.side[to.cfg.ID] || n.rng.Float64() < l.Loss:
		copies = 0
	case n.rng.Float64() < l.Duplicate:
		copies = 2
	}
	delays := [2]time.Duration{l.Delay, l.Delay}
	if l.Jitter > 0 {
		delays[0] += time.Duration(n.rng.Int64N(int64(l.Jitter)))
		delays[1] += time.Duration(n.rng.Int64N(int64(l.Jitter)))
	}
	n.mu.Unlock()
	p.from, p.fromAddr = from.cfg.ID, from.addr
	for i := range copies {
		to.inbox.put(p, delays[i])
	}
	return true
}
