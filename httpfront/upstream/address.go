package upstream

import (
	"fmt"
	"net/netip"
)

// Addresses of services that hand out the credentials of a machine to whoever
// asks from it, where they are not link-local. Sources: the documentation of
// Amazon EC2 (instance metadata over IPv6), Google Cloud (metadata server over
// IPv6), Alibaba Cloud and Oracle Cloud (the older address).
var metadata = [...]netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
}

// nat64 is the prefix under which gateways reach IPv4 addresses (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// AddressError says that the address of an origin is not dialled.
type AddressError struct {
	Addr netip.Addr
	kind string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is %s and not dialled; if the origin does stand there, allow the address", e.Addr, e.kind)
}

// checkAddress refuses addresses at which no site stands, but things that a name
// may be made to point at in order to get at them through us. What is in allow
// is not refused. Private and loopback addresses are where most origins are.
func checkAddress(addr netip.Addr, allow []netip.Prefix) error {
	a := addr.Unmap().WithZone("")
	for _, p := range allow {
		if p.Contains(a) {
			return nil
		}
	}
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsValid(), a.IsUnspecified():
		return &AddressError{addr, "no address of one machine"}
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return &AddressError{addr, "an address of many machines"}
	case a.IsLinkLocalUnicast():
		return &AddressError{addr, "link-local, where clouds keep the credentials of machines,"}
	}
	for _, m := range metadata {
		if a == m {
			return &AddressError{addr, "where a cloud keeps the credentials of machines,"}
		}
	}
	return nil
}
