package main

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ropeline/ropeline/node/room"
)

// cookie reads the attributes of a room's cookie. What it does not name stays as it
// is outside the list.
func (r *configReader) cookie(node ast.Node, a *room.CookieAttributes, prefix string) {
	const name = "cookie-attributes"
	r.lines[prefix+name] = positionOf(node)
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	bind(fs, a, room.CookieFields)
	r.mapping(node, prefix+name, fs, nil)
}
