package ticket

import "testing"

// walkKinds are the kinds of estate walks, by name.
var walkKinds = []struct {
	name string
	walkOptions
	also []string // what happens besides everyEvent
}{
	{"fixed limit", walkOptions{}, nil},
	{"raised limit", walkOptions{Limits: true}, []string{eventMints}},
	{"raised limit, two versions", walkOptions{Limits: true, Older: true}, []string{eventMints}},
}

// everyEvent is what happens in every kind of walk.
var everyEvent = []string{
	eventGives, eventReceives, eventLeaves, eventTakesOver, eventLeftToDead, eventLost, eventDead,
	eventRecovers, eventAgain, eventJoins,
}

// TestEstateWalks walks at random. At no moment more is held than the limit, and in the end all of it
// is, but where a node of the version before does not say what it had recovered. Everything that can
// happen does.
func TestEstateWalks(t *testing.T) {
	walks := uint64(2000)
	if testing.Short() {
		walks /= 4
	}
	for _, kind := range walkKinds {
		t.Run(kind.name, func(t *testing.T) {
			happened, wrong := map[string]int{}, 0
			var seed uint64
			var shortest *estateWalk
			for i := range walks {
				w := walkEstates(t, i+1, kind.walkOptions)
				for _, e := range w.events {
					happened[e.what]++
				}
				if w.wrong == "" {
					continue
				}
				if wrong++; shortest == nil || len(w.events) < len(shortest.events) {
					seed, shortest = i+1, w
				}
			}
			t.Logf("in %d walks: %v", walks, happened)
			if wrong > 0 {
				t.Errorf("%d walks went wrong, the shortest with seed %d: %s\n%s", wrong, seed, shortest.wrong, shortest.log())
			}
			for _, what := range append(kind.also, everyEvent...) {
				if happened[what] == 0 {
					t.Errorf("in %d walks no node %s another", walks, what)
				}
			}
		})
	}
}

// TestEstateWalksThatFoundFaults repeats walks that went wrong before a rule was kept. Where nodes of
// the walk can break the rule, it still goes wrong, so that a seed that finds nothing any more shows.
func TestEstateWalksThatFoundFaults(t *testing.T) {
	for _, x := range []struct {
		rule   string
		seed   uint64
		kept   walkOptions
		broken walkOptions // zero: no node of the walk can break it, or not there any more
	}{
		// What a recovered node had given to one that left, to a node that came after the recovery,
		// is taken from its last ledger, and so held twice.
		{"who came later refuses the recovered", 4634, walkOptions{}, walkOptions{}},
		{"who came later refuses the recovered", 872, walkOptions{Limits: true}, walkOptions{Limits: true, NewcomersTrust: true}},
		{"who came later refuses the recovered", 4116, walkOptions{Limits: true}, walkOptions{Limits: true, NewcomersTrust: true}},
		// Nodes are recovered, then one with which they had dealt, then whoever recovered the first.
		// The word by which the first were recovered counts, and no later paper: else a gift is lost.
		{"who has left gives no word", 5749, walkOptions{}, walkOptions{LeaversSpeak: true}},
		{"the word of the first recovery counts", 5749, walkOptions{}, walkOptions{}},
	} {
		if w := walkEstates(t, x.seed, x.kept); w.wrong != "" {
			t.Errorf("%s: seed %d of %+v: %s\n%s", x.rule, x.seed, x.kept, w.wrong, w.log())
		}
		if x.broken == (walkOptions{}) {
			continue
		}
		if w := walkEstates(t, x.seed, x.broken); w.wrong == "" {
			t.Errorf("%s: seed %d of %+v goes well: find one that needs the rule", x.rule, x.seed, x.broken)
		}
	}
}

// TestEstateWalksNeedRules leaves out one rule after the other: some walk goes wrong.
func TestEstateWalksNeedRules(t *testing.T) {
	const most = 500
	for _, x := range []struct {
		from uint64 // seed
		walkOptions
	}{
		{1, walkOptions{LeftOut: FinalLedgers}},
		{2001, walkOptions{LeftOut: Fence}},
		{1, walkOptions{LeftOut: FreshMint, Limits: true}},
		{1, walkOptions{LeftOut: FreshMint, Limits: true, Older: true}},
	} {
		seed := x.from
		for seed < x.from+most && walkEstates(t, seed, x.walkOptions).wrong == "" {
			seed++
		}
		if seed == x.from+most {
			t.Errorf("%d walks of %+v went well", most, x)
		}
	}
}
