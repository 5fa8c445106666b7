package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// listValue is a flag value that holds several things. Each Set adds to it; a
// file that gives a list replaces what was inherited, by clear.
type listValue interface {
	pflag.Value
	clear()
}

// addressesValue is a list of addresses; each use of the flag adds to it.
type addressesValue struct{ dst *[]string }

func (v addressesValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strings.Join(*v.dst, ",")
}
func (v addressesValue) Type() string { return "host:port,..." }
func (v addressesValue) clear()       { *v.dst = nil }
func (v addressesValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if err := checkAddress(one); err != nil {
			return err
		}
		if host, _, _ := net.SplitHostPort(one); host == "" {
			return fmt.Errorf("%q is not allowed: the host of the other node is missing", one)
		}
		*v.dst = append(*v.dst, one)
	}
	return nil
}

// prefixesValue is a list of address ranges; each use of the flag adds to it.
type prefixesValue struct{ dst *[]netip.Prefix }

func (v prefixesValue) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, p := range *v.dst {
		words[i] = p.String()
	}
	return strings.Join(words, ",")
}
func (v prefixesValue) Type() string { return "cidr,..." }
func (v prefixesValue) clear()       { *v.dst = nil }
func (v prefixesValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		p, err := netip.ParsePrefix(one)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(one); err == nil {
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		if err != nil {
			return fmt.Errorf("%q is not allowed: an address or a range, such as 10.0.0.0/8 or 192.0.2.7", one)
		}
		*v.dst = append(*v.dst, p.Masked())
	}
	return nil
}

// commandsValue is a list of what the site may tell the room.
type commandsValue struct{ dst *[]room.OriginCommand }

func (v commandsValue) String() string {
	if v.dst == nil {
		return ""
	}
	words := make([]string, len(*v.dst))
	for i, c := range *v.dst {
		words[i] = string(c)
	}
	return strings.Join(words, ",")
}
func (v commandsValue) Type() string { return "word,..." }
func (v commandsValue) clear()       { *v.dst = nil }
func (v commandsValue) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		c := room.OriginCommand(strings.TrimSpace(word))
		if c != room.Revoke {
			return fmt.Errorf("%q is not allowed: %q is the only command there is", c, room.Revoke)
		}
		if !slices.Contains(*v.dst, c) {
			*v.dst = append(*v.dst, c)
		}
	}
	return nil
}
