package catalog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/limit"
)

// Update returns the catalog that a map holds, of which c is what it held before some of its keys were
// written. Rooms of which none of them is are shared with c.
func (c *Catalog) Update(m Map, written iter.Seq[string]) *Catalog {
	zones, rooms, limits := map[string]bool{}, map[crdt.RoomID]bool{}, map[limit.ID]bool{}
	ofLimits := false
	for key := range written {
		kind, rest, _ := strings.Cut(key, "/")
		name, _, _ := strings.Cut(rest, "/")
		switch kind {
		case kindZone:
			zones[rest] = true
		case kindLimit:
			if id, err := limit.ParseID(rest); err == nil {
				limits[id] = true
			}
			ofLimits = true
		case kindLimitOrder:
			ofLimits = true
		case kindRoom, kindEvent, kindRule, kindOrder, kindText:
			if id, err := crdt.ParseRoomID(name); err == nil && id == textsOfLimits {
				ofLimits = true
			} else if err == nil {
				rooms[id] = true
			}
		}
	}
	if len(zones)+len(rooms) == 0 && !ofLimits {
		return c
	}
	next := &Catalog{zones: map[string]Zone{}, rooms: make(map[crdt.RoomID]*Room, len(c.rooms)), limits: c.limits}
	maps.Copy(next.zones, c.zones)
	maps.Copy(next.rooms, c.rooms)
	r := reader{m: m, rooms: map[crdt.RoomID]*unread{}}
	for name := range zones {
		r.zone(next, name)
	}
	for id := range rooms {
		delete(next.rooms, id)
		for key := range m.KeysWith(id) {
			r.takeKey(key)
		}
	}
	r.finishInto(next)
	if ofLimits {
		for i := range c.limits {
			limits[c.limits[i].ID] = true
		}
		for id := range limits {
			r.takeLimit(id.String(), limitKey(id))
		}
		next.limits = r.orderedLimits()
	}
	return next
}

// zone reads a zone.
func (r *reader) zone(into *Catalog, name string) {
	var v zoneValue
	if _, ok := r.value(zoneKey(name), &v); ok && IsZoneName(name) {
		into.zones[name] = Zone{SearchEngineCrawlerBypass: v.CrawlerBypass}
	} else {
		delete(into.zones, name)
	}
}

// takeKey reads what stands under a key of a room.
func (r *reader) takeKey(key string) {
	kind, rest, _ := strings.Cut(key, "/")
	name, of, _ := strings.Cut(rest, "/")
	if id, err := crdt.ParseRoomID(name); err == nil && id.String() == name {
		r.take(kind, id, of, key)
	}
}

// finishInto puts the rooms that were read into a catalog.
func (r *reader) finishInto(c *Catalog) {
	for id, u := range r.rooms {
		if u.there {
			c.rooms[id] = r.finish(u)
		}
	}
	c.order = slices.SortedFunc(maps.Values(c.rooms), func(a, b *Room) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), older(a, b))
	})
}

// Adds reports whether a catalog has a room, an event, a rule or a rate limit that another one had not.
func (c *Catalog) Adds(was *Catalog) bool {
	for _, r := range c.order {
		o := was.rooms[r.Settings.ID]
		if o == nil {
			return true
		}
		if o == r {
			continue
		}
		if slices.ContainsFunc(r.Events, func(e Event) bool { return o.Event(e.ID) == nil }) || slices.ContainsFunc(r.Rules, func(x Rule) bool { return o.Rule(x.ID) == nil }) {
			return true
		}
	}
	return slices.ContainsFunc(c.limits, func(l RateLimit) bool {
		return !slices.ContainsFunc(was.limits, func(o RateLimit) bool { return o.ID == l.ID })
	})
}
