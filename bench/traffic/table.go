package traffic

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// String says what is measured, for people.
func (s shape) String() string {
	return fmt.Sprintf("%d × %d nodes, %d rooms, %s", s.Sites, s.Nodes, s.Rooms, s.load())
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

// shapes returns the meshes that are simulated.
func shapes(small bool) []shape {
	var all []shape
	add := func(sites, nodes, rooms int, visitors float64, thin bool) {
		s := shape{Sites: sites, Nodes: nodes, Rooms: rooms, Policy: room.Escrow, Visitors: visitors, Thin: thin, Before: 100 * time.Second, Span: time.Minute}
		if thin {
			s.Before, s.Span = 5*time.Second, 2*time.Second*closeEvery
		}
		if sites > 100 {
			s.Span = time.Second * closeEvery
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
	if small {
		return all
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

// writeSimulated writes the table of what was counted in virtual time.
func writeSimulated(w io.Writer, all []shape, measured []result) {
	fmt.Fprint(w, "| sites × nodes | rooms | visitors of each room | messages/s | its site, B/s | other sites, B/s | all, B/s | model | off | relay, B/s | model | off |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for i, s := range all {
		got, want := measured[i], predict(s)
		near, far := got.Mean.sum()
		mark := ""
		if s.Thin {
			mark = "*"
		}
		fmt.Fprintf(w, "| %d × %d%s | %d | %s | %.1f | %.0f | %.0f | %.0f | %.0f | %s |", s.Sites, s.Nodes, mark, s.Rooms, s.load(),
			near.Messages+far.Messages, near.Bytes, far.Bytes, got.Mean.bytes(), want.Mean.bytes(), off(want.Mean.bytes(), got.Mean.bytes()))
		if s.Sites == 1 {
			fmt.Fprintln(w, " | | |")
			continue
		}
		relay := func(t traffic) float64 { return t.Near[state].Bytes + t.Far[state].Bytes }
		fmt.Fprintf(w, " %.0f | %.0f | %s |\n", relay(got.Relay), relay(want.Relay), off(relay(want.Relay), relay(got.Relay)))
	}
}

// off says by how much a prediction is wrong.
func off(predicted, measured float64) string {
	return fmt.Sprintf("%+.0f %%", 100*(predicted/measured-1))
}
