package catalog

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ropeline/ropeline/crdt"
)

// Update returns the catalog that a map holds, of which c is what it held before some of its keys were
// written. Rooms of which none of them is are shared with c.
func (c *Catalog) Update(m Map, written iter.Seq[string]) *Catalog {
	var zones []string
	owners, limits := map[crdt.RoomID]bool{}, map[ID]bool{}
	for key := range written {
		kind, name, _ := strings.Cut(key, "/")
		id, ok := owner(key)
		switch {
		case ok:
			owners[id] = true
			noteLimit(key, limits)
		case kind == kindZone:
			zones = append(zones, name)
		}
	}
	if len(zones)+len(owners) == 0 {
		return c
	}
	next := newCatalog()
	next.limits = c.limits
	maps.Copy(next.zones, c.zones)
	maps.Copy(next.rooms, c.rooms)
	maps.Copy(next.left, c.left)
	for _, name := range zones {
		next.readZone(m, name)
	}
	for id := range owners {
		keys := slices.Collect(m.KeysWith(id))
		if id == ofLimits {
			keys = slices.AppendSeq(keys, c.limitKeys(m, limits))
		}
		next.readOwner(m, id, slices.DeleteFunc(keys, func(key string) bool {
			of, ok := owner(key)
			return !ok || of != id
		}))
	}
	next.sortRooms()
	return next
}

// noteLimit notes which rate limit a key is of, if it is of one.
func noteLimit(key string, into map[ID]bool) {
	kind, rest, _ := strings.Cut(key, "/")
	name, _, _ := strings.Cut(rest, "/")
	if id, err := ParseID(name); err == nil && kind == kindLimit {
		into[id] = true
	}
}

// limitKeys yields all keys of rate limits, of which there were those of the catalog, and some.
func (c *Catalog) limitKeys(m Map, some map[ID]bool) iter.Seq[string] {
	for i := range c.limits {
		some[ID(c.limits[i].ID)] = true
	}
	for _, key := range slices.Concat(c.left[ofLimits].deleted, c.left[ofLimits].unused) {
		noteLimit(key, some)
	}
	return func(yield func(string) bool) {
		for id := range some {
			if id == ID(ofLimits) {
				continue // which has been asked for
			}
			for key := range m.KeysWith(id) {
				if !yield(key) {
					return
				}
			}
		}
	}
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
