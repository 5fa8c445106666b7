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

// size is how many sites of how many nodes there are; a star says that they are replicas alone.
func (s shape) size() string {
	if s.Thin {
		return fmt.Sprintf("%d × %d*", s.Sites, s.Nodes)
	}
	return fmt.Sprintf("%d × %d", s.Sites, s.Nodes)
}

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

// closeEvery is how often a tick is over, which every row and summary says.
const closeEvery = 10 * time.Second

// simulated returns the meshes that are simulated.
func simulated() []shape {
	var all []shape
	add := func(sites, nodes, rooms int, visitors float64, thin bool) {
		s := shape{Sites: sites, Nodes: nodes, Rooms: rooms, Policy: room.Escrow, Visitors: visitors, Thin: thin, Before: 100 * time.Second, Span: time.Minute}
		if thin {
			s.Before, s.Span = 5*time.Second, 2*closeEvery
		}
		if sites > 100 {
			s.Span = closeEvery
		}
		all = append(all, s)
	}
	for _, rooms := range []int{1, 100} {
		add(1, 3, rooms, 0, false)
		add(1, 12, rooms, 0, false)
		add(3, 3, rooms, 0, false)
	}
	add(10, 3, 1, 0, false)
	for _, rooms := range []int{1, 10, 100} {
		add(1, 3, rooms, 1, false)
		add(3, 3, rooms, 1, false)
		add(3, 3, rooms, 1./3, false)
	}
	add(1, 12, 10, 1, false)
	add(10, 1, 10, 1, false)
	add(10, 3, 10, .1, false)
	add(30, 1, 1, 1, false)
	add(3, 1, 10, 1, false)
	all[len(all)-1].Before = 11 * time.Minute // so long that no more ticks come in than are forgotten
	for _, size := range [][2]int{{1, 3}, {3, 3}, {10, 1}} {
		add(size[0], size[1], 10, fullLimit*fullAt/session.Seconds()/float64(size[0]), false)
		s := &all[len(all)-1]
		s.Full, s.Before, s.Span = true, 200*time.Second, 100*time.Second
	}
	add(30, 3, 10, 1./30, true)
	add(100, 1, 1, 1, true)
	add(100, 1, 10, .01, true)
	add(300, 1, 1, 0, true)
	add(300, 1, 1, 1, true)
	add(300, 1, 10, 1./300, true)
	add(300, 1, 100, 1./300, true)
	add(300, 3, 1, 1, true)
	return all
}
