package room

import (
	"testing"
	"time"
)

// TestTurnsAreShared: at no moment do more nodes have a seat than there are
// seats, and over time each has its part.
func TestTurnsAreShared(t *testing.T) {
	const nodes, seats = 5, 2
	s := Settings{Policy: Even}.WithDefaults()
	start := clock(t, "12:00")
	held := [nodes]int{}
	steps := 0
	for d := time.Duration(0); d < 3*time.Hour; d += 500 * time.Millisecond {
		now, holders := start.Add(d), 0
		for n := range nodes {
			if newTurn(&s, &Input{Nodes: nodeIDs(nodes), Self: nodeID(n)}, now).has(seats) {
				holders++
				held[n]++
			}
		}
		if holders != 0 && holders != seats {
			t.Fatalf("%v: %d nodes hold %d seats", d, holders, seats)
		}
		steps++
	}
	for n, h := range held {
		// Two of five, less the pauses.
		if part := float64(h) / float64(steps); part < 0.28 || part > 0.42 {
			t.Errorf("node %d holds a seat %.2f of the time", n, part)
		}
	}
}

// TestTurnMeetsEveryPoller: whoever asks a node once per refresh interval asks
// in a turn of that node within two frames per node, whenever it began. With
// short turns alone some would miss all of them for long.
func TestTurnMeetsEveryPoller(t *testing.T) {
	const nodes = 5
	for _, refresh := range []time.Duration{5 * time.Second, 20 * time.Second, 37 * time.Second} {
		s := Settings{RefreshInterval: refresh}.WithDefaults()
		frame := (refresh+turnSpan-1)/turnSpan*turnSpan + turnSpan
		for n := range nodes {
			in := Input{Nodes: nodeIDs(nodes), Self: nodeID(n)}
			for offset := time.Duration(0); offset < 10*time.Minute; offset += 777 * time.Millisecond {
				start := clock(t, "12:00").Add(offset)
				now := start
				for !newTurn(&s, &in, now).has(1) {
					if now = now.Add(refresh); now.Sub(start) > 2*nodes*frame+refresh {
						t.Fatalf("refresh %v: who asks node %d from %v on has no turn in %v", refresh, n, start, now.Sub(start))
					}
				}
			}
		}
	}
}
