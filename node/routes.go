package node

import "strings"

// routes finds the room of a request. It is immutable.
type routes struct {
	hosts map[string]*paths
	any   *paths // of every host
}

// paths are the rooms of a host.
type paths struct {
	rooms map[string]*Room // by room.Route.Prefix; nil: the room is suspended, and hides shorter paths all the same
	depth int              // the most slashes in one
}

func newRoutes(rooms []*Room) *routes {
	t := &routes{hosts: map[string]*paths{}, any: newPaths()}
	for _, r := range rooms {
		if r.resting.Load() {
			continue
		}
		s, found := r.settings.Load(), r
		if s.Suspended {
			found = nil
		}
		for e := range s.Routes() {
			at := t.any
			if e.Host != "" {
				if at = t.hosts[e.Host]; at == nil {
					at = newPaths()
					t.hosts[e.Host] = at
				}
			}
			at.add(e.Prefix(), found)
		}
	}
	return t
}

func newPaths() *paths { return &paths{rooms: map[string]*Room{}} }

// add has r stand at prefix, if nobody stands there yet.
func (p *paths) add(prefix string, r *Room) {
	if _, taken := p.rooms[prefix]; !taken {
		p.rooms[prefix] = r
		p.depth = max(p.depth, strings.Count(prefix, "/"))
	}
}

// find returns the room with the longest path that holds path, those of the
// exact host before those of every host; nil where there is none, or where it is
// suspended. host is in lower case and has no port. It does not allocate.
func (t *routes) find(host, path string) *Room {
	if p := t.hosts[host]; p != nil {
		if r, ok := p.find(path); ok {
			return r
		}
	}
	r, _ := t.any.find(path)
	return r
}

// find looks for path, then for what is above it: "/a" holds "/a" and "/a/b", not
// "/ab". Of a path that goes deeper than any room it looks at the upper part only,
// so that the length of a path costs little.
func (p *paths) find(path string) (r *Room, ok bool) {
	for end := upTo(path, p.depth); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
		if r, ok := p.rooms[path[:end]]; ok {
			return r, true
		}
	}
	return nil, false
}

// upTo returns where the slash after the first n ones stands, and without one the
// length of path.
func upTo(path string, n int) int {
	end := 0
	for range n + 1 {
		next := strings.IndexByte(path[end:], '/')
		if next < 0 {
			return len(path)
		}
		end += next + 1
	}
	return end - 1
}
