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
	{"fixed limit, forgetting", walkOptions{Forget: true}, forgetEvents},
	{"raised limit, forgetting, restarts", walkOptions{Limits: true, Forget: true, Restarts: true}, append([]string{eventMints, eventRestarts}, forgetEvents...)},
}

// everyEvent is what happens in every kind of walk.
var everyEvent = []string{
	eventGives, eventReceives, eventLeaves, eventTakesOver, eventLeftToDead, eventLost, eventDead,
	eventRecovers, eventAgain, eventJoins,
}

var forgetEvents = []string{eventCloses, eventKeeps, eventFolds, eventForgets}

// TestEstateWalks walks at random. At no moment more is held than the limit, and in the end all of it
// is. Everything that can happen does.
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
		{"who came later refuses the recovered", 872, walkOptions{Limits: true}, walkOptions{}},
		{"who came later refuses the recovered", 4116, walkOptions{Limits: true}, walkOptions{}},
		// The same, as it is left to who came later by the node that recovered it, and not heard of otherwise yet.
		{"who came later refuses the recovered", 9394, walkOptions{Limits: true, Forget: true, Restarts: true}, walkOptions{}},
		// Nodes are recovered, then one with which they had dealt, then whoever recovered the first.
		// The word by which the first were recovered counts, and no later paper: else a gift is lost.
		{"who has left gives no word", 5749, walkOptions{}, walkOptions{LeaversSpeak: true}},
		{"the word of the first recovery counts", 5749, walkOptions{}, walkOptions{}},
		// Two that left are recovered, one after the other, and then whoever recovered the first: the last ledger of the second
		// counts, as it did then, and not that of the first. Else what it had given, and the heir of the first had received, is lost.
		{"the last ledger of the second recovery counts", 1634, walkOptions{Forget: true, Restarts: true}, walkOptions{}},
		// What a node had given to one that left, to another, is recovered with the giver and comes late, when the account of
		// that other with the giver is folded: it is held twice.
		{"who is recovered is refused until it is named no more", 826, walkOptions{Forget: true}, walkOptions{}},
		{"who is recovered is refused until it is named no more", 1863, walkOptions{Forget: true}, walkOptions{}},
		// A node has taken for one that left to it what a lost one had given that. It is lost in turn, and its account with the
		// first does not say so: nobody has it.
		{"a closed account says what was received for others", 1258, walkOptions{Forget: true}, walkOptions{}},
		// A node had given something to one that left, and who kept the rights of that one had received it, and left as well. The
		// node had closed its account with the second only. It is lost, and has what the second had received.
		{"who has left has received for others", 16967, walkOptions{Forget: true}, walkOptions{}},
		// The same, and the leaver is forgotten before who kept its rights: what the second had received is missing twice.
		{"last ledgers are forgotten before those whose rights they have", 3590, walkOptions{Forget: true}, walkOptions{}},
		// A leaver was recovered with a gift that it had never received, and is forgotten before the giver is recovered: its last
		// ledger does not name the giver, and the giver's word is gone. The gift is held twice.
		{"words on who was recovered are needed", 3283, walkOptions{Forget: true}, walkOptions{}},
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
