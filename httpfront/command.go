package httpfront

import (
	"bytes"
	"slices"

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

// revokes reports whether the origin wants the visitor's session ended. A command in a trailer
// comes too late, since the pass is part of the head that has gone by then.
func (h *originHead) revokes() bool {
	for i := range h.fields {
		if f := &h.fields[i]; isCommand(f.name) && hasToken(f.value, string(room.Revoke)) {
			return true
		}
	}
	return false
}

// obey carries out what the origin has told in h, if the room lets it.
// The answer that told it still reaches the visitor, who is new from then on. It reports
// whether the session was ended.
func (f *Front) obey(a *admitted, h *originHead) bool {
	if !h.revokes() || a.room == nil || !a.pass.Accepted() || !slices.Contains(a.settings.EnabledOriginCommands, room.Revoke) {
		return false
	}
	a.room.End(a.pass, f.cfg.Clock())
	a.cookie = a.req.appendNoCookie(nil, a.settings)
	return true
}
