package upstream

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ropeline/ropeline/httpfront/conn/address"
)

// Addresses of services that hand out the credentials of a machine to whoever
// asks from it, where they are not link-local. Sources: the documentation of
// Amazon EC2 (instance metadata over IPv6), Google Cloud (metadata server over
// IPv6), Alibaba Cloud, Oracle Cloud (the older address), Azure (the virtual public
// address of the host) and Scaleway (metadata over IPv6).
var metadata = [...]netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("fd00:42::42"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("168.63.129.16"),
}

// Prefixes of IPv6 addresses that lead to one of IPv4, and at which byte that stands.
var carriers = [...]struct {
	prefix netip.Prefix
	at     int
	flips  bool // its bits are inverted
}{
	{netip.MustParsePrefix("::/96"), 12, false},           // compatible, RFC 4291, 2.5.5.1
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false}, // translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},    // gateways, RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, false},  // those of one network, RFC 8215
	{netip.MustParsePrefix("2002::/16"), 2, false},        // 6to4, RFC 3056
	{netip.MustParsePrefix("2001::/32"), 4, false},        // Teredo, RFC 4380: the server
	{netip.MustParsePrefix("2001::/32"), 12, true},        // and the client
}

// isIsatap reports whether an address ends as those of RFC 5214 do, whatever it begins with.
func isIsatap(b [16]byte) bool {
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// carried calls yield with the IPv4 addresses that an address leads to.
func carried(a netip.Addr, yield func(netip.Addr)) {
	if !a.Is6() {
		return
	}
	b := a.As16()
	for _, c := range carriers {
		if !c.prefix.Contains(a) {
			continue
		}
		v4 := [4]byte(b[c.at:])
		for i := range v4 {
			if c.flips {
				v4[i] = ^v4[i]
			}
		}
		yield(netip.AddrFrom4(v4))
	}
	if isIsatap(b) {
		yield(netip.AddrFrom4([4]byte(b[12:])))
	}
}

// Ranges in which no machine stands: RFC 791, 3.2, and RFC 1112, 4.
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	reserved    = netip.MustParsePrefix("240.0.0.0/4")
)

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
	if address.Contains(allow, a) {
		return nil
	}
	kind := kindOf(a)
	if a != netip.IPv6Unspecified() && a != netip.IPv6Loopback() {
		carried(a, func(v4 netip.Addr) {
			if k := kindOf(v4); k != "" {
				kind = k
			}
		})
	}
	if kind != "" {
		return &AddressError{addr, kind}
	}
	return nil
}

// kindOf says what an address is that is not dialled; "" if it is.
func kindOf(a netip.Addr) string {
	switch {
	case !a.IsValid(), a.IsUnspecified(), thisNetwork.Contains(a):
		return "no address of one machine"
	case a.IsMulticast(), reserved.Contains(a):
		return "an address of many machines or of none"
	case a.IsLinkLocalUnicast():
		return "link-local, where clouds keep the credentials of machines,"
	}
	if slices.Contains(metadata[:], a) {
		return "where a cloud keeps the credentials of machines,"
	}
	return ""
}
