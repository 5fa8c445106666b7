package httpfront

import (
	"net"
	"net/netip"
)

// addressCounts counts connections by the address that a visitor has. An IPv6
// visitor has a whole /64, so all of it is one address.
type addressCounts map[netip.Prefix]int

const (
	addressBits4 = 32
	addressBits6 = 64
)

// addressOf returns what a counts for.
func addressOf(a netip.Addr) netip.Prefix {
	bits := addressBits4
	if a.Is6() {
		bits = addressBits6
	}
	p, _ := a.Prefix(bits) // fails only for an address that is none
	return p
}

// add counts one more for p, and reports whether that was within limit; if not,
// nothing is counted. Addresses that cannot be told are not limited.
func (c addressCounts) add(p netip.Prefix, limit int) bool {
	if !p.IsValid() {
		return true
	}
	if c[p] >= limit {
		return false
	}
	c[p]++
	return true
}

func (c addressCounts) remove(p netip.Prefix) {
	if c[p]--; c[p] <= 0 {
		delete(c, p)
	}
}

// isUnlimited reports whether a is somebody through whom many visitors come: a
// trusted proxy, or something on this machine.
func isUnlimited(a netip.Addr, trusted []netip.Prefix) bool {
	return a.IsLoopback() || contains(trusted, a)
}

// networkOf is what a log may tell of an address: enough to find the network,
// not enough to find a person.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 24
	if a.Is6() {
		bits = 48
	}
	p, _ := a.Prefix(bits)
	return p
}

// addrOf returns the address of a peer, in its shortest form and without a zone.
// It is the zero Addr for peers that have none.
func addrOf(a net.Addr) netip.Addr {
	if a, ok := a.(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
