// Package forwarding knows the header fields that tell a site where a request came from or
// where it goes. Sites and their libraries believe them, so a visitor's are dropped before a
// site, and what stands in front of it writes its own.
package forwarding

import (
	"slices"
	"strings"
)

// names are in lower case. One that ends in "-" stands for all that begin so. docs/security.md
// lists them, and the examples for other proxies drop them.
var names = []string{
	"cf-connecting-ip", "cf-connecting-ipv6", "client-ip", "do-connecting-ip", "fastly-client-ip",
	"fly-client-ip", "forwarded", "forwarded-for", "proxy", "remote-addr", "ropeline-",
	"script-name", "true-client-ip", "wl-proxy-client-ip", "x-appengine-user-ip", "x-azure-clientip",
	"x-azure-socketip", "x-client-ip", "x-cluster-client-ip", "x-envoy-external-address",
	"x-forwarded", "x-forwarded-", "x-host", "x-http-host-override", "x-nf-client-connection-ip",
	"x-original-", "x-originating-ip", "x-proxyuser-ip", "x-real-ip", "x-remote-addr",
	"x-remote-ip", "x-rewrite-url", "x-vercel-forwarded-for",
}

// Names returns the names of all such fields, in lower case and in their order. One that ends
// in "-" stands for all that begin so; among them are those in which ropeline itself speaks.
func Names() []string { return slices.Clone(names) }

// lengthMax is more than the longest of them has.
const lengthMax = 32

// whole are those of each length that stand for themselves, and begins those that stand for
// more.
var whole, begins = func() (whole [lengthMax][]string, begins []string) {
	for _, name := range names {
		if strings.HasSuffix(name, "-") {
			begins = append(begins, name)
		} else {
			whole[len(name)] = append(whole[len(name)], name)
		}
	}
	return whole, begins
}()

// Is reports whether a field is one of them, in any case. Underscores count as dashes, because
// many sites cannot tell them apart.
func Is[T []byte | string](name T) bool {
	var buf [lengthMax]byte
	n := buf[:min(len(name), len(buf))]
	for i := range n {
		switch c := name[i]; {
		case c == '_':
			n[i] = '-'
		case 'A' <= c && c <= 'Z':
			n[i] = c + 'a' - 'A'
		default:
			n[i] = c
		}
	}
	for _, begin := range begins {
		if len(n) >= len(begin) && string(n[:len(begin)]) == begin {
			return true
		}
	}
	if len(name) >= lengthMax {
		return false
	}
	return slices.Contains(whole[len(n)], string(n))
}
