package catalog

import (
	"fmt"

	"github.com/ropeline/ropeline/crdt"
)

// Write is one key of the last-writer map that is to be set. A nil Value deletes.
type Write struct {
	Key   string
	Value []byte
}

// By returns the catalog as it is given to one who writes. written is a number that is another
// one for each of its writes.
func (c *Catalog) By(node crdt.NodeID, written uint64) *Catalog {
	as := *c
	as.by = fmt.Sprintf("%s/%d", node, written)
	return &as
}

// ZoneWrites returns what is to be written for a zone to be so.
func ZoneWrites(name string, z Zone) []Write {
	return []Write{{zoneKey(name), encode(zoneValue{z.SearchEngineCrawlerBypass})}}
}

// Writes returns what is to be written, in that order, for a room to become what is says
// where it was what was says; a nil was makes a room, and a nil is drops one. Only what
// differs is written. What others refer to comes first and what goes comes last, so that
// who has heard of a part can use it. was has to be of a catalog that was read.
func (c *Catalog) Writes(was, is *Room) []Write {
	w := &writer{by: c.by}
	if is == nil {
		if was != nil {
			w.dropRoom(was)
		}
		return w.all
	}
	id, now := is.Settings.ID, *is
	old, made := was, was == nil
	if made {
		fresh := freshRoom()
		old = &fresh
	}
	now.page = w.text(id, roomKey(id), old.Settings.Front.CustomPage, now.Settings.Front.CustomPage, old.page)
	listedEvents(id).write(w, old.Events, now.Events)
	rules := listedRules(id)
	rules.write(w, old.Rules, ranked(old.Rules, now.Rules, rules.at, rules.key))
	if made {
		w.set(roomKey(id), roomUnits.written(&now, old)) // last: from then on the room is there
	} else {
		change(w, roomKey(id), roomUnits, old, &now)
	}
	return w.all
}

func (w *writer) dropRoom(r *Room) {
	id := r.Settings.ID
	w.drop(roomKey(id), &r.thing)
	for i := range r.Events {
		w.drop(eventKey(id, r.Events[i].ID), &thing{changed: r.Events[i].changed}) // no mark: the room is gone for good
	}
	for i := range r.Rules {
		w.drop(ruleKey(id, r.Rules[i].ID), &thing{changed: r.Rules[i].changed})
	}
}
