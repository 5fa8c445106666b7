package main

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

var (
	sameSites = []room.SameSite{room.SameSiteAuto, room.SameSiteLax, room.SameSiteNone, room.SameSiteStrict}
	secures   = []room.Secure{room.SecureAuto, room.SecureAlways, room.SecureNever}
)

// cookieFlags binds the attributes of a room's cookie.
func cookieFlags(fs *pflag.FlagSet, a *room.CookieAttributes) {
	fs.Var(enumValue[room.SameSite]{&a.SameSite, sameSites}, "samesite", "auto, lax, none or strict")
	fs.Var(enumValue[room.Secure]{&a.Secure, secures}, "secure", "auto, always or never")
	truthFlag(fs, &a.Partitioned, "partitioned", "a cookie of its own in frames of each other site")
}

// bindingFlags binds what passes of a room are bound to.
func bindingFlags(fs *pflag.FlagSet, b *room.Binding) {
	fs.Var(bindingValue{b}, "bind-pass", "from where else a pass counts for nothing: address, user-agent, or both")
	fs.Var(intValue{&b.IPv4Prefix, 8, 32}, "bind-ipv4-prefix", "bits of an IPv4 address that have to stay the same")
	fs.Var(intValue{&b.IPv6Prefix, 16, 64}, "bind-ipv6-prefix", "the same of IPv6")
}

// sharingFlags binds what becomes of passes that are handed round.
func sharingFlags(fs *pflag.FlagSet, s *room.Sharing) {
	fs.Var(enumValue[room.SharedAction]{&s.Action, []room.SharedAction{room.SharedIgnore, room.SharedLog, room.SharedQueue}}, "shared-passes", "a pass of somebody on the site that too many addresses use: ignore, log or queue")
	fs.Var(intValue{&s.Addresses, 1, room.MaxSharedAddresses}, "addresses-per-pass", "addresses (IPv6: networks of 64 bits) that may use one pass within a minute")
}

// newVisitorsFlags binds how many may join the line of a room.
func newVisitorsFlags(fs *pflag.FlagSet, n *room.NewVisitors) {
	fs.Var(intValue{&n.PerAddress, 0, room.MaxNewVisitors}, "max-new-visitors-per-address", "new visitors of one address (IPv6: of one /64) who may join the line of a node per minute; 0: no limit")
	fs.Var(intValue{&n.All, 0, room.MaxNewVisitors}, "max-new-visitors", "new visitors of all addresses who may join the line of a node per minute; 0: no limit")
}

// bindingValue is a list of what passes are bound to.
type bindingValue struct{ dst *room.Binding }

func (v bindingValue) String() string {
	if v.dst == nil {
		return ""
	}
	var words []string
	if v.dst.Address {
		words = append(words, "address")
	}
	if v.dst.UserAgent {
		words = append(words, "user-agent")
	}
	return strings.Join(words, ",")
}
func (v bindingValue) Type() string { return "word,..." }
func (v bindingValue) clear()       { v.dst.Address, v.dst.UserAgent = false, false }
func (v bindingValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		switch strings.TrimSpace(one) {
		case "address":
			v.dst.Address = true
		case "user-agent":
			v.dst.UserAgent = true
		default:
			return fmt.Errorf("%q is not allowed: address, user-agent, or both", one)
		}
	}
	return nil
}

// cookie reads the attributes of a room's cookie. What it does not name stays as it
// is outside the list.
func (r *configReader) cookie(node ast.Node, a *room.CookieAttributes, prefix string) {
	const name = "cookie-attributes"
	r.lines[prefix+name] = lineOf(node)
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	cookieFlags(fs, a)
	r.mapping(node, prefix+name, fs, nil)
}
