package room

import "slices"

// Neighbours are rooms from which others are to be Apart. To find out takes no longer among thousands of
// rooms on hosts of their own than among a few. The zero value is none.
type Neighbours struct {
	rooms  []*Settings
	byHost map[string][]int // those with a route on a host, in order; on "", with one on every host
}

// Add adds s, which is not to change any more.
func (n *Neighbours) Add(s *Settings) {
	if n.byHost == nil {
		n.byHost = map[string][]int{}
	}
	for host := range s.hosts() {
		n.byHost[host] = append(n.byHost[host], len(n.rooms))
	}
	n.rooms = append(n.rooms, s)
}

// Apart returns the error of Apart with the first of the rooms that s is not apart from; nil: it is from all.
func (n *Neighbours) Apart(s *Settings) error {
	hosts := s.hosts()
	if _, every := hosts[""]; every {
		for _, o := range n.rooms {
			if err := Apart(o, s); err != nil {
				return err
			}
		}
		return nil
	}
	met := slices.Clone(n.byHost[""])
	for host := range hosts {
		met = append(met, n.byHost[host]...)
	}
	slices.Sort(met)
	for _, i := range slices.Compact(met) {
		if err := Apart(n.rooms[i], s); err != nil {
			return err
		}
	}
	return nil
}

// hosts returns each host of the routes once.
func (s *Settings) hosts() map[string]struct{} {
	all := make(map[string]struct{}, 1)
	for r := range s.Routes() {
		all[r.Host] = struct{}{}
	}
	return all
}
