package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// advertised finds the address that others shall dial.
func advertised(cfg Config, bound netip.AddrPort) (netip.AddrPort, error) {
	if cfg.Advertise != "" {
		return advertisedAs(cfg.Advertise, bound)
	}
	if !bound.Addr().IsUnspecified() {
		return bound, nil
	}
	ip, err := ownAddress(surroundings{sources: sourcesTowards, local: localAddresses}, cfg.Seeds, bound.Addr().Is4())
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("no address to advertise for %s: %w", bound, err)
	}
	return netip.AddrPortFrom(ip, bound.Port()), nil
}

// advertisedAs is the address that was configured; port 0 is that of the socket.
func advertisedAs(advertise string, bound netip.AddrPort) (netip.AddrPort, error) {
	u, err := net.ResolveUDPAddr("udp", advertise)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("advertise %q: %w", advertise, err)
	}
	ap, err := addrPortOf(u)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if ap.Port() == 0 {
		ap = netip.AddrPortFrom(ap.Addr(), bound.Port())
	}
	if !ap.Addr().IsValid() || ap.Addr().IsUnspecified() {
		return netip.AddrPort{}, fmt.Errorf("advertise %q: others cannot dial that", advertise)
	}
	return ap, nil
}

// surroundings is what a machine knows of its addresses.
type surroundings struct {
	sources func(target string) []netip.Addr // those from which packets to a host:port leave
	local   func() ([]netip.Addr, error)     // those of all interfaces that are up
}

// somewhere is outside, in each family: addresses for documentation (RFC 5737, RFC 3849), to
// which nothing is sent, and to which a machine has a route if it has one to everywhere.
var somewhere = []string{"192.0.2.1:9", "[2001:db8::1]:9"}

// ownAddress returns the address of this machine under which others reach it: the one from
// which it would send to the nodes that it joins; without those, from which it would send to
// anywhere; and without such a route the only one that it has. With several that are alike
// in that, the error names them: an address of a bridge, such as Docker's, which is the same
// on every machine, would reach nobody. A machine that has only loopback has that, unless a node
// that it joins is elsewhere: then its network is not up yet, and under loopback nobody would reach it.
func ownAddress(s surroundings, seeds []string, only4 bool) (netip.Addr, error) {
	for _, targets := range [][]string{seeds, somewhere} {
		var from []netip.Addr
		for _, target := range targets {
			from = append(from, s.sources(target)...)
		}
		if ip, err := theOnly(from, only4); ip.IsValid() || err != nil {
			return ip, err
		}
	}
	local, err := s.local()
	if err != nil {
		return netip.Addr{}, err
	}
	if ip, err := theOnly(local, only4); ip.IsValid() || err != nil {
		return ip, err
	}
	for _, seed := range seeds {
		if !slices.ContainsFunc(s.sources(seed), netip.Addr.IsLoopback) {
			return netip.Addr{}, fmt.Errorf("this machine has no address yet from which %s can be reached: bring its network up first, or advertise the address that it will have", seed)
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

// theOnly returns the one address that another machine could dial, of IPv4 if there is any,
// which is what most networks route. It returns the zero Addr if there is none.
func theOnly(addrs []netip.Addr, only4 bool) (netip.Addr, error) {
	var v4, v6 []netip.Addr
	for _, a := range addrs {
		switch a = a.Unmap(); {
		case a.IsLoopback(), a.IsLinkLocalUnicast(), a.IsUnspecified():
		case a.Is4() && !slices.Contains(v4, a):
			v4 = append(v4, a)
		case a.Is6() && !only4 && !slices.Contains(v6, a):
			v6 = append(v6, a)
		}
	}
	found := v4
	if len(found) == 0 {
		found = v6
	}
	switch len(found) {
	case 0:
		return netip.Addr{}, nil
	case 1:
		return found[0], nil
	}
	return netip.Addr{}, fmt.Errorf("this machine has several, and nothing says which of them other nodes reach: %v; advertise that one", found)
}

// resolveLimit bounds the search for the addresses of a seed. One that has none yet does not
// keep a node from starting.
const resolveLimit = 2 * time.Second

// sourcesTowards asks the routes of the system. Nothing is sent.
func sourcesTowards(target string) []netip.Addr {
	ctx, cancel := context.WithTimeout(context.Background(), resolveLimit)
	defer cancel()
	addrs, err := resolve(ctx, target)
	if err != nil {
		return nil
	}
	var from []netip.Addr
	for _, addr := range addrs {
		conn, err := net.Dial("udp", addr.String())
		if err != nil {
			continue // there is no route
		}
		if own, err := localAddrPort(conn); err == nil {
			from = append(from, own.Addr())
		}
		_ = conn.Close() // nothing was sent
	}
	return from
}

// localAddresses returns the addresses of all interfaces that are up.
func localAddresses() ([]netip.Addr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	var errs []error
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		of, err := i.Addrs()
		errs = append(errs, err)
		for _, a := range of {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				addrs = append(addrs, p.Addr())
			}
		}
	}
	if len(addrs) == 0 {
		return nil, errors.Join(errs...)
	}
	return addrs, nil
}
