package node

import (
	"cmp"
	"slices"
	"strings"
)

// routes finds the room of a request. It is immutable.
type routes struct {
	hosts map[string][]*Room // longest path first
	any   []*Room            // rooms of every host
}

func newRoutes(rooms []*Room) *routes {
	t := &routes{hosts: map[string][]*Room{}}
	for _, r := range rooms {
		if r.settings.Host == "" {
			t.any = append(t.any, r)
		} else {
			t.hosts[r.settings.Host] = append(t.hosts[r.settings.Host], r)
		}
	}
	longest := func(a, b *Room) int { return cmp.Compare(len(b.settings.Path), len(a.settings.Path)) }
	slices.SortFunc(t.any, longest)
	for _, rooms := range t.hosts {
		slices.SortFunc(rooms, longest)
	}
	return t
}

// find returns the room with the longest path that holds path, those of the
// exact host before those of every host; nil where there is none. host is in
// lower case and has no port.
func (t *routes) find(host, path string) *Room {
	for _, r := range t.hosts[host] {
		if under(path, r.settings.Path) {
			return r
		}
	}
	for _, r := range t.any {
		if under(path, r.settings.Path) {
			return r
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
