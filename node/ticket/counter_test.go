package ticket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

var (
	theCounter = crdt.NodeID{1}
	aCaller    = crdt.Incarnation{Node: crdt.NodeID{2}, Boot: 1}
)

// apply has n visitors apply, the first with the oldest place, all for the same
// kind.
func apply(d *Desk[int], n int, reserved bool) {
	for i := range n {
		d.Apply(Applicant[int]{Place: at(float64(i)), Reserved: reserved, Who: i})
	}
}

func who(in []Applicant[int]) (ids []int) {
	for _, a := range in {
		ids = append(ids, a.Who)
	}
	return ids
}

func TestDeskCombinesApplicants(t *testing.T) {
	var d Desk[int]
	apply(&d, 500, true)
	apply(&d, 500, false)
	call, ok := d.Next(theCounter, at(0))
	if !ok || call.Want != (Places{500, 500}) || call.Number != 1 {
		t.Fatalf("first call %+v, %v, want one for all", call, ok)
	}
	apply(&d, 9, false)
	if c, ok := d.Next(theCounter, at(0).Add(callResend-1)); ok {
		t.Errorf("%+v is sent while a call is under way", c)
	}
	if c, ok := d.Next(theCounter, at(0).Add(callResend)); !ok || c != call {
		t.Errorf("sent again: %+v, %v, want the same call", c, ok)
	}
	in, out, err := d.Granted(theCounter, Grant{Number: 1, Given: Places{500, 500}}, at(0))
	if err != nil || len(in) != 1000 || len(out) != 0 {
		t.Errorf("%d in, %d out, %v, want all in", len(in), len(out), err)
	}
	if call, ok = d.Next(theCounter, at(0)); !ok || call.Want != (Places{0, 9}) || call.Number != 2 || call.Got != 1000 {
		t.Errorf("second call %+v, %v, want one for those who came meanwhile", call, ok)
	}
}

func TestDeskServesOlderPlacesFirstAndRemembersRefusals(t *testing.T) {
	var d Desk[int]
	for _, i := range []int{3, 0, 2, 1} {
		d.Apply(Applicant[int]{Place: at(float64(i)), Reserved: true, Who: i})
	}
	d.Next(theCounter, at(10))
	apply(&d, 2, true) // while the call is under way
	in, out, err := d.Granted(theCounter, Grant{Number: 1, Given: Places{Reserved: 2}, Retry: 200 * time.Millisecond}, at(10))
	if got := who(in); err != nil || !slices.Equal(got, []int{0, 1}) {
		t.Errorf("in: %v, %v, want the two oldest", got, err)
	}
	if len(out) != 4 {
		t.Errorf("%d were refused, want also the two who came meanwhile", len(out))
	}
	if got := d.RefusedUntil(true); !got.Equal(at(10).Add(200 * time.Millisecond)) {
		t.Errorf("refused until %v, want as long as the counter says", got)
	}
	if d.RefusedUntil(false).After(at(10)) {
		t.Error("the other kind is refused too, although nobody asked")
	}
	d.Apply(Applicant[int]{})
	d.Next(theCounter, at(11))
	d.Granted(theCounter, Grant{Number: 2, Retry: time.Hour}, at(11))
	if got := d.RefusedUntil(false); got.After(at(11).Add(MaxRetry)) {
		t.Errorf("refused until %v, want no longer than %v", got, MaxRetry)
	}
}

func TestDeskGivesUp(t *testing.T) {
	var d Desk[int]
	apply(&d, 3, false)
	d.Next(theCounter, at(0))
	d.Apply(Applicant[int]{Who: 9})
	if out := d.GiveUp(at(0).Add(CallTimeout - 1)); len(out) != 0 {
		t.Errorf("%d are turned away before their time", len(out))
	}
	now := at(0).Add(CallTimeout)
	if out, left := d.GiveUp(now), d.Drain(); len(out) != 4 || len(left) != 0 {
		t.Errorf("%d are turned away and %d wait, want 4 and 0", len(out), len(left))
	}
	if got := d.RefusedUntil(true); !got.Equal(now.Add(LostRetry)) {
		t.Errorf("refused until %v, want %v", got, now.Add(LostRetry))
	}
	if _, _, err := d.Granted(theCounter, Grant{Number: 1, Given: Places{Contested: 3}}, now); !errors.Is(err, ErrNotAsked) {
		t.Errorf("a late grant: %v, want %v", err, ErrNotAsked)
	}
	call, ok := d.Next(theCounter, now)
	if !ok || call.Number != 2 || call.Want.Sum() != 0 || call.Got != 0 {
		t.Errorf("next call %+v, %v, want one that tells that nothing was taken up", call, ok)
	}
	d.Granted(theCounter, Grant{Number: 2}, now)
	if call, ok := d.Next(theCounter, now.Add(time.Minute)); ok {
		t.Errorf("%+v is sent, and there is nothing left to tell", call)
	}
}

// TestDeskTakesNoLateGrant has a grant come after CallTimeout before anybody has
// called GiveUp, as when the process was stopped.
func TestDeskTakesNoLateGrant(t *testing.T) {
	var d Desk[int]
	apply(&d, 3, false)
	d.Next(theCounter, at(0))
	now := at(0).Add(CallTimeout)
	in, out, err := d.Granted(theCounter, Grant{Number: 1, Given: Places{Contested: 3}}, now)
	if !errors.Is(err, ErrNotAsked) || len(in)+len(out) != 0 {
		t.Errorf("%d in, %d out, %v, want %v", len(in), len(out), err, ErrNotAsked)
	}
	if out := d.GiveUp(now); len(out) != 3 {
		t.Errorf("%d are turned away then, want all 3", len(out))
	}
	if call, ok := d.Next(theCounter, now); !ok || call.Got != 0 {
		t.Errorf("next call %+v, %v, want one that tells that nothing was taken up", call, ok)
	}
}

func TestDeskAsksWhoeverIsTheCounter(t *testing.T) {
	var d Desk[int]
	apply(&d, 2, false)
	d.Next(theCounter, at(0))
	next := crdt.NodeID{7}
	apply(&d, 1, false)
	call, ok := d.Next(next, at(0))
	if !ok || call.Number != 2 || call.Want.Contested != 3 {
		t.Errorf("the new counter is asked %+v, %v, want a new call for all three", call, ok)
	}
	if _, _, err := d.Granted(theCounter, Grant{Number: 1}, at(0)); !errors.Is(err, ErrNotAsked) {
		t.Errorf("the old one's grant: %v, want %v", err, ErrNotAsked)
	}
	if _, _, err := d.Granted(next, Grant{Number: 2, Given: Places{Contested: 4}}, at(0)); !errors.Is(err, ErrTooMuch) {
		t.Errorf("a grant of more than was wanted: %v, want %v", err, ErrTooMuch)
	}
}

// TestDeskTellsWhatIsBooked follows tickets from a grant to a call that only
// tells.
func TestDeskTellsWhatIsBooked(t *testing.T) {
	var d Desk[int]
	apply(&d, 5, false)
	d.Next(theCounter, at(0))
	d.Granted(theCounter, Grant{Number: 1, Given: Places{Contested: 5}}, at(0))
	if c, ok := d.Next(theCounter, at(1)); ok {
		t.Errorf("%+v is sent although there is nothing to tell", c)
	}
	d.Booked(3, 77)
	d.Return(1)
	c, ok := d.Next(theCounter, at(1))
	if !ok || c.Want.Sum() != 0 || c.Got != 5 || c.Booked != 4 || c.Seq != 77 {
		t.Fatalf("call %+v, %v, want 4 of 5 as of 77", c, ok)
	}
	d.Booked(1, 80)
	apply(&d, 1, false) // does not wait for the answer of a call that only tells
	c, ok = d.Next(theCounter, at(1))
	if !ok || c.Number != 3 || c.Want.Contested != 1 || c.Booked != 5 || c.Seq != 80 {
		t.Errorf("call %+v, %v, want one for the applicant", c, ok)
	}
	d.Granted(theCounter, Grant{Number: 3, Given: Places{Contested: 1}}, at(1))
	if d.Booked(9, 81); d.booked != d.got {
		t.Errorf("%d of %d are booked", d.booked, d.got)
	}
}

func TestAccountsAnswerACallOnce(t *testing.T) {
	var a Accounts
	left := 10
	give := func(want Places) Offer {
		n := min(want.Contested, left)
		left -= n
		return Offer{Given: Places{Contested: n}, Retry: time.Second}
	}
	call := Call{Number: 5, Void: 5, Want: Places{Contested: 4}}
	for i := range 3 {
		g, ok := a.Answer(aCaller, "a", call, give, at(float64(i)))
		if !ok || g.Given.Contested != 4 || left != 6 {
			t.Errorf("answer %d: %+v, %v, %d left, want the same 4 each time", i, g, ok, left)
		}
	}
	if g, ok := a.Answer(aCaller, "a", Call{Number: 4, Want: call.Want}, give, at(3)); ok || left != 6 {
		t.Errorf("a call that was given up is answered with %+v", g)
	}
	none := func(crdt.Incarnation) uint64 { return 0 }
	if got := a.Pending("a", none, inReach, at(3))["a"]; got != 4 {
		t.Errorf("%d are reckoned with, want 4", got)
	}
	// The next call says that the grant never arrived.
	a.Answer(aCaller, "a", Call{Number: 6, Want: Places{Contested: 1}}, give, at(4))
	if got := a.Pending("a", none, inReach, at(4))["a"]; got != 1 {
		t.Errorf("%d are reckoned with, want 1: the other 4 are free again", got)
	}
	if got := a.Pending("a", none, inReach, at(4).Add(GrantKept)); len(got) != 0 || len(a.open) != 0 {
		t.Errorf("%v are reckoned with for a node that is silent", got)
	}
}

// inReach is for sites that are, and have closed nothing lately.
var inReach = Far{func(string) bool { return false }, func(string, time.Time) bool { return false }}

func TestAccountsReckonUntilCountsShow(t *testing.T) {
	for _, own := range []bool{true, false} {
		var a Accounts
		site, known := "b", uint64(0)
		if own {
			site = "a"
		}
		pending := func(now time.Time) int {
			return a.Pending("a", func(crdt.Incarnation) uint64 { return known }, inReach, now)[site]
		}
		call := func(c Call, n int, now time.Time) {
			a.Answer(aCaller, site, c, func(Places) Offer { return Offer{Given: Places{Reserved: n}} }, now)
		}
		call(Call{Number: 1, Want: Places{Reserved: 6}}, 6, at(0))
		call(Call{Number: 2, Got: 6}, 0, at(0))
		call(Call{Number: 3, Got: 6, Booked: 2, Seq: 10}, 0, at(0))
		call(Call{Number: 4, Got: 6, Booked: 5, Seq: 20}, 0, at(1))
		if got := pending(at(1)); got != 6 {
			t.Errorf("own site %v: %d are reckoned with before the counts show any, want 6", own, got)
		}
		known = 10
		if got, want := pending(at(0).Add(FarKept)), 4; got != want {
			t.Errorf("own site %v: %d are reckoned with once two are shown, want %d", own, got, want)
		}
		known = 25
		if got := pending(at(1).Add(FarKept)); got != 1 {
			t.Errorf("own site %v: %d are reckoned with once five are shown, want 1", own, got)
		}
	}
}

// A counter that is cut off from a site goes on reckoning with what it granted there: the
// counts may never have come to show it.
func TestAccountsReckonWithASiteThatIsCutOff(t *testing.T) {
	var a Accounts
	away, shows := false, false
	pending := func(now time.Time) int {
		return a.Pending("a", func(crdt.Incarnation) uint64 { return 0 },
			Far{func(string) bool { return away }, func(string, time.Time) bool { return shows }}, now)["b"]
	}
	call := func(c Call, n int, now time.Time) {
		a.Answer(aCaller, "b", c, func(Places) Offer { return Offer{Given: Places{Contested: n}} }, now)
	}
	call(Call{Number: 1, Want: Places{Contested: 2}}, 2, at(0))
	call(Call{Number: 2, Got: 2, Booked: 2, Seq: 10, Want: Places{Contested: 1}}, 1, at(1))
	if got := pending(at(1).Add(FarKept)); got != 1 {
		t.Errorf("%d are reckoned with, want 1: two have been booked for long enough", got)
	}
	if got := pending(at(1).Add(GrantKept)); got != 0 {
		t.Errorf("%d are reckoned with for a node that is silent, want 0", got)
	}
	away = true
	for _, now := range []time.Time{at(1).Add(FarNews), at(1).Add(GrantKept), at(1).Add(time.Minute)} {
		if got := pending(now); got != 3 {
			t.Errorf("%d are reckoned with at %v, want 3: nothing has come from there", got, now)
		}
	}
	if shows = true; pending(at(1).Add(time.Minute)) != 0 || len(a.open) != 0 {
		t.Error("the account stays open after the cut")
	}
}

// TestAccountsOfANewCounter begins in the middle of a caller's history.
func TestAccountsOfANewCounter(t *testing.T) {
	var a Accounts
	none := func(Places) Offer { return Offer{} }
	a.Answer(aCaller, "a", Call{Number: 900, Got: 5000, Booked: 4990}, none, at(0))
	if got := a.Pending("a", func(crdt.Incarnation) uint64 { return 0 }, inReach, at(0))["a"]; got != 10 {
		t.Errorf("%d are reckoned with, want the 10 that another granted and no row shows", got)
	}
}

// TestNoPlaceIsGrantedTwice runs a counter and desks over a network that loses,
// doubles and reorders, with tickets that are used, booked and ended. Whatever
// the counter reckons with is never less than what is in use and not shown.
func TestNoPlaceIsGrantedTwice(t *testing.T) {
	for seed := range uint64(60) {
		w := &counterWorld{t: t, rng: rand.New(rand.NewPCG(seed, 7)), slots: 1 + int(seed%40)}
		for i := range w.desks {
			w.desks[i].id = crdt.Incarnation{Node: crdt.NodeID{byte(i + 10)}, Boot: 1}
		}
		for step := range 3000 {
			w.step(at(0).Add(time.Duration(step) * 20 * time.Millisecond))
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		if w.used < w.slots {
			t.Errorf("seed %d: %d tickets were used, %d slots", seed, w.used, w.slots)
		}
	}
}

type counterWorld struct {
	t        *testing.T
	rng      *rand.Rand
	slots    int
	accounts Accounts
	desks    [3]deskNode
	air      []func(now time.Time)
	used     int
}

type deskNode struct {
	id    crdt.Incarnation
	desk  Desk[int]
	new   int // tickets taken up and not in the row yet
	row   int // in use, by its row
	seq   uint64
	shown struct { // of the row, at the counter
		seq uint64
		n   int
	}
}

// post has something happen later: never, once or twice, in any order.
func (w *counterWorld) post(f func(now time.Time)) {
	for range []int{0, 1, 1, 1, 1, 2}[w.rng.IntN(6)] {
		w.air = append(w.air, f)
	}
}

func (w *counterWorld) step(now time.Time) {
	for range w.rng.IntN(4) {
		if len(w.air) > 0 {
			i := w.rng.IntN(len(w.air))
			f := w.air[i]
			w.air = slices.Delete(w.air, i, i+1)
			f(now)
		}
	}
	n := &w.desks[w.rng.IntN(len(w.desks))]
	switch w.rng.IntN(5) {
	case 0:
		apply(&n.desk, 1+w.rng.IntN(3), w.rng.IntN(2) == 0)
	case 1: // book
		if n.new > 0 {
			n.seq++
			n.row += n.new
			n.desk.Booked(n.new, n.seq)
			n.new = 0
		}
	case 2: // a session ends
		if n.row > 0 {
			n.row--
			n.seq++
		}
	case 3: // a push
		seq, row := n.seq, n.row
		w.post(func(time.Time) {
			if seq >= n.shown.seq {
				n.shown.seq, n.shown.n = seq, row
			}
		})
	}
	n.desk.GiveUp(now)
	if call, ok := n.desk.Next(theCounter, now); ok {
		w.post(func(now time.Time) { w.answer(n, call, now) })
	}
}

func (w *counterWorld) answer(n *deskNode, call Call, now time.Time) {
	g, ok := w.accounts.Answer(n.id, "a", call, func(want Places) Offer {
		var got Places
		free := w.slots
		for i := range w.desks {
			free -= w.desks[i].shown.n
		}
		free -= w.accounts.Pending("a", w.known, inReach, now)["a"]
		got.Reserved = min(want.Reserved, max(0, free))
		got.Contested = min(want.Contested, max(0, free-got.Reserved))
		return Offer{Given: got}
	}, now)
	if !ok {
		return
	}
	w.post(func(now time.Time) {
		in, _, err := n.desk.Granted(theCounter, g, now)
		if err == nil {
			n.new += len(in)
			w.used += len(in)
		}
		inUse := 0
		for i := range w.desks {
			inUse += w.desks[i].row + w.desks[i].new
		}
		if inUse > w.slots {
			w.t.Errorf("%d tickets are in use of %d slots", inUse, w.slots)
		}
	})
}

func (w *counterWorld) known(id crdt.Incarnation) uint64 {
	for i := range w.desks {
		if w.desks[i].id == id {
			return w.desks[i].shown.seq
		}
	}
	return 0
}

func TestLeadStaysWithWhoeverLives(t *testing.T) {
	self, other := crdt.Incarnation{Node: crdt.NodeID{5}, Boot: 1}, crdt.Incarnation{Node: crdt.NodeID{6}, Boot: 1}
	lives := func(crdt.Incarnation) bool { return true }
	dead := func(crdt.Incarnation) bool { return false }
	var l Lead
	if got := l.Choose(self, other.Node, lives, at(0)); got != other.Node || !l.Claim().IsZero() {
		t.Errorf("chose %v, claims %+v, want to ask the first and claim nothing", got, l.Claim())
	}
	if got := l.Choose(self, self.Node, lives, at(1)); got != self.Node || l.Claim().Holder != self {
		t.Errorf("chose %v, claims %+v, want to claim", got, l.Claim())
	}
	if got := l.Choose(self, other.Node, dead, at(2)); got != self.Node {
		t.Errorf("chose %v, want to stay although another comes first by now", got)
	}
	if l.Hear(Claim{other, at(3)}) || l.Choose(self, other.Node, lives, at(3)) != self.Node {
		t.Error("a later claim took over")
	}
	if !l.Restart(self, at(9)) || !l.Hear(Claim{other, at(3)}) {
		t.Error("after a pause, an earlier claim did not take over")
	}
	if got := l.Choose(self, self.Node, lives, at(10)); got != other.Node || l.Restart(self, at(11)) {
		t.Errorf("chose %v, want to keep to who is the counter", got)
	}
	if got := l.Choose(self, self.Node, dead, at(12)); got != self.Node {
		t.Errorf("chose %v after the counter died", got)
	}
}

func TestLeadIsHandedOver(t *testing.T) {
	old, next := crdt.Incarnation{Node: crdt.NodeID{5}, Boot: 1}, crdt.Incarnation{Node: crdt.NodeID{6}, Boot: 3}
	lives := func(crdt.Incarnation) bool { return true }
	var there, here Lead // at the old counter, at the next one
	there.Choose(old, old.Node, lives, at(0))
	here.Hear(there.Claim())
	if here.Hand(next, old, at(1)) || here.Choose(next, old.Node, lives, at(1)) != old.Node {
		t.Error("somebody else handed over what is not theirs")
	}
	if !there.Hand(old, next, at(2)) || !here.Hand(old, next, at(2)) {
		t.Error("the counter's own word changed nothing")
	}
	// At both nodes the old one still comes first by rendezvous.
	if there.Choose(old, old.Node, lives, at(2)) != next.Node || here.Choose(next, old.Node, lives, at(2)) != next.Node {
		t.Error("the old counter goes on although it has handed over")
	}
	if here.Claim().Holder != next || there.Claim().Holder != next {
		t.Errorf("claims are %+v here and %+v there", here.Claim(), there.Claim())
	}
	// A claim of the old counter that was overtaken is believed until it says again
	// that it is the counter no longer.
	var third Lead
	third.Hear(Claim{old, at(0)})
	if !third.Hand(old, next, at(3)) || third.Choose(crdt.Incarnation{}, old.Node, lives, at(3)) != next.Node {
		t.Error("who missed the hand-over does not learn of it")
	}
	if here.Hand(old, next, at(9)) || !here.Claim().Since.Equal(at(2)) {
		t.Error("a hand-over that came twice changed the claim")
	}
}

// TestClaimsAreSettledTheSameEverywhere tells all claims to all in any order.
func TestClaimsAreSettledTheSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		claims := make([]Claim, 5)
		for i := range claims {
			claims[i] = Claim{crdt.Incarnation{Node: crdt.NodeID{byte(i + 1)}, Boot: 1}, at(float64(rng.IntN(3)))}
		}
		best := slices.MinFunc(claims, func(a, b Claim) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		for i := range claims {
			l := Lead{claim: claims[i]}
			for _, j := range rng.Perm(len(claims)) {
				l.Hear(claims[j])
			}
			if l.claim != best {
				t.Fatalf("%v goes by %+v, want %+v", fmt.Sprint(claims), l.claim, best)
			}
		}
	}
}
