package catalog

import (
	"strings"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
)

// The kinds of keys, which stand before the first slash.
const (
	kindZone  = "zone"
	kindRoom  = "room"
	kindEvent = "event"
	kindRule  = "rule"
	kindLimit = "limit"
	kindText  = "text"
	kindFile  = "file"
)

// deletedMark is what stands behind the key of a thing that is deleted for good, in place of
// the name of a unit.
const deletedMark = "deleted"

// IsKey reports whether a key of the last-writer map is one of a catalog.
func IsKey(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	switch kind {
	case kindZone, kindRoom, kindEvent, kindRule, kindLimit, kindText, kindFile:
		return true
	}
	return false
}

func zoneKey(zone string) string { return kindZone + "/" + zone }

func roomKey(room crdt.RoomID) string { return kindRoom + "/" + room.String() }

func eventKey(room crdt.RoomID, id ID) string {
	return kindEvent + "/" + room.String() + "/" + id.String()
}

func ruleKey(room crdt.RoomID, id ID) string {
	return kindRule + "/" + room.String() + "/" + id.String()
}

func limitKey(id limit.ID) string { return kindLimit + "/" + id.String() }

// owner returns what a key is read with: the room that it is of, or all rate limits. ok is
// false for a key that is of neither, and for one that is not in the form in which it is
// written: else two things had one id.
func owner(key string) (room crdt.RoomID, ok bool) {
	kind, rest, _ := strings.Cut(key, "/")
	name, of, _ := strings.Cut(rest, "/")
	switch kind {
	case kindLimit:
		return ofLimits, true
	case kindRoom, kindEvent, kindRule, kindText:
	default:
		return room, false
	}
	id, err := crdt.ParseRoomID(name)
	if err != nil || id.String() != name || id == ofLimits && kind != kindText {
		return room, false
	}
	return id, kind == kindRoom || of != ""
}

// ofLimits stands for a room where rate limits stand, which are of none.
var ofLimits crdt.RoomID

// IsZoneName reports whether a zone may have that name: 1 to MaxZone letters, digits, '-',
// '_' or '.'.
func IsZoneName(s string) bool {
	if s == "" || len(s) > MaxZone {
		return false
	}
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b != '-' && b != '_' && b != '.' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}
