package main

import (
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

// cookie reads the attributes of a room's cookie. What it does not name stays as it
// is outside the list.
func (r *configReader) cookie(node ast.Node, a *room.CookieAttributes, prefix string) {
	const name = "cookie-attributes"
	r.lines[prefix+name] = lineOf(node)
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	cookieFlags(fs, a)
	r.mapping(node, prefix+name, fs, nil)
}
