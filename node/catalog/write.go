package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ropeline/ropeline/crdt"
)

// Write is one key of the last-writer map that is to be set. A nil Value deletes.
type Write struct {
	Key   string
	Value []byte
}

// ZoneWrites returns what is to be written for a zone to be so.
func ZoneWrites(name string, z Zone) []Write {
	return []Write{{zoneKey(name), encode(zoneValue{z.SearchEngineCrawlerBypass})}}
}

// Writes returns what is to be written, in that order, for a room to become what is says
// where it was what was says; a nil was makes a room, and a nil is drops one. Only what
// differs is written. Texts come first and what is not needed any more goes last, so that
// who has heard of a part can use it.
func Writes(was, is *Room) []Write {
	var id crdt.RoomID
	switch {
	case is != nil:
		id = is.Settings.ID
	case was != nil:
		id = was.Settings.ID
	}
	old, texts := values(was)
	now, wanted := values(is)
	return differences(id, old, now, texts, wanted)
}

// differences returns what is to be written for values to become others, and for texts to
// be those that are wanted.
func differences(id crdt.RoomID, old, now map[string][]byte, texts, wanted map[string]string) (all []Write) {
	for _, hash := range slices.Sorted(maps.Keys(wanted)) {
		if _, there := texts[hash]; !there {
			all = append(all, pieces(id, wanted[hash])...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if !bytes.Equal(old[key], now[key]) {
			all = append(all, Write{key, now[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, kept := now[key]; !kept {
			all = append(all, Write{Key: key})
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(texts)) {
		if _, kept := wanted[hash]; kept {
			continue
		}
		for _, w := range pieces(id, texts[hash]) {
			all = append(all, Write{Key: w.Key})
		}
	}
	return all
}

// values returns all that stands in the map for a room, and its texts by their hashes.
func values(r *Room) (all map[string][]byte, texts map[string]string) {
	all, texts = map[string][]byte{}, map[string]string{}
	if r == nil {
		return all, texts
	}
	id := r.Settings.ID
	text := func(s string) {
		if s != "" {
			texts[refOf(s).Hash] = s
		}
	}
	for _, kind := range groups {
		g := kind.make()
		g.of(r)
		all[groupKey(id, kind.name)] = encode(g)
	}
	text(r.Settings.Front.CustomPage)
	for i := range r.Events {
		e := &r.Events[i]
		all[eventKey(id, e.ID)] = encode(valueOfEvent(e))
		if e.CustomPage != nil {
			text(*e.CustomPage)
		}
	}
	var order []string
	for i := range r.Rules {
		all[ruleKey(id, r.Rules[i].ID)] = encode(valueOfRule(&r.Rules[i]))
		order = append(order, r.Rules[i].ID.String())
	}
	if len(order) > 1 {
		all[orderKey(id)] = encode(order)
	}
	return all, texts
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("catalog: %T: %v", v, err)) // only of values that cannot be written at all
	}
	return b
}
