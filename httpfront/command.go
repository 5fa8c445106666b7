package httpfront

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/ropeline/ropeline/node/room"
)

// commandFields are the header fields in which the origin may tell the room
// something: the one that origins of waiting rooms know, and our own.
var commandFields = [...]string{"Cf-Waiting-Room-Command", "Ropeline-Command"}

// isCommand reports whether a field of this name is between the origin and us.
func isCommand(name []byte) bool {
	for _, f := range commandFields {
		if len(name) == len(f) && bytes.EqualFold(name, []byte(f)) {
			return true
		}
	}
	return false
}

// takeCommands takes commands out of the origin's head, whether or not they
// count: they are between the origin and us. It reports whether the origin wants
// the visitor's session ended.
//
// A command in a trailer comes too late, since the pass is part of the head that
// has gone by then. It is not passed on either.
func takeCommands(h *fasthttp.ResponseHeader) (revoke bool) {
	for _, name := range commandFields {
		for _, v := range h.PeekAll(name) {
			revoke = revoke || hasToken(v, string(room.Revoke))
		}
		h.Del(name)
	}
	dropTrailers(h, commandFields[:])
	return revoke
}

// dropTrailers takes names out of the announced trailers.
func dropTrailers(h *fasthttp.ResponseHeader, names []string) {
	keys := h.PeekTrailerKeys()
	isNamed := func(key []byte) bool { return slices.Contains(names, string(key)) }
	if !slices.ContainsFunc(keys, isNamed) {
		return
	}
	keys = slices.DeleteFunc(slices.Clone(keys), isNamed)
	h.SetTrailerBytes(bytes.Join(keys, []byte(", "))) // of names that were good before
}

// obey carries out what the origin has told in h at that time, if the room lets it.
// The answer that told it still reaches the visitor, who is new from then on. It reports
// whether the session was ended.
func (a *admitted) obey(h *fasthttp.ResponseHeader, now time.Time) bool {
	revoke := takeCommands(h)
	if !revoke || a.room == nil || !a.pass.Accepted() || !slices.Contains(a.settings.EnabledOriginCommands, room.Revoke) {
		return false
	}
	a.room.End(a.pass, now)
	a.cookie = a.req.appendNoCookie(nil, a.settings)
	return true
}
