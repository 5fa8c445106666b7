package room

import "slices"

// Neighbours are rooms that are all Apart from each other. To find that out of one more takes no
// longer among thousands of rooms on hosts of their own than among a few. The zero value is none.
type Neighbours struct {
	rooms  []*Settings
	byHost map[string][]int // those with a route on a host; on "", with one on every host
}

// Add adds s, which is not to change any more, or returns the error of Apart with the first of the rooms
// that s is not apart from, and adds nothing.
func (n *Neighbours) Add(s *Settings) error {
	var met []int
	for r := range s.Routes() {
		if r.Host == "" {
			met = append(met[:0], n.all()...)
			break
		}
		met = append(met, n.byHost[r.Host]...)
	}
	met = append(met, n.byHost[""]...)
	slices.Sort(met)
	for _, i := range slices.Compact(met) {
		if err := Apart(n.rooms[i], s); err != nil {
			return err
		}
	}
	if n.byHost == nil {
		n.byHost = map[string][]int{}
	}
	for r := range s.Routes() {
		n.byHost[r.Host] = append(n.byHost[r.Host], len(n.rooms))
	}
	n.rooms = append(n.rooms, s)
	return nil
}

// all returns the index of each room.
func (n *Neighbours) all() []int {
	all := make([]int, len(n.rooms))
	for i := range all {
		all[i] = i
	}
	return all
}
