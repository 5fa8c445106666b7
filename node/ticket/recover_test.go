package ticket

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestSettlingIsNotForWhoLeaves gives a node that has passed on its rights the last
// ledger of another one: what that gave it belongs to its heir.
func TestSettlingIsNotForWhoLeaves(t *testing.T) {
	gone := Final{Node: crdt.NodeID{77}, Heir: other, Accounts: []Account{{Node: self.Node, Gave: Amount{5, 5}}}}
	stays, leaves := founder(t, 0, 10), founder(t, 0, 10)
	if err := leaves.Leave(other, at(91)); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*desk1{stays, leaves} {
		d.write(at(91))
		d.Settle(gone, crdt.NodeID{})
		d.write(at(91))
	}
	if got := stays.Held(); got != (Amount{15, 15}) {
		t.Errorf("a node that stays holds %v, want 15 of either kind", got)
	}
	if got := leaves.Held(); !got.IsZero() {
		t.Errorf("a node that has passed on everything holds %v", got)
	}
}

// TestALeaverThatWasFencedIsTakenOver where nobody else can recover it by the word of its keeper: that was only ever for the
// keeper itself, or for one whose rights it has.
func TestALeaverThatWasFencedIsTakenOver(t *testing.T) {
	leaver, before, third := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}
	for name, c := range map[string]struct {
		words []crdt.NodeID // for whom, in turn
		done  bool          // the leaver is recovered
		want  bool
	}{
		"for nobody":                 {want: true},
		"for itself":                 {words: []crdt.NodeID{self.Node}, want: true},
		"for whom it has taken over": {words: []crdt.NodeID{before}, want: true},
		"for another":                {words: []crdt.NodeID{third}},
		"for another before":         {words: []crdt.NodeID{third, self.Node}},
		"for itself before":          {words: []crdt.NodeID{self.Node, third}},
		"recovered":                  {words: []crdt.NodeID{self.Node}, done: true},
	} {
		d := founder(t, 0, 10)
		d.TakeOver(Handover{Final: Final{Node: before, Heir: self.Node, Minting: Minting{Known: true}}}, at(91))
		d.write(at(91))
		for i, heir := range c.words {
			d.Fence(leaver, heir, int64(i+1), at(91))
			d.write(at(91))
		}
		word := Word{Node: self.Node, Heir: self.Node, Round: 1}
		if c.done {
			if err := d.Recover(estateOf(leaver, word), at(91)); err != nil {
				t.Fatal(err)
			}
		}
		final := Final{Node: leaver, Heir: before, Accounts: []Account{{Node: before, Gave: Amount{5, 5}}}, Minting: Minting{true, Amount{5, 5}}}
		if got := d.TakeOver(Handover{Final: final}, at(92)); got != c.want {
			t.Errorf("%s: taken over: %t", name, got)
			continue
		}
		d.write(at(92))
		want := Amount{10, 10}
		if c.want || c.done {
			want = Amount{15, 15}
		}
		if got := d.Held(); got != want {
			t.Errorf("%s: it holds %v, want %v", name, got, want)
		}
		if err := d.Recover(estateOf(leaver, word), at(93)); c.want && err == nil {
			t.Errorf("%s: it is recovered on top", name)
		}
	}
}

// estateOf is the estate of one dead node, which had minted 5 of either kind, with the
// words that nodes have given.
func estateOf(dead crdt.NodeID, words ...Word) Estate {
	e := Estate{Dead: []crdt.NodeID{dead}, Minted: []Amount{{5, 5}}}
	for _, w := range words {
		w.Dead = dead
		e.Words, e.Needed = append(e.Words, w), append(e.Needed, w.Node)
	}
	return e
}

// TestWordsAreGivenAgain looks at what becomes of a word when more is known.
func TestWordsAreGivenAgain(t *testing.T) {
	dead, less := crdt.NodeID{70}, crdt.NodeID{0, 1}
	for _, c := range []struct {
		name  string
		round int64
		done  bool // the rights are recovered before
		want  crdt.NodeID
	}{
		{"with more known", 8, false, less},
		{"with no more known", 7, false, self.Node},
		{"with less known", 6, false, self.Node},
		{"by who has recovered", 8, true, self.Node},
	} {
		d := founder(t, 0, 10)
		d.Fence(dead, self.Node, 7, at(91))
		d.write(at(91))
		if c.done {
			if err := d.Recover(estateOf(dead, Word{Node: self.Node, Heir: self.Node, Round: 7}), at(91)); err != nil {
				t.Fatal(err)
			}
			d.write(at(91))
		}
		d.Fence(dead, less, c.round, at(92))
		d.write(at(92))
		if w, ok := d.Frozen(dead); !ok || w.Heir != c.want {
			t.Errorf("%s: the word is %+v, want one for %v", c.name, w, c.want[0])
		}
	}
}

// TestOldWordsDoNotCount has a node be heir, step back, and be heir again: who would
// recover on words from before it stepped back might be the second to do so.
func TestOldWordsDoNotCount(t *testing.T) {
	dead, third := crdt.NodeID{70}, crdt.NodeID{72}
	type turn struct {
		heir  crdt.NodeID
		round int64
	}
	once, again := []turn{{self.Node, 5}}, []turn{{self.Node, 5}, {other, 6}, {self.Node, 9}}
	for _, c := range []struct {
		name  string
		turns []turn
		heir  crdt.NodeID // as the third has it
		round int64
		want  bool
	}{
		{"all speak for it", once, self.Node, 5, true},
		{"one knew more before it", once, self.Node, 8, true},
		{"one knew less and has not heard more since", once, self.Node, 4, true},
		{"one speaks for another", once, other, 6, false},
		{"a word from before it stepped back", again, self.Node, 5, false},
		{"a word of the round in which it was for another", again, self.Node, 6, false},
		{"a word after that", again, self.Node, 7, true},
	} {
		d := founder(t, 0, 10)
		for _, x := range c.turns {
			d.Fence(dead, x.heir, x.round, at(91))
			d.write(at(91))
		}
		d.restart(d.Stored(), at(92)) // who it was for has to be known after that, too
		now := at(200)
		mine, _ := d.Frozen(dead)
		err := d.Recover(estateOf(dead, mine, Word{Node: third, Heir: c.heir, Round: c.round}), now)
		if (err == nil) != c.want {
			t.Errorf("%s: recovering says %v", c.name, err)
		}
		d.write(now)
		if got := d.Held().Places; (got == 15) != c.want {
			t.Errorf("%s: %d places are held", c.name, got)
		}
	}
}

// TestWordsOfLateHeirsNeverMeet runs nodes that hear late, and in any order, of who is to
// be the heir, and of each other's words. However that goes, the rights of the dead are
// recovered once at most; and once all have heard of everything, they are.
func TestWordsOfLateHeirsNeverMeet(t *testing.T) {
	dead := crdt.NodeID{70}
	nodes := [3]crdt.NodeID{{1}, {2}, {3}}
	early := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		all := make([]*Rights, len(nodes))
		for i, id := range nodes {
			all[i], _, _ = OpenRights(RightsConfig{Self: crdt.Incarnation{Node: id, Boot: 1}, Session: session}, nil, at(0))
		}
		heard := make([]int, len(nodes)) // of this many steps
		words := map[crdt.NodeID][]Word{}
		// Who knows as much as another need not know the same; who knows all does.
		const steps = 6
		var heirs [3][steps]crdt.NodeID
		for i := range heirs {
			for k := range heirs[i] {
				heirs[i][k] = nodes[rng.IntN(len(nodes))]
			}
			heirs[i][steps-1] = heirs[0][steps-1]
		}
		recovered := func() (n int) {
			for _, r := range all {
				n += len(r.Recovered())
			}
			return n
		}
		settle := func(i int, fresh bool) {
			r := all[i]
			if heard[i] == 0 {
				return
			}
			r.Fence(dead, heirs[i][heard[i]-1], int64(heard[i]), at(91))
			for r.Writes() != nil {
				r.Confirmed(at(91))
			}
			w, _ := r.Frozen(dead)
			if given := words[nodes[i]]; len(given) == 0 || !reflect.DeepEqual(given[len(given)-1], w) {
				words[nodes[i]] = append(given, w)
			}
			e := Estate{Dead: []crdt.NodeID{dead}, Minted: []Amount{{5, 5}}, Needed: nodes[:]}
			for j, id := range nodes {
				given := words[id]
				switch {
				case len(given) == 0:
				case fresh || i == j:
					e.Words = append(e.Words, given[len(given)-1])
				default:
					e.Words = append(e.Words, given[rng.IntN(len(given))])
				}
			}
			_ = r.Recover(e, at(92))
			for r.Writes() != nil {
				r.Confirmed(at(92))
			}
		}
		for range 40 {
			i := rng.IntN(len(nodes))
			heard[i] = min(steps, heard[i]+rng.IntN(3))
			settle(i, false)
		}
		if recovered() > 0 {
			early++
		}
		for range 2 {
			for i := range nodes {
				heard[i] = steps
				settle(i, true)
			}
		}
		if n := recovered(); n > 1 {
			t.Errorf("seed %d: recovered %d times", seed, n)
		} else if n == 0 {
			t.Errorf("seed %d: never recovered", seed)
		}
	}
	if early < 100 {
		t.Errorf("rights were recovered while words were late in %d of 2000 runs: it asks too little", early)
	}
}

// TestWhoHandedOverIsNotFenced declares a node dead that has left its rights here.
func TestWhoHandedOverIsNotFenced(t *testing.T) {
	leaver := crdt.NodeID{71}
	d := founder(t, 0, 10)
	d.TakeOver(Handover{Final: Final{Node: leaver, Heir: self.Node}}, at(91))
	d.write(at(91))
	d.Fence(leaver, other, 1, at(92))
	d.write(at(92))
	if w, ok := d.Frozen(leaver); ok {
		t.Errorf("a word was given on it: %+v", w)
	}
	d.Receive(Transfer{From: other, To: leaver, Gave: Amount{3, 3}}, at(92))
	d.write(at(92))
	if got := d.Held().Places; got != 13 {
		t.Errorf("%d places are held, want 13: what was given to it comes here", got)
	}
}

// TestALeaverFencedBeforeThereWereRounds: a store of a version that says nothing of rounds has the word on the leaver for a
// third one, which may have recovered it by that. Then the word is for the node itself.
func TestALeaverFencedBeforeThereWereRounds(t *testing.T) {
	leaver, before, third := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}
	d := newDesk1(t, 0, Put{keyOf(keyDead, leaver), third[:]}, Put{keyMinted, appendAmount(nil, Amount{10, 10})})
	d.TakeOver(Handover{Final: Final{Node: before, Heir: self.Node, Minting: Minting{Known: true}}}, at(91))
	d.write(at(91))
	d.Fence(leaver, self.Node, 5, at(91))
	d.write(at(91))
	final := Final{Node: leaver, Heir: before, Accounts: []Account{{Node: before, Gave: Amount{5, 5}}}, Minting: Minting{true, Amount{5, 5}}}
	if d.TakeOver(Handover{Final: final}, at(92)) {
		t.Error("taken over, and the third may have recovered it")
	}
	if err := d.Recover(estateOf(leaver, Word{Node: self.Node, Heir: self.Node, Round: 1}), at(92)); err == nil {
		t.Error("recovered by a word that may be older than the one for the third")
	}
}

// TestWhoHasTakenOverGivesNoWord: once that is written, this node's word on the leaver is nobody's, also if it was
// fenced before.
func TestWhoHasTakenOverGivesNoWord(t *testing.T) {
	leaver := crdt.NodeID{71}
	for _, fenced := range []bool{false, true} {
		d := founder(t, 0, 10)
		if fenced {
			d.Fence(leaver, self.Node, 1, at(91))
			d.write(at(91))
		}
		if !d.TakeOver(Handover{Final: Final{Node: leaver, Heir: self.Node}}, at(92)) {
			t.Fatal("it is not taken over")
		}
		if d.Refuses(leaver) {
			t.Error("it is refused by the one that has its rights")
		}
		if _, ok := d.Taken(leaver); ok {
			t.Error("it is told before it is written")
		}
		d.write(at(92))
		if w, ok := d.Frozen(leaver); ok {
			t.Errorf("fenced before: %v; a word was given on it: %+v", fenced, w)
		}
		w, ok := d.Taken(leaver)
		if read, err := DecodeWord(AppendWord(nil, w)); !ok || err != nil || !reflect.DeepEqual(read, w) || !reflect.DeepEqual(w, Word{Node: self.Node, Dead: leaver}) {
			t.Errorf("fenced before: %v; told: %+v, %v, %v", fenced, read, ok, err)
		}
	}
}

// TestGiftsReachWhoWasCalledDead has a node refuse one that it was told is dead, and then
// hear that it had left its rights to another: what each of them had given the other, and
// had not arrived, is neither lost nor there twice.
func TestGiftsReachWhoWasCalledDead(t *testing.T) {
	leaver, keeper := crdt.NodeID{70}, crdt.NodeID{71}
	final := Final{Node: leaver, Heir: keeper, Accounts: []Account{{Node: self.Node, Gave: Amount{3, 2}}}}
	d := founder(t, 0, 10)
	if gave := d.Give(leaver, Amount{4, 1}, at(91)); gave != (Amount{4, 1}) {
		t.Fatalf("gave %v", gave)
	}
	d.Fence(leaver, other, 1, at(91))
	d.write(at(91))
	look := func(when string, s float64, held Amount, sent int) {
		t.Helper()
		d.write(at(s))
		if got := d.Held(); got != held {
			t.Errorf("%s: holds %v, want %v", when, got, held)
		}
		if d.GiftDue(at(s)) != (sent > 0) {
			t.Errorf("%s: says the contrary of whether gifts are due", when)
		}
		got := d.TransfersDue(at(s))
		if len(got) != sent || sent > 0 && (got[0].To != leaver || got[0].Gave != Amount{4, 1}) {
			t.Errorf("%s: sends %+v, want %d gifts", when, got, sent)
		}
	}
	d.Settle(final, crdt.NodeID{}) // its last ledger alone may be that of one that was lost in the middle
	look("with nobody known who keeps its rights", 92, Amount{6, 9}, 0)
	d.Settle(final, keeper)
	look("with a keeper", 102, Amount{9, 11}, 1)
	d.Receive(Transfer{From: leaver, To: self.Node, Gave: Amount{9, 9}}, at(103))
	look("after a gift from the one that was called dead", 112, Amount{9, 11}, 1)
	if got := d.Give(leaver, Amount{1, 1}, at(113)); !got.IsZero() {
		t.Errorf("gave %v to one that was called dead", got)
	}
	d.Fence(leaver, other, 2, at(120))
	d.Fence(keeper, other, 2, at(120))
	final.Accounts[0].Gave = Amount{9, 9}
	d.Settle(final, keeper)
	look("with a keeper that is dead", 122, Amount{9, 11}, 0)
	if w, ok := d.Frozen(leaver); !ok || w.Gave != (Amount{4, 1}) || w.Rcv != (Amount{3, 2}) {
		t.Errorf("the word is %+v", w)
	}
}

// TestWordsOfOneRound has a node speak of two dead ones in different rounds: between
// these it may have taken what one of them had given.
func TestWordsOfOneRound(t *testing.T) {
	a, b, third := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}
	d := founder(t, 0, 10)
	d.Fence(a, self.Node, 5, at(91))
	d.Fence(b, self.Node, 5, at(91))
	d.write(at(91))
	for _, c := range []struct {
		onA, onB int64
		want     bool
	}{{5, 6, false}, {6, 5, false}, {6, 6, true}} {
		e := Estate{Dead: []crdt.NodeID{a, b}, Minted: make([]Amount, 2), Needed: []crdt.NodeID{third}, Words: []Word{
			{Node: third, Dead: a, Heir: self.Node, Round: c.onA}, {Node: third, Dead: b, Heir: self.Node, Round: c.onB},
		}}
		if err := d.Recover(e, at(92)); (err == nil) != c.want {
			t.Errorf("words of rounds %d and %d: recovering says %v", c.onA, c.onB, err)
		}
	}
}

// TestRecoveredRightsAreLockedForLongSessions has a node recover the places of one
// whose sessions may be longer than its own: they are kept aside for that long, also
// if it restarts meanwhile.
func TestRecoveredRightsAreLockedForLongSessions(t *testing.T) {
	dead, third := crdt.NodeID{70}, crdt.NodeID{71}
	for _, restart := range []bool{false, true} {
		d := founder(t, 0, 10)
		d.Fence(dead, self.Node, 5, at(91))
		d.write(at(91))
		e := Estate{
			Dead: []crdt.NodeID{dead}, Minted: []Amount{{4, 4}}, Needed: []crdt.NodeID{third}, Session: 10 * session,
			Words: []Word{{Node: third, Dead: dead, Heir: self.Node, Round: 5}},
		}
		if err := d.Recover(e, at(92)); err != nil {
			t.Fatal(err)
		}
		d.write(at(92))
		if restart {
			d.restart(d.Stored(), at(93))
		}
		last := at(92).Add(10 * session)
		d.Expire(last)
		if free := d.Free().Places; free > 10 {
			t.Errorf("restart %v: %d places are free while sessions of the dead may last", restart, free)
		}
		d.Expire(last.Add(time.Minute))
		if free := d.Free().Places; free != 14 {
			t.Errorf("restart %v: %d places are free at last, want 14", restart, free)
		}
	}
}

// TestAGiftIsRecoveredOnce has a leaver's rights be recovered while a gift of it was on its
// way to a node that is lost later: the gift is among what was recovered, though the
// leaver's last ledger has it as given. What the leaver's heir took of a gift of that node stays
// taken, though the leaver's last ledger has none of it. What that node had of all this is in its
// word on the leaver, or in its own last ledger, where it left before and its heir is lost. Where
// the leaver has a living heir, its last ledger is right.
func TestAGiftIsRecoveredOnce(t *testing.T) {
	dead, leaver := crdt.NodeID{70}, crdt.NodeID{71}
	for _, c := range []struct {
		recovered map[crdt.NodeID]int64
		left      bool // the dead node had
		want      int64
	}{
		{map[crdt.NodeID]int64{leaver: 1}, false, 10 + 3 + 1 - 2},
		{map[crdt.NodeID]int64{leaver: 1}, true, 10 + 3 + 1 - 2},
		{nil, false, 10 + 3 + 5},
		{nil, true, 10 + 3 + 5},
	} {
		d := founder(t, 0, 10)
		d.Fence(dead, self.Node, 5, at(91))
		d.write(at(91))
		e := Estate{
			Dead: []crdt.NodeID{dead}, Minted: make([]Amount, 1), Needed: []crdt.NodeID{self.Node}, Recovered: c.recovered,
			Words:  []Word{{Node: self.Node, Dead: dead, Heir: self.Node, Round: 5, Gave: Amount{3, 3}}},
			Finals: []Final{{Node: leaver, Heir: other, Accounts: []Account{{Node: dead, Gave: Amount{5, 5}}}}},
		}
		if gave, got := (Amount{2, 2}), (Amount{1, 1}); c.left {
			e.Finals = append(e.Finals, Final{Node: dead, Heir: crdt.NodeID{72}, Accounts: []Account{{Node: leaver, Gave: gave, Rcv: got}}})
		} else {
			e.Words = append(e.Words, Word{Node: dead, Dead: leaver, Heir: other, Round: 4, Gave: gave, Rcv: got})
		}
		if err := d.Recover(e, at(92)); err != nil {
			t.Fatal(err)
		}
		d.write(at(92))
		if got := d.Held(); got != (Amount{c.want, c.want}) {
			t.Errorf("%v recovered before, the dead one had left: %v: holds %v, want %d of either kind", c.recovered, c.left, got, c.want)
		}
	}
}

// TestAGiftOfTheFirstRecovery: a gift to a leaver, which its heir took, went back to the giver when both of
// these were lost and recovered. The giver is lost and recovered later, and then whoever recovered
// the first two, so that these are reckoned with once more: by the word that the giver gave then.
func TestAGiftOfTheFirstRecovery(t *testing.T) {
	leaver, giver, first, heir := crdt.NodeID{70}, crdt.NodeID{71}, crdt.NodeID{72}, crdt.NodeID{73}
	d := founder(t, 0, 10)
	dead := []crdt.NodeID{leaver, first, heir}
	for _, id := range dead {
		d.Fence(id, self.Node, 5, at(91))
	}
	d.write(at(91))
	e := Estate{
		Dead: dead, Minted: []Amount{{20, 20}, {}, {}}, Needed: []crdt.NodeID{self.Node}, Recovered: map[crdt.NodeID]int64{leaver: 1, heir: 1, giver: 2},
		Words: []Word{
			{Node: self.Node, Dead: leaver, Heir: self.Node, Round: 5},
			{Node: self.Node, Dead: first, Heir: self.Node, Round: 5},
			{Node: self.Node, Dead: heir, Heir: self.Node, Round: 5},
			{Node: first, Dead: leaver, Heir: first, Round: 3},
			{Node: first, Dead: heir, Heir: first, Round: 3},
			{Node: first, Dead: giver, Heir: self.Node, Round: 4},
			{Node: giver, Dead: leaver, Heir: first, Round: 3, Gave: Amount{9, 9}},
			{Node: giver, Dead: heir, Heir: first, Round: 3},
		},
		Finals: []Final{{Node: leaver, Heir: heir, Accounts: []Account{{Node: heir, Gave: Amount{20, 20}}}}},
	}
	if err := d.Recover(e, at(92)); err != nil {
		t.Fatal(err)
	}
	d.write(at(92))
	if got := d.Held(); got != (Amount{10 + 20 + 9, 10 + 20 + 9}) {
		t.Errorf("holds %v, want its own 10, the 20 of the leaver, and the 9 of the gift", got)
	}
}
