package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// Rooms may stand in a node's configuration file as well. What the file says is taken when
// a node starts, and after that operators change it by the API like any other room. What
// they have changed must not come undone because a node starts again with the file that it
// had, or because another one's file is older; and who changes the file and starts the node
// anew means it. So each node remembers what its file said, group by group, and takes what
// has changed in its own file since.

// Prints are fingerprints of what a file says of a room, by group. Nil: it was never read.
type Prints map[string]string

const (
	printEvents = "events"
	printRules  = "rules"
)

// FileRoom returns a room as a file has it. Events and rules have no ids there; the same
// name or the same place in the list gives the same id again.
func FileRoom(zone, description string, s room.Settings, now time.Time) *Room {
	now = now.Truncate(time.Millisecond) // as those that are made by the API
	r := &Room{Zone: zone, Description: description, Created: now, Settings: s.Clone()}
	for _, e := range r.Settings.Events {
		r.Events = append(r.Events, Event{ID: idFrom(s.ID, "event", e.Name), Created: now, Event: e})
	}
	for i, rule := range r.Settings.Front.Rules {
		r.Rules = append(r.Rules, Rule{ID: idFrom(s.ID, "rule", strconv.Itoa(i)), Version: 1, Created: now, Rule: rule})
	}
	r.Settings.Events, r.Settings.Front.Rules = nil, nil
	return r
}

func idFrom(room crdt.RoomID, kind, name string) (id ID) {
	sum := sha256.Sum256([]byte(room.String() + "/" + kind + "/" + name))
	copy(id[:], sum[:])
	return id
}

// PrintsOf returns the fingerprints of a room from a file.
func PrintsOf(r *Room) Prints {
	still := r.Clone() // when it was read says nothing about the file
	still.Created = time.Time{}
	p := Prints{}
	for _, kind := range groups {
		g := kind.make()
		g.of(still)
		p[kind.name] = printOf(g)
	}
	s := still.Whole()
	p[printEvents], p[printRules] = printOf(s.Events), printOf(s.Front.Rules)
	return p
}

func printOf(v any) string {
	sum := sha256.Sum256(encode(v))
	return hex.EncodeToString(sum[:8])
}

// Bring returns what becomes of a room when a node starts whose file has it so, and had it
// as before says: the file's if there was none, else the one that there is with the groups
// that have changed in the file. A node that starts for the first time changes nothing of a
// room that the others have. Nil: the room was deleted, and the file has not changed since.
func (c *Catalog) Bring(brought *Room, before Prints) *Room {
	was, now := c.rooms[brought.Settings.ID], PrintsOf(brought)
	switch {
	case was == nil && before != nil && maps.Equal(before, now):
		return nil
	case was == nil:
		return brought.Clone()
	}
	is := was.Clone()
	changed := func(name string) bool { return before != nil && before[name] != now[name] }
	for _, kind := range groups {
		if !changed(kind.name) {
			continue
		}
		g := kind.make()
		g.of(brought)
		created := is.Created
		g.into(is)
		is.Created = created
		if kind.name == pageGroup {
			is.Settings.Front.CustomPage = brought.Settings.Front.CustomPage
		}
	}
	if changed(printEvents) {
		is.Events = brought.Clone().Events
	}
	if changed(printRules) {
		is.Rules = brought.Clone().Rules
	}
	return is
}

// ReadPrints returns what a node remembers of a room in its file; nil: nothing.
func ReadPrints(m Map, room crdt.RoomID, node crdt.NodeID) Prints {
	value, _, ok := m.Get(printsKey(room, node))
	var p Prints
	if !ok || json.Unmarshal(value, &p) != nil {
		return nil
	}
	return p
}

// Remember returns what is to be written for a node to remember its file; none if it
// remembers that already.
func (p Prints) Remember(before Prints, room crdt.RoomID, node crdt.NodeID) []Write {
	if maps.Equal(p, before) {
		return nil
	}
	return []Write{{printsKey(room, node), encode(p)}}
}

func printsKey(room crdt.RoomID, node crdt.NodeID) string {
	return kindFile + "/" + room.String() + "/" + node.String()
}
