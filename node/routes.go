package node

import "github.com/ropeline/ropeline/node/room"

// routes finds the room of a request. It is immutable.
type routes struct {
	table room.Table[*Room] // nil: the room is suspended, and hides shorter paths all the same
}

func newRoutes(rooms []*Room) *routes {
	t := &routes{}
	for _, r := range rooms {
		if r.resting.Load() {
			continue
		}
		s, found := r.settings.Load(), r
		if s.Suspended {
			found = nil
		}
		for e := range s.Routes() {
			t.table.Add(e, found)
		}
	}
	return t
}

// find returns the room of a request, as room.Table finds it; nil where there is none,
// or where it is suspended. It does not allocate.
func (t *routes) find(host, path string) *Room {
	r, _ := t.table.Find(host, path)
	return r
}
