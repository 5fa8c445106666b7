// Package forwarding knows the header fields that tell a site where a request came from or
// where it goes. Sites and their libraries believe them, so a visitor's are dropped before a
// site, and what stands in front of it writes its own.
package forwarding

import (
	"slices"
	"strings"
)

// names are in lower case. docs/security.md lists them, and the examples for other proxies drop
// them.
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

// Is reports whether a field is one of them.
func Is[T []byte | string](name T) bool { return Has(all, name) }

var all = NewSet(names...)

// lengthMax is more than the longest name in a Set has.
const lengthMax = 32

// Set is names of header fields. It does not change.
type Set struct {
	whole  [lengthMax][]string // those of each length that stand for themselves
	begins []string            // those that stand for all that begin so
}

// NewSet returns a Set of names, which are in lower case and shorter than 32 letters. One that
// ends in "-" stands for all that begin so.
func NewSet(names ...string) *Set {
	s := &Set{}
	for _, name := range names {
		if strings.HasSuffix(name, "-") {
			s.begins = append(s.begins, name)
		} else {
			s.whole[len(name)] = append(s.whole[len(name)], name)
		}
	}
	return s
}

// Has reports whether a field has a name of s, in any case. Whatever is neither a letter nor a digit counts as a dash, because
// many sites cannot tell them apart: CGI has underscores for dashes, PHP for dots as well, and Apache for all of them.
func Has[T []byte | string](s *Set, name T) bool {
	var buf [lengthMax]byte
	n := buf[:min(len(name), len(buf))]
	for i := range n {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			n[i] = c + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			n[i] = c
		default:
			n[i] = '-'
		}
	}
	for _, begin := range s.begins {
		if len(n) >= len(begin) && string(n[:len(begin)]) == begin {
			return true
		}
	}
	if len(name) >= lengthMax {
		return false
	}
	return slices.Contains(s.whole[len(n)], string(n))
}
