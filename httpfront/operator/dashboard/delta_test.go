package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// course is how a mesh goes on: its first state, and what each next one is.
type course []Snapshot

// drawCourse draws states of which each is likely to have much in common with the one
// before: things come, go, change, lose optional fields and get them back.
func drawCourse(t *rapid.T) course {
	some := rapid.IntRange(0, 5)
	var all course
	for i := range rapid.IntRange(2, 8).Draw(t, "states") {
		s := Snapshot{Time: time.Unix(int64(i), 0).UTC(), Node: fmt.Sprint(some.Draw(t, "node") / 4), Rooms: []Room{}, Sites: []Site{}, Nodes: []Node{}, Limits: []Limit{}}
		for id := range 4 {
			if some.Draw(t, "is there") == 0 {
				continue
			}
			r := Room{ID: fmt.Sprint(id), Name: "a \"name\"", Waiting: int64(some.Draw(t, "waiting")), QueueAll: some.Draw(t, "queue all") == 0}
			if some.Draw(t, "wait known") > 2 {
				r.WaitSeconds = new(int64(some.Draw(t, "wait")))
			}
			if some.Draw(t, "event") == 0 {
				r.Event = &Event{Name: fmt.Sprint(some.Draw(t, "event name")), Start: s.Time}
			}
			for range some.Draw(t, "points") / 2 {
				r.RecentWaiting = append(r.RecentWaiting, int64(some.Draw(t, "point")))
			}
			s.Rooms = append(s.Rooms, r)
		}
		for id := range some.Draw(t, "nodes") {
			s.Nodes = append(s.Nodes, Node{Node: fmt.Sprint(id), State: "alive", RTTs: map[string]time.Duration{"x": time.Duration(some.Draw(t, "rtt"))}})
		}
		for id := range some.Draw(t, "limits") / 2 {
			s.Limits = append(s.Limits, Limit{ID: fmt.Sprint(id), Keys: OverNodes{Sum: int64(some.Draw(t, "keys"))}})
		}
		for id := range some.Draw(t, "sites") / 2 {
			s.Sites = append(s.Sites, Site{Site: fmt.Sprint("site ", id), Frozen: some.Draw(t, "frozen") == 0})
		}
		all = append(all, s)
	}
	return all
}

// events returns the snapshot of the first state, what leads from each to the next, and
// the snapshot of the last, all as they are sent.
func (c course) events() (first json.RawMessage, deltas []json.RawMessage, last json.RawMessage) {
	before := must(cut(c[0]))
	first = must(before.whole())
	for _, s := range c[1:] {
		d := must(cut(s))
		change, _ := d.since(before)
		deltas = append(deltas, must(json.Marshal(change)))
		before = d
	}
	return first, deltas, must(before.whole())
}

// asMaps decodes a document, with its lists by key.
func asMaps(b []byte) map[string]any {
	all := decode[map[string]any](b)
	for name, key := range keys {
		byKey := map[string]any{}
		items, _ := all[name].([]any)
		for _, item := range items {
			byKey[fmt.Sprint(item.(map[string]any)[key])] = item
		}
		all[name] = byKey
	}
	return all
}

// apply does with a delta what the page does.
func apply(all map[string]any, b []byte) {
	d := decode[struct {
		Fields map[string]any
		Lists  map[string]struct {
			Set  []map[string]any
			Gone []string
		}
	}](b)
	take := func(to, from map[string]any) {
		maps.Copy(to, from)
		maps.DeleteFunc(to, func(_ string, v any) bool { return v == nil })
	}
	take(all, d.Fields)
	for name, l := range d.Lists {
		list := all[name].(map[string]any)
		for _, change := range l.Set {
			id := fmt.Sprint(change[keys[name]])
			if list[id] == nil {
				list[id] = map[string]any{}
			}
			take(list[id].(map[string]any), change)
		}
		for _, id := range l.Gone {
			delete(list, id)
		}
	}
}

// TestDeltasGiveTheSnapshot: who follows knows what who comes now is told.
func TestDeltasGiveTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, deltas, last := drawCourse(t).events()
		all := asMaps(first)
		for _, d := range deltas {
			apply(all, d)
		}
		if want := asMaps(last); !reflect.DeepEqual(all, want) {
			t.Fatalf("deltas give\n%v\nthe snapshot is\n%v", all, want)
		}
	})
}

func TestDeltaOfNothing(t *testing.T) {
	mesh := newFakeMesh(1, 5, 3)
	one, two := must(cut(mesh.Snapshot(time.Unix(1, 0)))), must(cut(mesh.Snapshot(time.Unix(2, 0))))
	if d, any := two.since(one); any {
		t.Errorf("nothing but the time is other, and it tells %+v", d)
	}
}
