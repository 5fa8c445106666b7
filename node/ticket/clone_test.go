package ticket

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// TestCloneGoesOnAlike does random things to a ledger and to its copy: the copy goes on as
// the original does, and nothing that is done to one shows in the other.
func TestCloneGoesOnAlike(t *testing.T) {
	self, other, third := crdt.NodeID{1}, crdt.NodeID{2}, crdt.NodeID{3}
	begin := time.Unix(1_700_000_000, 0)
	left := Handover{Final: Final{Node: third, Heir: self, InUse: 2, Span: 5 * time.Second, Accounts: []Account{{Node: self, Gave: Amount{4, 40}}}}}
	deeds := []func(r *Rights, now time.Time){
		func(r *Rights, now time.Time) { r.Writes(); r.Confirmed(now) },
		func(r *Rights, now time.Time) { r.Writes() },
		func(r *Rights, now time.Time) { r.SetLimits(Amount{9, 90}, Amount{}, self, now) },
		func(r *Rights, now time.Time) { r.SetLimits(Amount{3, 30}, Amount{}, self, now) },
		func(r *Rights, now time.Time) { r.Issue(2, now) },
		func(r *Rights, now time.Time) { r.Give(other, Amount{1, 10}, now) },
		func(r *Rights, now time.Time) { r.Receive(Transfer{From: other, To: self, Gave: Amount{2, 20}}, now) },
		func(r *Rights, now time.Time) { r.TransfersDue(now); r.AcksDue(now); r.HandoverDue(now) },
		func(r *Rights, now time.Time) { r.TakeOver(left, now) },
		func(r *Rights, now time.Time) { r.Fence(crdt.NodeID{4}, self, 3, now) },
		func(r *Rights, now time.Time) { r.Expire(now) },
		func(r *Rights, now time.Time) { _ = r.Leave(other, now) },
	}
	for seed := range uint64(300) {
		d := rand.New(rand.NewPCG(seed, 9))
		now := begin
		r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: self, Boot: 1}, Session: 5 * time.Second}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		do := func(all ...*Rights) {
			last := len(deeds)
			if d.IntN(10) > 0 {
				last-- // to leave is the end of most others
			}
			deed := deeds[d.IntN(last)]
			now = now.Add([]time.Duration{0, 0, 100 * time.Millisecond, 7 * time.Second}[d.IntN(4)])
			for _, r := range all {
				deed(r, now)
			}
		}
		for range 15 {
			do(r)
		}
		before, clone := r.AppendState(nil, now), r.Clone()
		if got := clone.AppendState(nil, now); !bytes.Equal(got, before) {
			t.Fatalf("seed %d: the copy is another one", seed)
		}
		then := now
		for range 8 {
			do(clone)
		}
		if got := r.AppendState(nil, then); !bytes.Equal(got, before) {
			t.Fatalf("seed %d: what was done to the copy shows in the original", seed)
		}
		now = then
		again := r.Clone()
		for i := range 12 {
			do(r, again)
			if !bytes.Equal(r.AppendState(nil, now), again.AppendState(nil, now)) {
				t.Fatalf("seed %d: after %d deeds the copy is another one", seed, i+1)
			}
		}
	}
}

// TestStateKnowsWhatMatters: ledgers that go on differently have different states, and time
// alone makes no other one of a ledger that waits for nothing.
func TestStateKnowsWhatMatters(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	self := crdt.NodeID{1}
	open := func() *Rights {
		r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: self, Boot: 1}, Session: 5 * time.Second}, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{4, 4} {
			r.SetLimits(Amount{n, 10 * n}, Amount{}, self, now)
			r.Expect(2, now)
			r.Writes()
			r.Confirmed(now)
		}
		return r
	}
	quiet := open().AppendState(nil, now)
	for name, deed := range map[string]func(*Rights){
		"gift":          func(r *Rights) { r.Give(crdt.NodeID{2}, Amount{1, 1}, now) },
		"lease":         func(r *Rights) { r.Issue(1, now) },
		"limit":         func(r *Rights) { r.SetLimits(Amount{5, 50}, Amount{}, self, now) },
		"fence":         func(r *Rights) { r.Fence(crdt.NodeID{2}, self, 1, now) },
		"retired":       func(r *Rights) { r.Retire() },
		"failed write":  func(r *Rights) { r.Failed(now) },
		"batch on disk": func(r *Rights) { r.Give(crdt.NodeID{2}, Amount{1, 1}, now); r.Writes() },
	} {
		r := open()
		deed(r)
		if bytes.Equal(r.AppendState(nil, now), quiet) {
			t.Errorf("%s: the state is the same as without", name)
		}
	}
	r := open()
	later := now.Add(time.Hour)
	first := r.AppendState(nil, later)
	if second := r.AppendState(nil, later.Add(time.Hour)); !bytes.Equal(first, second) {
		t.Error("an hour makes a difference to a ledger that waits for nothing")
	}
}
