package catalog

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// Map is what a catalog is read from: the last-writer map, as crdt.LWW and
// replica.Replica give it.
type Map interface {
	Get(key string) (value []byte, at crdt.Stamp, ok bool)
	Keys() iter.Seq[string]
	KeysWith(id [16]byte) iter.Seq[string] // those that have an id between their first slash and the next
}

// Catalog is all that operators have set. It is for reading; changes are made of clones.
// The zero value is empty.
type Catalog struct {
	zones  map[string]Zone
	rooms  map[crdt.RoomID]*Room
	order  []*Room     // by zone, then by age
	limits []RateLimit // in the order in which they are asked

	left map[crdt.RoomID]leavings // by rooms, and of room zero those of rate limits
	by   string                   // see By
}

// leavings are what there is in the map beside what is there.
type leavings struct {
	deleted []string // keys of things that are marked so, in order
	unused  []string // keys that are of no use any more, in order
}

func newCatalog() *Catalog {
	return &Catalog{zones: map[string]Zone{}, rooms: map[crdt.RoomID]*Room{}, left: map[crdt.RoomID]leavings{}}
}

// Read returns the catalog that a map holds. What does not decode is nobody's: it is
// passed over.
func Read(m Map) *Catalog {
	c := newCatalog()
	keys := map[crdt.RoomID][]string{}
	for key := range m.Keys() {
		if id, ok := owner(key); ok {
			keys[id] = append(keys[id], key)
		} else if kind, name, _ := strings.Cut(key, "/"); kind == kindZone {
			c.readZone(m, name)
		}
	}
	for id, of := range keys {
		c.readOwner(m, id, of)
	}
	c.sortRooms()
	return c
}

func (c *Catalog) sortRooms() {
	c.order = slices.SortedFunc(maps.Values(c.rooms), func(a, b *Room) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), older(a, b))
	})
}

// readOwner reads a room, or all rate limits, of which these are all keys.
func (c *Catalog) readOwner(m Map, id crdt.RoomID, keys []string) {
	slices.Sort(keys)
	r := reader{m: m, room: id, used: map[string]bool{}}
	delete(c.rooms, id)
	delete(c.left, id)
	if id == ofLimits {
		c.limits = r.readLimits(keys)
	} else if room := r.readRoom(keys); room != nil {
		c.rooms[id] = room
	}
	r.noteTexts(keys)
	if len(r.left.deleted)+len(r.left.unused) > 0 {
		slices.Sort(r.left.deleted)
		slices.Sort(r.left.unused)
		c.left[id] = r.left
	}
}

func (c *Catalog) readZone(m Map, name string) {
	var v zoneValue
	value, _, ok := m.Get(zoneKey(name))
	if delete(c.zones, name); ok && IsZoneName(name) && json.Unmarshal(value, &v) == nil {
		c.zones[name] = Zone{SearchEngineCrawlerBypass: v.CrawlerBypass}
	}
}

// older orders rooms by when they were made.
func older(a, b *Room) int {
	return cmp.Or(a.Created.Compare(b.Created), a.Settings.ID.Compare(b.Settings.ID))
}

// reader reads the things of one room, or all rate limits.
type reader struct {
	m    Map
	room crdt.RoomID
	used map[string]bool // versions of texts
	left leavings
}

// take reads one thing, and notes what is of no use any more where that is deleted: all but the
// mark that says so.
func take[T any](r *reader, key string, names []string, us units[T], fresh T, at func(*T) *thing) found[T] {
	f := look(r.m, key, names, us, fresh, at)
	if f.marked {
		r.left.deleted = append(r.left.deleted, key)
		if _, _, born := r.m.Get(key); born { // by a node that had not heard
			r.left.unused = append(r.left.unused, key)
		}
	}
	for _, name := range names {
		if f.gone && name != deletedMark {
			r.left.unused = append(r.left.unused, key+"/"+name)
		}
	}
	return f
}

// text puts a text together, and notes that it is in use.
func (r *reader) text(ref textRef) (s string, ok bool) {
	r.used[ref.Version] = true
	return text(r.m, r.room, ref)
}

// noteTexts notes those that nothing refers to. One whose thing has not arrived yet is among
// them: only who has written it knows.
func (r *reader) noteTexts(keys []string) {
	for _, key := range ofKind(keys, kindText) {
		_, rest, _ := strings.Cut(key[len(kindText)+1:], "/")
		if version, _, _ := strings.Cut(rest, "/"); !r.used[version] {
			r.left.unused = append(r.left.unused, key)
		}
	}
}

// ofKind returns those of some keys that are of a kind. All are in order.
func ofKind(keys []string, kind string) []string {
	from, _ := slices.BinarySearch(keys, kind+"/")
	to, _ := slices.BinarySearch(keys, kind+"0") // which comes behind a slash
	return keys[from:to]
}

// readRoom returns a room whose keys these are, in order; nil: it is not there.
func (r *reader) readRoom(keys []string) *Room {
	key := roomKey(r.room)
	var names []string
	for _, k := range ofKind(keys, kindRoom) {
		if len(k) > len(key) {
			names = append(names, k[len(key)+1:])
		}
	}
	f := take(r, key, names, roomUnits, freshRoom(), func(r *Room) *thing { return &r.thing })
	events, rules := ofKind(keys, kindEvent), ofKind(keys, kindRule)
	if f.gone {
		r.left.unused = append(append(r.left.unused, events...), rules...)
	}
	if !f.there || !IsZoneName(f.is.Zone) {
		return nil
	}
	room := &f.is
	room.Settings.ID, room.Modified = r.room, f.modified
	room.Settings = room.Settings.WithDefaults()
	var ok bool
	if room.Settings.Front.CustomPage, ok = r.text(room.page); !ok {
		room.Incomplete = "room"
	}
	r.readEvents(room, events)
	r.readRules(room, rules)
	return room
}

func (r *reader) readEvents(room *Room, keys []string) {
	l := listedEvents(r.room)
	for key, names := range things(keys, len(eventKey(r.room, ID{}))) {
		f := take(r, key, names, l.us, l.fresh(), l.at)
		if !f.there {
			continue
		}
		e := &f.is
		e.ID, e.Modified = idOf(key), f.modified
		if e.page != nil {
			if s, ok := r.text(*e.page); ok {
				e.CustomPage = &s
			} else {
				room.Incomplete = e.Name
			}
		}
		room.Events = append(room.Events, *e)
		room.Modified = latest(room.Modified, f.modified)
	}
	slices.SortFunc(room.Events, func(a, b Event) int {
		return cmp.Or(a.Created.Compare(b.Created), bytes.Compare(a.ID[:], b.ID[:]))
	})
}

func (r *reader) readRules(room *Room, keys []string) {
	l := listedRules(r.room)
	for key, names := range things(keys, len(ruleKey(r.room, ID{}))) {
		if f := take(r, key, names, l.us, l.fresh(), l.at); f.there {
			f.is.ID, f.is.Modified = idOf(key), f.modified
			room.Rules = append(room.Rules, f.is)
			room.Modified = latest(room.Modified, f.modified)
		}
	}
	inOrder(room.Rules, l.at, func(r *Rule) time.Time { return r.Created }, l.key)
}

// idOf returns the id at the end of the key of a thing.
func idOf(key string) (id ID) {
	hex.Decode(id[:], []byte(key[len(key)-2*len(id):])) // in digits, as things says
	return id
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Unused yields the keys that are of no use any more: pieces of texts that nothing refers to,
// and what is left of things that are deleted. Whoever has written one may delete it. Of a text
// whose thing has not arrived yet only that node knows.
func (c *Catalog) Unused() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, of := range c.left {
			for _, key := range of.unused {
				if !yield(key) {
					return
				}
			}
		}
	}
}

// deleted reports whether a thing is marked so.
func (c *Catalog) deleted(key string) bool {
	id, _ := owner(key)
	_, is := slices.BinarySearch(c.left[id].deleted, key)
	return is
}

// Zone returns the settings of a zone.
func (c *Catalog) Zone(name string) Zone { return c.zones[name] }

// Room returns the room of that id; nil if there is none.
func (c *Catalog) Room(id crdt.RoomID) *Room { return c.rooms[id] }

// Rooms yields the rooms of all zones, by zone and then by age.
func (c *Catalog) Rooms() iter.Seq[*Room] { return slices.Values(c.order) }

// RoomsOf returns the rooms of one zone, oldest first.
func (c *Catalog) RoomsOf(zone string) (rooms []*Room) {
	for _, r := range c.order {
		if r.Zone == zone {
			rooms = append(rooms, r)
		}
	}
	return rooms
}

// Len returns the number of rooms.
func (c *Catalog) Len() int { return len(c.order) }

// Zones returns the names of the zones that have a room or settings, in order.
func (c *Catalog) Zones() []string {
	names := slices.Collect(maps.Keys(c.zones))
	for _, r := range c.order {
		names = append(names, r.Zone)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
