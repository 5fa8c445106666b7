package ticket

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// rateRun is two nodes that share rate rights, give tickets out in every way and
// write to disks that take their time. It notes when visitors enter. One node is
// killed at one step. Times are ms.
type rateRun struct {
	*rand.Rand
	t     *testing.T
	rules Rules
	now   int64
	nodes [2]*rateNode
	uses  []int64 // when somebody entered
}

type rateNode struct {
	*Rights
	id      crdt.NodeID
	boot    uint64
	disk    disk
	reports []rateReport
}

// rateReport is what a counter says of a loan, at some time.
type rateReport struct {
	at, used int64
	Report
}

const (
	rateSupply = 40
	rateSteps  = 120
)

func newRateRun(t *testing.T, seed uint64, rules Rules) *rateRun {
	w := &rateRun{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, rules: rules}
	for i := range w.nodes {
		n := &rateNode{id: crdt.NodeID{byte(i + 1)}, disk: disk{values: map[string][]byte{}}}
		if i == 0 {
			n.disk.values[keyMinted] = appendAmount(nil, Amount{10_000, rateSupply})
		}
		w.nodes[i] = n
		w.start(n)
	}
	return w
}

func (w *rateRun) clock() time.Time { return at(0).Add(time.Duration(w.now) * time.Millisecond) }

func (w *rateRun) start(n *rateNode) {
	n.boot++
	r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: n.id, Boot: n.boot}, Session: session, LeaveOut: w.rules}, n.disk.puts(), w.clock())
	if err != nil {
		w.t.Fatal(err)
	}
	n.Rights, n.disk.batch, n.reports = r, nil, nil
}

// run goes through all steps. At step kill, before or after anything else of it, a
// node dies and starts anew; the write that is under way has reached the disk or not.
func (w *rateRun) run(kill int, written bool) {
	for step := range rateSteps {
		w.now += 1 + w.Int64N(1500)
		if step == kill {
			n := w.nodes[w.IntN(2)]
			if written {
				n.disk.apply(n.disk.batch)
			}
			w.now += w.Int64N(1000)
			w.start(n)
		}
		for i, n := range w.nodes {
			n.Expire(w.clock())
			w.act(n, w.nodes[1-i])
			w.hear(n)
			w.write(n)
		}
	}
}

// write ends a batch at one step in two, and begins the next.
func (w *rateRun) write(n *rateNode) {
	if n.disk.batch != nil && w.IntN(2) == 0 {
		n.disk.apply(n.disk.batch)
		n.disk.batch = nil
		n.Confirmed(w.clock())
	}
	if n.disk.batch == nil {
		n.disk.batch = n.Writes()
	}
}

func (w *rateRun) enter(when int64) { w.uses = append(w.uses, when) }

// act has a node give out tickets, or rights.
func (w *rateRun) act(n, peer *rateNode) {
	now := w.clock()
	switch w.IntN(5) {
	case 0:
		n.Expect(w.Int64N(40), now)
		for range n.Open(1+w.Int64N(12), now) {
			if w.IntN(4) == 0 {
				n.Close(1)
				continue
			}
			t := Ticket{Anchor: n.id, Boot: n.boot, Seq: n.cfg.Seqs(1)}
			if _, _, err := n.Enter(t, now, now, now); err != nil {
				w.t.Fatal(err)
			}
			w.enter(w.now)
		}
	case 1:
		ranges, _ := n.Issue(1+w.Int64N(12), now)
		for _, g := range ranges {
			for range g.N {
				w.enter(w.now + w.Int64N(ms(TakeUp)))
			}
		}
	case 2:
		n.Lend(crdt.Incarnation{Node: peer.id, Boot: 1}, 1+w.Int64N(12), now)
		for _, l := range n.LoansDue(now) {
			w.lent(n, l)
		}
	default:
		n.Give(peer.id, Amount{Rate: w.Int64N(6)}, now)
	}
	for _, x := range n.TransfersDue(now) {
		peer.Receive(x, now)
	}
	for _, x := range n.AcksDue(now) {
		peer.Acked(x)
	}
}

// lent has a counter, whose clock may be behind, use some tickets of a loan, and maybe
// tell of it later.
func (w *rateRun) lent(n *rateNode, l Loan) {
	if n.loans.find(l.Block).heard {
		return
	}
	n.loans.find(l.Block).heard = true // the loan is not sent again
	used := w.Int64N(int64(l.N) + 1)
	granted := w.now + w.Int64N(ms(LoanValid+Guard))
	for range used {
		w.enter(granted + w.Int64N(ms(TakeUp)))
	}
	if w.IntN(2) == 0 {
		rep := Report{Lender: l.Lender, Block: l.Block, Number: 1, Final: true}
		if used > 0 {
			rep.Used = []Used{{First: l.First, N: uint64(used)}}
		}
		n.reports = append(n.reports, rateReport{granted + w.Int64N(5000), granted, rep})
	}
}

// hear brings a node the reports that are due.
func (w *rateRun) hear(n *rateNode) {
	peer := crdt.NodeID{3 - n.id[0]}
	n.reports = slices.DeleteFunc(n.reports, func(x rateReport) bool {
		if x.at > w.now {
			return false
		}
		for i := range x.Used {
			x.Used[i].Age = time.Duration(w.Int64N(w.now-x.used+1)) * time.Millisecond
		}
		n.Reported(peer, x.Report, w.clock())
		return true
	})
}

// worst returns how many entered in the worst minute.
func (w *rateRun) worst() int {
	slices.Sort(w.uses)
	most, first := 0, 0
	for i, use := range w.uses {
		for use-w.uses[first] >= ms(rateSpan) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestRateHoldsOverRestarts kills a node at every step of runs in which rate rights are
// used in every way, with the write that is under way on the disk and not: in no minute
// more enter than there are rate rights, and about as many do.
func TestRateHoldsOverRestarts(t *testing.T) {
	runs, entered, most := 0, 0, 0
	for seed := range uint64(12) {
		for kill := range rateSteps {
			for _, written := range []bool{false, true} {
				w := newRateRun(t, seed, 0)
				w.run(kill, written)
				n := w.worst()
				if most = max(most, n); n > rateSupply {
					t.Fatalf("seed %d, killed at step %d, written %v: %d entered in a minute, limit %d", seed, kill, written, n, rateSupply)
				}
				runs, entered = runs+1, entered+len(w.uses)
			}
		}
	}
	t.Logf("%d runs, %d entered in each, %d in the worst minute", runs, entered/runs, most)
	if mean := entered / runs; mean < rateSupply || most < rateSupply*9/10 {
		t.Errorf("%d entered in a run of a minute and a half, at most %d in a minute; the limit is %d", mean, most, rateSupply)
	}
}

// TestRateNeedsItsBound: the same runs pass the limit where a restart forgets what was
// used, and where rate rights are used before the bound that covers them is written.
func TestRateNeedsItsBound(t *testing.T) {
	for _, rules := range []Rules{RestartCools, BoundBeforeUse} {
		over := 0
		for seed := range uint64(4) {
			for kill := range rateSteps {
				w := newRateRun(t, seed, rules)
				w.run(kill, false)
				if w.worst() > rateSupply {
					over++
				}
			}
		}
		t.Logf("without rule %b: over the limit in %d of %d runs", rules, over, 4*rateSteps)
		if over == 0 {
			t.Errorf("nothing went wrong without rule %b", rules)
		}
	}
}

// TestRestartCoolsWhatWasUsed: after a restart the rate rights that were not in use
// let visitors in at once, and soon after a minute all do.
func TestRestartCoolsWhatWasUsed(t *testing.T) {
	d := founder(t, 0, 600)
	for i := range int64(10) {
		now := at(91).Add(time.Duration(i) * time.Second)
		d.Open(1, now)
		d.write(now)
		if d.Open(1-d.Tokens(), now); d.Tokens() != 1 {
			t.Fatalf("%d tokens", d.Tokens())
		}
		if _, _, err := d.Enter(Ticket{Anchor: self.Node, Boot: d.boot, Seq: uint64(i + 1)}, now, now, now); err != nil {
			t.Fatal(err)
		}
		d.Expire(now)
		d.write(now)
	}
	bound := d.Bound().Rate
	d.restart(d.Stored(), at(102))
	if bound < 10 || bound > 10+boundSlack {
		t.Errorf("bound %d with 10 cooling", bound)
	}
	if free := d.Free().Rate; free != 600-bound {
		t.Errorf("%d rate rights are ready after a restart, want %d", free, 600-bound)
	}
	d.Open(500, at(102))
	d.write(at(102))
	if n := d.Open(500, at(102)); n != 500 {
		t.Errorf("%d visitors of 500 let in at once", n)
	}
	d.Close(d.Tokens())
	d.Expire(at(102).Add(rateSpan + loanTail + coolStep*time.Millisecond))
	if free := d.Free().Rate; free != 600 {
		t.Errorf("%d rate rights are ready a minute after, want 600", free)
	}
}

// TestBoundComesDownAsRightsCool: an hour after a rush hardly anything is locked by a
// restart.
func TestBoundComesDownAsRightsCool(t *testing.T) {
	d := founder(t, 0, 600)
	d.Open(500, at(91))
	d.write(at(91))
	for i := range d.Open(500, at(91)) {
		if _, _, err := d.Enter(Ticket{Anchor: self.Node, Boot: d.boot, Seq: uint64(i + 1)}, at(91), at(91), at(91)); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	for s := 92.0; s < 3700; s++ {
		d.Expire(at(s))
		for d.Writes() != nil {
			d.Confirmed(at(s))
			writes++
		}
	}
	if b := d.Bound().Rate; b > boundSlack {
		t.Errorf("bound %d with nothing in use", b)
	}
	if writes > 10 {
		t.Errorf("%d writes to lower it", writes)
	}
}

// TestBoundWithoutRate: a store that says nothing of rate rights in use has all of
// them cool, and its bound is of both kinds from the next write on.
func TestBoundWithoutRate(t *testing.T) {
	stored := []Put{{keyMinted, appendAmount(nil, Amount{20, 30})}, {keyBound, binary.AppendVarint(nil, 4)}}
	d := newDesk1(t, 0, stored...)
	if d.Bound() != (Amount{4, 30}) || d.Free() != (Amount{16, 0}) {
		t.Errorf("bound %v, free %v: want {4 30} and {16 0}", d.Bound(), d.Free())
	}
	if n := d.Open(1, at(64)); n != 0 {
		t.Errorf("%d tokens while all cool", n)
	}
	now := at(0).Add(rateSpan + loanTail)
	for range 3 {
		d.Expire(now)
		d.write(now)
		now = now.Add(2 * time.Second)
	}
	d.restart(d.Stored(), now)
	if free := d.Free().Rate; free < 30-boundSlack {
		t.Errorf("%d of 30 rate rights ready after the next restart", free)
	}
}

// TestExpectedVisitorsFindTheBoundReady has some wait, who come when the disk has had its
// time, and nobody after them.
func TestExpectedVisitorsFindTheBoundReady(t *testing.T) {
	d := founder(t, 100, 40)
	before := d.Bound()
	for s := 91.0; s < 96; s++ {
		d.Expect(1000, at(s))
		d.Expire(at(s))
		d.write(at(s))
	}
	if b := d.Bound(); b.Places < 40 || b.Places > 80 || b.Rate != 40 {
		t.Errorf("bound %+v, want 40 to 80 places, which is what can be used and as many more, and all 40 rate rights", b)
	}
	if n := d.Open(1000, at(96)); n != 40 {
		t.Errorf("%d are let in at once, want the 40 for whom there are rate rights", n)
	}
	d.Close(40)
	for s := 98.0; s < 110; s++ {
		d.Expire(at(s))
		d.write(at(s))
	}
	if b := d.Bound(); b.Places > max(before.Places, boundSlack) || b.Rate > max(before.Rate, boundSlack) {
		t.Errorf("bound %+v when nobody waits any more, %+v before anybody did", b, before)
	}
}
