package catalog

import (
	"strings"

	"github.com/ropeline/ropeline/crdt"
)

// The kinds of keys, which stand before the first slash.
const (
	kindZone  = "zone"
	kindRoom  = "room"
	kindEvent = "event"
	kindRule  = "rule"
	kindOrder = "order"
	kindText  = "text"
	kindFile  = "file"

	kindLimit      = "limit"
	kindLimitOrder = "limitorder"
)

// IsKey reports whether a key of the last-writer map is one of a catalog.
func IsKey(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	switch kind {
	case kindZone, kindRoom, kindEvent, kindRule, kindOrder, kindText, kindFile, kindLimit, kindLimitOrder:
		return true
	}
	return false
}

func zoneKey(zone string) string { return kindZone + "/" + zone }

func groupKey(room crdt.RoomID, group string) string {
	return kindRoom + "/" + room.String() + "/" + group
}

func eventKey(room crdt.RoomID, id ID) string {
	return kindEvent + "/" + room.String() + "/" + id.String()
}

func ruleKey(room crdt.RoomID, id ID) string {
	return kindRule + "/" + room.String() + "/" + id.String()
}

func orderKey(room crdt.RoomID) string { return kindOrder + "/" + room.String() }

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
