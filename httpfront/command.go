package httpfront

import (
	"bytes"
	"slices"

	"github.com/ropeline/ropeline/httpfront/http1"
	"github.com/ropeline/ropeline/node/room"
)

// commandFields are the header fields in which the origin may tell the room
// something: the one that origins of waiting rooms know, and our own.
var commandFields = [...]string{"Cf-Waiting-Room-Command", "Ropeline-Command"}

// isCommand reports whether a field of this name is between the origin and us.
func isCommand(name []byte) bool { return isOneOf(name, commandFields[:]) }

// isOneOf reports whether a field has one of names, in any case.
func isOneOf(field []byte, names []string) bool {
	for _, name := range names {
		if len(field) == len(name) && bytes.EqualFold(field, []byte(name)) {
			return true
		}
	}
	return false
}

// revokes reports whether the origin wants the visitor's session ended. A command in a trailer
// comes too late, since the pass is part of the head that has gone by then.
func revokes(h *http1.Response) bool {
	for i := range h.Fields {
		if f := &h.Fields[i]; isCommand(f.Name) && http1.HasToken(f.Value, string(room.Revoke)) {
			return true
		}
	}
	return false
}

// obey carries out what the origin has told in h, if the room lets it.
// The answer that told it still reaches the visitor, who is new from then on. It reports
// whether the session was ended.
func (f *Front) obey(a *admitted, h *http1.Response) bool {
	if !revokes(h) || a.room == nil || !a.pass.Accepted() || !slices.Contains(a.settings.EnabledOriginCommands, room.Revoke) {
		return false
	}
	a.room.End(a.pass, f.cfg.Clock())
	a.cookie = a.req.appendNoCookie(nil, a.settings)
	return true
}
