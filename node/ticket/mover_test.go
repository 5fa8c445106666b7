package ticket

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func siteCounter(i int) crdt.NodeID { return crdt.NodeID{byte(i + 1), 1} }

// standing returns what the first of some sites knows, each of which holds as many
// rights of both kinds as said and uses none.
func standingOf(held ...int64) Standing {
	in := Standing{Self: siteCounter(0), Site: "a", Held: Amount{held[0], held[0]}, Free: Amount{held[0], held[0]}}
	for i, n := range held {
		in.Sites = append(in.Sites, SiteRights{Name: string(rune('a' + i)), Counter: siteCounter(i), At: at(0), Held: Amount{n, n}, Share: 1 / float64(len(held))})
		in.Supply = in.Supply.Add(Amount{n, n})
	}
	return in
}

func gave(gifts []Gift, to int) (sum Amount) {
	for _, g := range gifts {
		if g.To == siteCounter(to) {
			sum = sum.Add(g.Amount)
		}
	}
	return sum
}

func TestMoverGivesToTheOldestPlacesFirst(t *testing.T) {
	in := standingOf(10, 0, 0)
	in.Sites[1].Eligible, in.Sites[1].Oldest = 8, at(5)
	in.Sites[2].Eligible, in.Sites[2].Oldest = 7, at(2)
	var m Mover
	gifts, _ := m.Move(in, at(10))
	if gave(gifts, 2) != (Amount{7, 7}) || gave(gifts, 1) != (Amount{3, 3}) {
		t.Errorf("gave %+v, want 7 to the oldest and 3 to the next", gifts)
	}
	// What is under way is not sent again; the counts do not show it yet.
	in.Held, in.Free = Amount{}, Amount{}
	in.Sites[0].Held = Amount{}
	if gifts, asks := m.Move(in, at(10)); len(gifts)+len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v with nothing left", gifts, asks)
	}
	in.Held, in.Free = Amount{20, 20}, Amount{20, 20}
	for i := range in.Sites {
		in.Sites[i].At = sec(10.9)
	}
	gifts, _ = m.Move(in, sec(11.2))
	if gave(gifts, 2) != (Amount{}) || gave(gifts, 1) != (Amount{5, 5}) {
		t.Errorf("gave %+v, want only the 5 that are still missing", gifts)
	}
}

func TestMoverKeepsWhatIsNeededHere(t *testing.T) {
	in := standingOf(10, 0)
	in.Sites[0].Eligible = 6
	in.Sites[1].Eligible, in.Sites[1].Oldest = 9, at(1)
	var m Mover
	if gifts, _ := m.Move(in, at(10)); gave(gifts, 1) != (Amount{4, 4}) {
		t.Errorf("gave %+v, want what nobody here is in turn for", gifts)
	}
}

// TestMoverLeavesAnIdleSiteItsLast holds where that costs next to nothing.
func TestMoverLeavesAnIdleSiteItsLast(t *testing.T) {
	for held, want := range map[int64]int64{2 * idleParts: 2*idleParts - 1, 3: 3} {
		in := standingOf(held, 0)
		in.Sites[1].Eligible, in.Sites[1].Oldest = 1000, at(1)
		var m Mover
		if gifts, _ := m.Move(in, at(10)); gave(gifts, 1) != (Amount{want, want}) {
			t.Errorf("gave %+v of %d, want %d", gifts, held, want)
		}
	}
}

func TestMoverSpreadsWhatIsIdle(t *testing.T) {
	for _, c := range []struct {
		held   []int64
		shares []float64
		want   []int64
	}{
		{[]int64{100, 0, 0}, []float64{0.5, 0.3, 0.2}, []int64{0, 30, 20}},
		{[]int64{100, 0, 0}, []float64{0, 0, 0}, []int64{0, 33, 33}},
		{[]int64{10, 0, 0}, []float64{1, 0, 0}, []int64{0, 1, 1}},
		{[]int64{1, 0, 0}, []float64{0.1, 0.8, 0.1}, []int64{0, 1, 0}},
		{[]int64{52, 28, 20}, []float64{0.5, 0.3, 0.2}, []int64{0, 0, 0}},
	} {
		in := standingOf(c.held...)
		for i := range in.Sites {
			in.Sites[i].Share = c.shares[i]
		}
		var m Mover
		gifts, _ := m.Move(in, at(10))
		for i, want := range c.want {
			if got := gave(gifts, i).Places; got < want-1 || got > want+1 || want == 0 && got != 0 {
				t.Errorf("%v by %v: gave %+v, want %v", c.held, c.shares, gifts, c.want)
			}
		}
		if gifts, _ := m.Move(in, sec(10.25)); len(gifts) != 0 {
			t.Errorf("%v: gave %+v again a moment later", c.held, gifts)
		}
	}
}

func TestMoverAsksForVisitorsWhoWaitForAnAnswer(t *testing.T) {
	in := standingOf(0, 40, 8)
	in.Need = 10
	var m Mover
	_, asks := m.Move(in, at(10))
	want := []Ask{{From: siteCounter(1), To: siteCounter(0), Amount: Amount{20, 20}}}
	if !slices.Equal(asks, want) {
		t.Errorf("asked %+v, want %+v", asks, want)
	}
	if _, asks := m.Move(in, at(10).Add(askedFor/2)); len(asks) != 0 {
		t.Errorf("asked %+v while the first is under way", asks)
	}
	if _, asks := m.Move(in, at(10).Add(askedFor)); len(asks) == 0 {
		t.Error("did not ask again although nothing came")
	}
	in.Sites[1].Counter = crdt.NodeID{}
	in.Sites[2].Held = Amount{}
	m = Mover{}
	if _, asks := m.Move(in, at(10)); len(asks) != 0 {
		t.Errorf("asked %+v although nobody in reach has any", asks)
	}
}

func TestMoverAnswersAWant(t *testing.T) {
	in := standingOf(10, 0)
	in.Sites[0].Eligible = 4
	in.Mates = []MateRights{{Node: crdt.NodeID{1, 2}, Held: Amount{5, 5}, Free: Amount{5, 5}}}
	ask := Ask{From: siteCounter(0), To: siteCounter(1), Amount: Amount{11, 1}}
	var m Mover
	gifts, asks := m.Wanted(in, ask, at(10))
	if gave(gifts, 1) != (Amount{10, 1}) || len(asks) != 1 || asks[0] != (Ask{crdt.NodeID{1, 2}, siteCounter(1), Amount{1, 0}}) {
		t.Errorf("gave %+v and asked %+v, want 11 places of both nodes and one rate right", gifts, asks)
	}
	if gifts, asks := m.Wanted(in, ask, sec(10.05)); len(gifts)+len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v once more for a want that came twice", gifts, asks)
	}
	if gifts, _ := m.Wanted(in, Ask{To: crdt.NodeID{77}, Amount: Amount{1, 1}}, at(11)); len(gifts) != 0 {
		t.Errorf("gave %+v to a node that speaks for no site", gifts)
	}
}

func TestMoverEvensOutInsideASite(t *testing.T) {
	in := standingOf(100)
	in.Free = Amount{70, 0}
	in.Mates = []MateRights{{crdt.NodeID{1, 2}, Amount{20, 100}, Amount{20, 0}}, {crdt.NodeID{1, 3}, Amount{60, 100}, Amount{0, 0}}}
	var m Mover
	gifts, asks := m.Move(in, at(10))
	if want := []Gift{{crdt.NodeID{1, 2}, Amount{40, 0}}}; !slices.Equal(gifts, want) || len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v, want 40 places from the richest to the poorest", gifts, asks)
	}
	in.Mates[0].Held = Amount{60, 100}
	in.Held = Amount{60, 100}
	if gifts, asks := m.Move(in, at(20)); len(gifts)+len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v where all have about the same", gifts, asks)
	}
}

// TestMoverBringsPairsTogether has a site with places at some nodes and rate rights
// at others.
func TestMoverBringsPairsTogether(t *testing.T) {
	b, c := crdt.NodeID{1, 2}, crdt.NodeID{1, 3}
	in := standingOf(30)
	in.Free = Amount{6, 0}
	in.Mates = []MateRights{{b, Amount{30, 30}, Amount{21, 0}}, {c, Amount{30, 30}, Amount{0, 9}}}
	var m Mover
	if gifts, asks := m.Move(in, at(10)); len(gifts) != 0 || !slices.Equal(asks, []Ask{{c, b, Amount{0, 7}}, {c, in.Self, Amount{0, 2}}}) {
		t.Errorf("gave %+v and asked %+v, want rate rights to go where places are", gifts, asks)
	}
	in.Free = Amount{}
	in.Need = 4
	m = Mover{evened: at(10)}
	if _, asks := m.Move(in, at(10)); !slices.Equal(asks, []Ask{{b, in.Self, Amount{4, 0}}, {c, in.Self, Amount{0, 4}}}) {
		t.Errorf("asked %+v, want four of each here for those who wait", asks)
	}
	if _, asks := m.Move(in, sec(10.05)); len(asks) != 0 {
		t.Errorf("asked %+v while those are on their way", asks)
	}
}

// TestMoverSpreadsRateRightsByPlacesHeld: places come free where they were used.
func TestMoverSpreadsRateRightsByPlacesHeld(t *testing.T) {
	b, c := crdt.NodeID{1, 2}, crdt.NodeID{1, 3}
	in := standingOf(30)
	in.Free = Amount{0, 30}
	in.Mates = []MateRights{{b, Amount{30, 30}, Amount{}}, {c, Amount{30, 30}, Amount{0, 3}}}
	var m Mover
	if gifts, asks := m.Move(in, at(10)); !slices.Equal(gifts, []Gift{{b, Amount{0, 11}}, {c, Amount{0, 8}}}) || len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v, want eleven rate rights at each node", gifts, asks)
	}
	in.Free = Amount{0, 21}
	in.Mates[0].Free, in.Mates[1].Free = Amount{0, 6}, Amount{0, 6}
	if gifts, asks := m.Move(in, at(20)); len(gifts)+len(asks) != 0 {
		t.Errorf("gave %+v and asked %+v where all have half of their part at least", gifts, asks)
	}
}

// TestMoverAsksElsewhere has visitors wait although a site was asked that seemed to
// have rights.
func TestMoverAsksElsewhere(t *testing.T) {
	in := standingOf(0, 2, 2)
	in.Need = 1
	var m Mover
	asked := func(after time.Duration) int {
		_, asks := m.Move(in, at(10).Add(after))
		for i := range in.Sites {
			if len(asks) == 1 && asks[0].From == siteCounter(i) {
				return i
			}
		}
		return -len(asks)
	}
	first, early, second := asked(0), asked(askedFor/2), asked(askedFor)
	if first != 1 || early != 0 || second != 2 {
		t.Errorf("asked site %d, then %d, then %d; want 1, nobody and 2", first, early, second)
	}
	// What has come is used up already: there is somebody else who waits.
	m.Came("c")
	if next := asked(askedFor + time.Millisecond); next <= 0 {
		t.Errorf("asked %d once rights had come, want a site", next)
	}
}

// TestMoverIsDeterministic gives the same picture twice, sites in another order.
func TestMoverIsDeterministic(t *testing.T) {
	in := standingOf(50, 7, 0, 3, 20)
	for i := range in.Sites {
		in.Sites[i].Eligible = int64(i * 5)
		in.Sites[i].Oldest = at(float64(i % 2))
	}
	in.Need = 3
	other := in
	other.Sites = slices.Clone(in.Sites)
	slices.Reverse(other.Sites)
	var m, n Mover
	for step := range 20 {
		now := at(10).Add(time.Duration(step) * 250 * time.Millisecond)
		g1, a1 := m.Move(in, now)
		g2, a2 := n.Move(other, now)
		if !reflect.DeepEqual(g1, g2) || !reflect.DeepEqual(a1, a2) {
			t.Fatalf("step %d: %+v, %+v and %+v, %+v", step, g1, a1, g2, a2)
		}
	}
}
