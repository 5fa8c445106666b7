package ticket

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// desk1 is one node with rights and a disk that writes when told.
type desk1 struct {
	*Rights
	t    *testing.T
	boot uint64
	out  Rules
}

func newDesk1(t *testing.T, out Rules, stored ...Put) *desk1 {
	d := &desk1{t: t, out: out, boot: self.Boot - 1}
	d.restart(stored, at(0))
	return d
}

// founder returns a node that has minted n of either kind, a minute ago.
func founder(t *testing.T, out Rules, n int64) *desk1 {
	d := newDesk1(t, out, Put{keyMinted, appendAmount(nil, Amount{n, n})})
	d.Expire(at(90))
	return d
}

func (d *desk1) restart(stored []Put, now time.Time) {
	d.t.Helper()
	d.boot++
	r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: self.Node, Boot: d.boot}, Session: session, LeaveOut: d.out}, stored, now)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Rights = r
}

// write writes all there is.
func (d *desk1) write(now time.Time) {
	for d.Writes() != nil {
		d.Confirmed(now)
	}
}

// lends lends n tickets, all that there are.
func (d *desk1) lends(n int64, now time.Time) Loan {
	d.t.Helper()
	d.Lend(crdt.Incarnation{Node: other, Boot: 1}, n, now)
	d.write(now)
	d.Lend(crdt.Incarnation{Node: other, Boot: 1}, n, now)
	for _, l := range d.LoansDue(now) {
		if int64(l.N) == n {
			return l
		}
	}
	d.t.Fatalf("nothing was lent of %v", d.Held())
	return Loan{}
}

// handover is what other passes on to the node under test: f, and all that it held.
func handover(f Final, held Amount) Handover {
	f.Node, f.Heir = other, self.Node
	f.Accounts = []Account{{Node: self.Node, Gave: held}}
	return Handover{Final: f}
}

// scenarios are the shortest stories in which a rule matters: each reports whether
// all went well.
var scenarios = []struct {
	rule Rules
	name string
	run  func(t *testing.T, out Rules) bool
}{
	{BoundBeforeUse, "bound before use", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 5)
		stored := d.Stored()
		used := d.Open(3, at(91))
		d.Writes() // on its way
		d.restart(stored, at(92))
		return d.InUse() >= used
	}},
	{CountUntilBlockEnds, "count until block ends", func(t *testing.T, out Rules) bool {
		// A session that the origin had ended gave its place to another. Its pass is
		// shown once more, and ended once more.
		d := newDesk1(t, out, Put{keyMinted, appendAmount(nil, Amount{2, 2})}, Put{keyBound, []byte{4}})
		if _, _, err := d.CheckIn(earlyOf(1), at(50), at(1), at(1)); err != nil {
			t.Fatal(err)
		}
		d.End(earlyOf(1), at(2))
		return d.InUse() == 2
	}},
	{LoanKept, "loan kept", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 2)
		l := d.lends(2, at(91)) // one is used just before the end, and nobody tells
		d.Expire(l.ValidUntil.Add(session))
		return d.Free().Places == 0
	}},
	{BornOnce, "born once", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 3)
		l := d.lends(3, at(91)) // all are used, one is told
		if _, _, err := d.CheckIn(l.Range().Ticket(0), at(152), at(92), at(92)); err != nil {
			t.Fatal(err)
		}
		for n := range uint64(2) {
			d.Reported(other, Report{Lender: l.Lender, Block: l.Block, Number: n + 1, Used: []Used{{l.First, 1, time.Second}}}, at(93))
		}
		return d.InUse() == 3
	}},
	{Fence, "fence", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 3)
		d.Fence(other, self.Node, 1, at(91))
		d.write(at(91))
		before, _ := d.Frozen(other)
		d.Receive(Transfer{From: other, To: self.Node, Gave: Amount{5, 5}}, at(92))
		d.write(at(92))
		after, _ := d.Frozen(other)
		return reflect.DeepEqual(before, after) && d.Held() == Amount{3, 3}
	}},
	{ReceiveBeforeUse, "receive before use", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 0)
		d.Receive(Transfer{From: other, To: self.Node, Gave: Amount{5, 5}}, at(91))
		acked, stored := d.AcksDue(at(91)), d.Stored()
		d.restart(stored, at(92))
		return len(acked) == 0 || d.Held().Places == 5
	}},
	{PauseCheck, "pause check", func(t *testing.T, out Rules) bool {
		// The counter sleeps for as long as the lender keeps aside what was lent. It
		// is asked for a ticket before anything else when it wakes.
		d, counter := founder(t, out, 2), NewStock(crdt.Incarnation{Node: other, Boot: 1}, crdt.RoomID{})
		counter.LeaveOut(out)
		l := d.lends(2, at(91))
		counter.Want(2, other, at(91))
		counter.Add(l, at(91))
		counter.Due(0, at(91))
		now := l.ValidUntil.Add(2 * session)
		d.Expire(now)
		var taken int64
		for _, r := range counter.Take(nil, 2, other, now) {
			taken += int64(r.N)
		}
		return d.Free().Places+taken <= 2
	}},
	{FreshMint, "fresh mint", func(t *testing.T, out Rules) bool {
		// The minter follows a limit of 200, leaves at once, and is killed: its successor
		// has heard of the limit, and not that it was followed.
		d, limit := newDesk1(t, out), Amount{200, 200}
		d.TakeOver(handover(Final{Minting: Minting{true, limit}}, limit), at(1))
		d.write(at(1))
		stale := maps.All(map[crdt.NodeID]Amount{other: {100, 100}})
		d.SetLimits(limit, d.OthersMinted(stale), self.Node, at(2))
		d.write(at(2))
		d.restart(d.Stored(), at(3)) // what the ledger says is on its disk
		d.SetLimits(limit, d.OthersMinted(stale), self.Node, at(4))
		d.write(at(4))
		return d.Held() == limit
	}},
	{FreshMint, "fresh mint, of who recovered a minter and leaves within the lock", func(t *testing.T, out Rules) bool {
		// Nobody had heard that the dead one had followed a limit of 200: sessions on
		// what it minted last go on as long as the lock.
		d, dead := newDesk1(t, out), crdt.NodeID{77}
		d.TakeOver(handover(Final{Minting: Minting{true, Amount{}}, MintAfter: at(100), Recovered: []Recovery{{dead, Amount{100, 100}, 1}}}, Amount{100, 100}), at(1))
		d.write(at(1))
		heard := maps.All(map[crdt.NodeID]Amount{dead: {100, 100}})
		d.SetLimits(Amount{200, 200}, d.OthersMinted(heard), self.Node, at(99))
		d.write(at(99))
		locked := d.Held() == Amount{100, 100}
		d.SetLimits(Amount{200, 200}, d.OthersMinted(heard), self.Node, at(101))
		d.write(at(101))
		return locked && d.Held() == Amount{200, 200}
	}},
	{MintedWithGifts, "minted with gifts", func(t *testing.T, out Rules) bool {
		// It was given 29, and what came with them does not count yet: it goes by 7. The limit is 17.
		d := newDesk1(t, out)
		d.Receive(Transfer{From: other, To: self.Node, Gave: Amount{29, 29}}, at(91))
		d.write(at(91))
		d.SetLimits(Amount{17, 17}, Amount{7, 7}, other, at(91))
		d.Expect(29, at(91))
		d.write(at(91))
		return d.Open(29, at(92)) <= 17
	}},
	{GiveBeforeSend, "give before send", func(t *testing.T, out Rules) bool {
		d := founder(t, out, 5)
		d.Give(other, Amount{Places: 2}, at(91))
		var sent int64
		for _, x := range d.TransfersDue(at(91)) {
			sent += x.Gave.Places
		}
		d.restart(d.Stored(), at(92))
		return d.Held().Places+sent <= 5
	}},
}

// TestRulesInShort tells each story with all rules, and without the one it is
// about.
func TestRulesInShort(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			if !s.run(t, 0) {
				t.Error("went wrong with all rules")
			}
			if s.run(t, s.rule) {
				t.Error("went well without the rule")
			}
		})
	}
}

// TestSlowDiskDoesNotShow: writes take half a second each, and visitors come at a
// steady rate; once it is known, nobody waits for a write.
func TestSlowDiskDoesNotShow(t *testing.T) {
	const perTick = 50 // 1,000 a second
	d := founder(t, 0, 1_000_000)
	var done time.Time
	seq, short := uint64(0), 0
	for tick := range 20 * 20 {
		now := at(91 + float64(tick)/20)
		if !done.IsZero() && !now.Before(done) {
			d.Confirmed(now)
			done = time.Time{}
		}
		d.Expire(now)
		n := d.Open(perTick, now)
		if n < perTick && tick > 40 {
			short++
		}
		for range n {
			seq++
			d.Enter(Ticket{Anchor: self.Node, Boot: d.boot, Seq: seq}, now, now, now)
		}
		if done.IsZero() && d.Writes() != nil {
			done = now.Add(500 * time.Millisecond)
		}
	}
	if short > 0 {
		t.Errorf("%d of 360 ticks ran dry", short)
	}
	if slack := d.Bound().Places - d.InUse(); slack > 5*1000 {
		t.Errorf("the bound is %d above what is in use", slack)
	}
}

func TestRetiredForGood(t *testing.T) {
	d := founder(t, 0, 5)
	d.Open(2, at(91))
	d.write(at(91))
	d.Retire()
	if n := d.Open(1, at(92)); n != 0 {
		t.Errorf("opened %d tokens of a retired room", n)
	}
	d.write(at(92))
	d.restart(d.Stored(), at(93))
	d.SetLimits(Amount{9, 9}, Amount{}, self.Node, at(200))
	if !d.Retired() || d.Minted() != (Amount{5, 5}) || d.Open(1, at(200)) != 0 {
		t.Errorf("a retired room mints or issues again: %v", d.Minted())
	}
}

// TestFailedWriteIsNotForgotten: what was on its way is written to the new store,
// and until then counts as what is worse.
func TestFailedWriteIsNotForgotten(t *testing.T) {
	d := founder(t, 0, 10)
	d.Give(other, Amount{Places: 4}, at(91))
	d.Open(1, at(91))
	d.Writes()
	d.Failed(at(91))
	if d.Open(1, at(92)) != 0 || d.Give(other, Amount{Places: 1}, at(92)) != (Amount{}) || d.Writes() != nil || len(d.TransfersDue(at(92))) != 0 {
		t.Error("a node whose store has failed goes on")
	}
	if d.Held().Places != 6 {
		t.Errorf("holds %v, want 6 places", d.Held())
	}
	d.StoreBack(at(93))
	d.write(at(93))
	if got := d.TransfersDue(at(93)); len(got) != 1 || got[0].Gave.Places != 4 {
		t.Errorf("sends %v, want the gift of 4", got)
	}
}
