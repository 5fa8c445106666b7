package room

import "time"

const (
	// turnSpan is how long a node keeps its turn at places that do not divide.
	turnSpan = 2 * time.Second

	// turnPause passes at the start of a turn before its places may be used, so
	// that news of their use in the turn before has arrived within the site: a
	// view is rebuilt and pushed to peers every 250 ms.
	turnPause = 600 * time.Millisecond
)

// turn is a node's standing in the order in which the nodes of a site get the
// places that do not divide between them.
//
// Frames of two kinds alternate. In one, the order is drawn anew every turnSpan:
// a crowd at any one node soon meets its turn. In the other, one order holds for
// longer than a refresh interval and moves on by one node per frame: a lone
// visitor, who asks once per interval and could miss short turns again and
// again, is sure to ask during a turn of the node it asks at. The wait for that
// is bounded by two frames per node.
type turn struct {
	rank  int // 0 is first
	pause bool
}

// has reports whether the node has one of the first seats.
func (t turn) has(seats int) bool { return !t.pause && t.rank < seats }

func newTurn(s *Settings, in *Input, now time.Time) turn {
	if len(in.Nodes) < 2 {
		return turn{}
	}
	nowMS := max(0, now.UnixMilli())
	span := turnSpan.Milliseconds()
	number := nowMS / span
	_, longest := s.refreshRange()
	frameLen := (longest.Milliseconds()+span-1)/span + 1
	frame := number / frameLen
	pause := turnPause.Milliseconds()
	if frame%2 == 0 {
		return turn{rank: rank(in, uint64(number)), pause: nowMS%span < pause}
	}
	n := int64(len(in.Nodes))
	return turn{
		rank:  int((int64(rank(in, 0)) + frame/2) % n),
		pause: nowMS%(span*frameLen) < pause,
	}
}

// rank returns how many nodes come before Self in the order drawn by number.
func rank(in *Input, number uint64) int {
	self := mix(fold(in.Self) ^ mix(number))
	before := 0
	for _, id := range in.Nodes {
		score := mix(fold(id) ^ mix(number))
		if score > self || score == self && less(id, in.Self) {
			before++
		}
	}
	return before
}
