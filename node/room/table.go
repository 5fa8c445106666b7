package room

import "strings"

// Table finds what stands at the route of a request: of the routes that hold it those
// of the exact host come before those of every host, and then the longest path wins.
// Whatever is looked up in one Table and in another of the same routes is found at the
// same route. The zero value holds nothing. Add is not to be called at the same time
// as anything else.
type Table[T any] struct {
	hosts map[string]*paths[T]
	any   paths[T] // of every host
}

// paths are what stands on a host.
type paths[T any] struct {
	first string       // a Route.Prefix; most hosts have but one
	one   T            // what stands there
	some  bool         // something does
	more  map[string]T // by Route.Prefix, the others; nil: there are none
	depth int          // the most slashes in one
}

// Add has v stand at r, if nothing stands there yet.
func (t *Table[T]) Add(r Route, v T) {
	p := &t.any
	if r.Host != "" {
		if p = t.hosts[r.Host]; p == nil {
			if t.hosts == nil {
				t.hosts = map[string]*paths[T]{}
			}
			p = &paths[T]{}
			t.hosts[r.Host] = p
		}
	}
	p.add(r.Prefix(), v)
}

func (p *paths[T]) add(prefix string, v T) {
	if _, taken := p.at(prefix); taken {
		return
	}
	p.depth = max(p.depth, strings.Count(prefix, "/"))
	if !p.some {
		p.first, p.one, p.some = prefix, v, true
		return
	}
	if p.more == nil {
		p.more = map[string]T{}
	}
	p.more[prefix] = v
}

// at returns what stands at a prefix.
func (p *paths[T]) at(prefix string) (v T, ok bool) {
	if p.some && p.first == prefix {
		return p.one, true
	}
	v, ok = p.more[prefix]
	return v, ok
}

// Find returns what stands at the route of a request, and whether anything does. host
// is in lower case and has no port; path is decoded and clean. It does not allocate.
func (t *Table[T]) Find(host, path string) (v T, ok bool) {
	if p := t.hosts[host]; p != nil {
		if v, ok = p.find(path); ok {
			return v, true
		}
	}
	return t.any.find(path)
}

// find looks for path, then for what is above it: "/a" holds "/a" and "/a/b", not
// "/ab". Of a path that goes deeper than any route it looks at the upper part only,
// so that the length of a path costs little.
func (p *paths[T]) find(path string) (v T, ok bool) {
	for end := upTo(path, p.depth); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
		if v, ok = p.at(path[:end]); ok {
			return v, true
		}
	}
	return v, false
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
