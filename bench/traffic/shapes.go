package traffic

import (
	"fmt"
	"math"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/node/room"
)

// String says what is measured, for people.
func (s shape) String() string {
	return fmt.Sprintf("%s nodes, %d rooms, %s", s.size(), s.Rooms, s.load())
}

// size is how many sites of how many nodes there are.
func (s shape) size() string { return fmt.Sprintf("%d × %d", s.Sites, s.Nodes) }

// row is the name of the mesh in results.
func (s shape) row() string {
	return measurement.Row("mesh", s.size(), "rooms", fmt.Sprint(s.Rooms), "visitors", s.load())
}

func (s shape) load() string {
	switch {
	case s.Full:
		return "full, told at once"
	case s.Visitors == 0:
		return "nobody comes"
	case s.Sites > 1 && math.Abs(s.Visitors*float64(s.Sites)-1) < 1e-6:
		return "one visitor a second, anywhere"
	}
	return fmt.Sprintf("%g a second in each site", math.Round(s.Visitors*100)/100)
}

// simulated returns the meshes that are simulated.
func simulated() []shape {
	var all []shape
	add := func(sites, nodes, rooms int, visitors float64) *shape {
		all = append(all, shape{Sites: sites, Nodes: nodes, Rooms: rooms, Policy: room.Escrow, Visitors: visitors, Before: 100 * time.Second, Span: time.Minute})
		return &all[len(all)-1]
	}
	for _, rooms := range []int{1, 100} {
		add(1, 3, rooms, 0)
		add(1, 12, rooms, 0)
		add(3, 3, rooms, 0)
	}
	add(10, 3, 1, 0)
	for _, rooms := range []int{1, 10, 100} {
		add(1, 3, rooms, 1)
		add(3, 3, rooms, 1)
		add(3, 3, rooms, 1./3)
	}
	add(1, 12, 10, 1)
	add(10, 1, 10, 1)
	add(10, 3, 10, .1)
	add(30, 1, 1, 1)
	add(3, 1, 10, 1).Before = 11 * time.Minute // so long that no more ticks come in than are forgotten
	for _, size := range [][2]int{{1, 3}, {3, 3}, {10, 1}} {
		s := add(size[0], size[1], 10, fullLimit*fullAt/session.Seconds()/float64(size[0]))
		s.Full, s.Before, s.Span = true, 200*time.Second, 100*time.Second
	}
	return all
}
