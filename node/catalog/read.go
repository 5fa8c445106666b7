package catalog

import (
	"cmp"
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
	zones map[string]Zone
	rooms map[crdt.RoomID]*Room
	order []*Room // by zone, then by age

	limits []RateLimit // in the order in which they are asked
}

// Read returns the catalog that a map holds. What does not decode is nobody's: it is
// passed over.
func Read(m Map) *Catalog {
	r := reader{m: m, rooms: map[crdt.RoomID]*unread{}}
	c := &Catalog{zones: map[string]Zone{}, rooms: map[crdt.RoomID]*Room{}}
	for key := range m.Keys() {
		switch kind, rest, _ := strings.Cut(key, "/"); kind {
		case kindZone:
			r.zone(c, rest)
		case kindLimit:
			r.takeLimit(rest, key)
		default:
			r.takeKey(key)
		}
	}
	c.limits = r.orderedLimits()
	r.finishInto(c)
	return c
}

// older orders rooms by when they were made.
func older(a, b *Room) int {
	return cmp.Or(a.Created.Compare(b.Created), a.Settings.ID.Compare(b.Settings.ID))
}

// reader reads values of a map.
type reader struct {
	m     Map
	rooms map[crdt.RoomID]*unread

	limits []RateLimit
}

// unread is a room of which not everything is read.
type unread struct {
	room  Room
	there bool // it has an identity
	order []string
	page  textRef
	pages map[ID]textRef // of events
}

// value decodes what stands under a key.
func (r *reader) value(key string, into any) (at time.Time, ok bool) {
	value, stamp, ok := r.m.Get(key)
	if !ok || json.Unmarshal(value, into) != nil {
		return at, false
	}
	return time.UnixMilli(stamp.Wall).UTC(), true
}

func (r *reader) take(kind string, id crdt.RoomID, of, key string) {
	u := r.rooms[id]
	if u == nil {
		u = &unread{}
		u.room.Settings.ID = id
		r.rooms[id] = u
	}
	var at time.Time
	switch kind {
	case kindRoom:
		at = r.takeGroup(u, of, key)
	case kindEvent:
		at = r.takeEvent(u, of, key)
	case kindRule:
		at = r.takeRule(u, of, key)
	case kindOrder:
		at, _ = r.value(key, &u.order)
	}
	if at.After(u.room.Modified) {
		u.room.Modified = at
	}
}

func (r *reader) takeGroup(u *unread, name, key string) time.Time {
	for _, kind := range groups {
		if kind.name != name {
			continue
		}
		g := kind.make()
		at, ok := r.value(key, g)
		if !ok {
			return time.Time{}
		}
		g.into(&u.room)
		if name == identity {
			u.there = IsZoneName(u.room.Zone)
		}
		if look, ok := g.(*lookGroup); ok {
			u.page = look.Page
		}
		return at
	}
	return time.Time{}
}

func (r *reader) takeEvent(u *unread, name, key string) time.Time {
	var v eventValue
	id, err := ParseID(name)
	at, ok := r.value(key, &v)
	if !ok || err != nil {
		return time.Time{}
	}
	e := v.event(id)
	e.Modified = at
	if v.Page != nil {
		if u.pages == nil {
			u.pages = map[ID]textRef{}
		}
		u.pages[id] = *v.Page
	}
	u.room.Events = append(u.room.Events, e)
	return at
}

func (r *reader) takeRule(u *unread, name, key string) time.Time {
	var v ruleValue
	id, err := ParseID(name)
	at, ok := r.value(key, &v)
	if !ok || err != nil {
		return time.Time{}
	}
	rule := v.rule(id)
	rule.Modified = at
	u.room.Rules = append(u.room.Rules, rule)
	return at
}

// finish puts what was read of a room in order, and its texts together.
func (r *reader) finish(u *unread) *Room {
	whole := u.room // by itself: the rest of u is of no use any more
	room := &whole
	room.Settings = room.Settings.WithDefaults()
	slices.SortFunc(room.Events, func(a, b Event) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	inOrder(room.Rules, u.order, func(r *Rule) string { return r.ID.String() }, func(r *Rule) time.Time { return r.Created })

	id, ok := room.Settings.ID, false
	if room.Settings.Front.CustomPage, ok = text(r.m, id, u.page); !ok {
		room.Incomplete = "room"
	}
	for i := range room.Events {
		e := &room.Events[i]
		ref, own := u.pages[e.ID]
		if !own {
			continue
		}
		s, ok := text(r.m, id, ref)
		if ok {
			e.CustomPage = &s
		} else {
			room.Incomplete = e.Name
		}
	}
	return room
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
