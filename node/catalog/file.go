package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/room"
)

// Rooms may stand in a node's configuration file as well. What the file says is taken when
// a node starts, and after that operators change it by the API like any other room. What
// they have changed must not come undone because a node starts again with the file that it
// had, or because another one's file is older; and who changes the file and starts the node
// again means it. So each node remembers what its file said, unit by unit, and takes what
// has changed in its own file since.
//
// What is deleted stays so at nodes that start with a file that has it, also at one that starts
// for the first time. Where the file has changed since it is made once more, under another id.

// Prints are fingerprints of what a file says of a room, by unit, of which those have none that
// have their default. Nil: it was never read.
type Prints map[string]string

const (
	printEvents = "events"
	printRules  = "rules"
)

// FileRoom returns a room as a file has it. Events and rules have no ids there; the same
// name or the same place in the list gives the same id again.
func FileRoom(zone, description string, s room.Settings, now time.Time) *Room {
	now = now.UTC().Truncate(time.Millisecond) // as those that are made by the API
	r := &Room{Zone: zone, Description: description, Created: now, Settings: s.Clone(), thing: thing{file: true}}
	for _, e := range r.Settings.Events {
		r.Events = append(r.Events, Event{ID: idFrom(s.ID, "event", e.Name), Created: now, Event: e, thing: thing{file: true}})
	}
	for i, rule := range r.Settings.Front.Rules {
		r.Rules = append(r.Rules, Rule{ID: idFrom(s.ID, "rule", strconv.Itoa(i)), Version: 1, Created: now, Rule: rule, thing: thing{file: true}})
	}
	r.Settings.Events, r.Settings.Front.Rules = nil, nil
	return r
}

func idFrom(room crdt.RoomID, kind, name string) (id ID) {
	sum := sha256.Sum256([]byte(room.String() + "/" + kind + "/" + name))
	copy(id[:], sum[:])
	return id
}

// current returns the first id under which nothing was deleted, of one that is made of what a file
// says and those that follow it, and whether that is another one.
func (c *Catalog) current(id ID, key func(ID) string) (is ID, deleted bool) {
	for c.deleted(key(id)) {
		sum := sha256.Sum256(append([]byte("made once more\x00"), id[:]...))
		copy(id[:], sum[:])
		deleted = true
	}
	return id, deleted
}

// Deleted reports whether a room that came from a file was deleted.
func (c *Catalog) Deleted(id crdt.RoomID) bool { return c.deleted(roomKey(id)) }

// PrintsOf returns the fingerprints of a room from a file.
func PrintsOf(r *Room) Prints {
	p, fresh := Prints{}, freshRoom()
	for i := range roomUnits {
		if u := &roomUnits[i]; !u.born && !bytes.Equal(u.value(r), u.value(&fresh)) {
			p[u.name] = printOf(json.RawMessage(u.value(r)))
		}
	}
	for name, v := range map[string]any{unitPage: r.Settings.Front.CustomPage, printEvents: r.Whole().Events, printRules: r.Whole().Front.Rules} {
		if s := encode(v); string(s) != `""` && string(s) != "[]" {
			p[name] = printOf(v)
		}
	}
	return p
}

func printOf(v any) string {
	sum := sha256.Sum256(encode(v))
	return hex.EncodeToString(sum[:8])
}

// Bring returns what becomes of a room when a node starts whose file has it so, and had it
// as before says: the file's if there was none, else the one that there is with the units
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
	for i := range roomUnits {
		if u := &roomUnits[i]; !u.born && u.name != unitPage && changed(u.name) {
			u.set(is, u.value(brought))
		}
	}
	if changed(unitPage) {
		is.Settings.Front.CustomPage = brought.Settings.Front.CustomPage
	}
	id := is.Settings.ID
	if changed(printEvents) {
		is.Events = slices.Clone(brought.Events)
		for i := range is.Events {
			e := &is.Events[i]
			e.ID, _ = c.current(e.ID, func(e ID) string { return eventKey(id, e) })
		}
	}
	if changed(printRules) {
		is.Rules = slices.Clone(brought.Rules)
		for i := range is.Rules {
			r := &is.Rules[i]
			r.ID, _ = c.current(r.ID, func(r ID) string { return ruleKey(id, r) })
		}
	}
	return is
}

// ReadPrints returns what a node remembers of a room in its file; nil: nothing.
func ReadPrints(m Map, room crdt.RoomID, node crdt.NodeID) Prints {
	value, _, ok := m.Get(PrintsKey(room, node))
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
	return []Write{{PrintsKey(room, node), encode(p)}}
}

// PrintsKey returns the key of what a node remembers of a room in its file.
func PrintsKey(room crdt.RoomID, node crdt.NodeID) string {
	return kindFile + "/" + room.String() + "/" + node.String()
}

// InFiles yields all rooms that nodes may remember to have in their files, and what stands there for rate limits, each once.
func (c *Catalog) InFiles() iter.Seq[crdt.RoomID] {
	return func(yield func(crdt.RoomID) bool) {
		if !yield(ofLimits) {
			return
		}
		for id := range c.rooms {
			if !yield(id) {
				return
			}
		}
		for id := range c.left { // deleted ones stay in files
			if c.rooms[id] == nil && id != ofLimits && !yield(id) {
				return
			}
		}
	}
}
