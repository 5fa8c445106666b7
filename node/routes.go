package node

import (
	"cmp"
	"slices"
	"strings"
)

// routes finds the room of a request. It is immutable.
type routes struct {
	hosts map[string][]route // longest path first
	any   []route            // rooms of every host
}

// route is one room's path.
type route struct {
	path string
	room *Room // nil: the room is suspended, and hides shorter paths all the same
}

func newRoutes(rooms []*Room) *routes {
	t := &routes{hosts: map[string][]route{}}
	for _, r := range rooms {
		s := r.settings.Load()
		if r.resting.Load() {
			continue
		}
		e := route{path: s.Path, room: r}
		if s.Suspended {
			e.room = nil
		}
		if s.Host == "" {
			t.any = append(t.any, e)
		} else {
			t.hosts[s.Host] = append(t.hosts[s.Host], e)
		}
	}
	longest := func(a, b route) int { return cmp.Compare(len(b.path), len(a.path)) }
	slices.SortStableFunc(t.any, longest)
	for _, routes := range t.hosts {
		slices.SortStableFunc(routes, longest)
	}
	return t
}

// find returns the room with the longest path that holds path, those of the
// exact host before those of every host; nil where there is none, or where it is
// suspended. host is in lower case and has no port.
func (t *routes) find(host, path string) *Room {
	for _, e := range t.hosts[host] {
		if under(path, e.path) {
			return e.room
		}
	}
	for _, e := range t.any {
		if under(path, e.path) {
			return e.room
		}
	}
	return nil
}

// under reports whether path is prefix or lies below it: "/a" holds "/a" and
// "/a/b", not "/ab".
func under(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
