// Package address tells what an address of a peer counts for, and what may be told of it.
package address

import (
	"net"
	"net/netip"
)

// Counted returns what a counts for. An IPv6 visitor has a whole /64, so all of it is one address.
func Counted(a netip.Addr) netip.Prefix {
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // fails only for an address that is none
	return p
}

// IsUnlimited reports whether a is somebody through whom many visitors come: a
// trusted proxy, or something on this machine.
func IsUnlimited(a netip.Addr, trusted []netip.Prefix) bool {
	return a.IsLoopback() || Contains(trusted, a)
}

// Network is what a log may tell of an address: enough to find the network,
// not enough to find a person.
func Network(a netip.Addr) netip.Prefix {
	bits := 24
	if a.Is6() {
		bits = 48
	}
	p, _ := a.Prefix(bits)
	return p
}

// Of returns the address of a peer, in its shortest form and without a zone.
// It is the zero Addr for peers that have none.
func Of(a net.Addr) netip.Addr {
	if a, ok := a.(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Contains reports whether a is in one of the networks.
func Contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
