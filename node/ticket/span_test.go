package ticket

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// startOf returns one node's rights in a start of it.
func startOf(t *testing.T, boot uint64, session time.Duration, stored []Put, now time.Time) *Rights {
	t.Helper()
	r, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: boot}, Session: session}, stored, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeAll(r *Rights, now time.Time) {
	for r.Writes() != nil {
		r.Confirmed(now)
	}
}

var hundred = []Put{{keyMinted, appendAmount(nil, Amount{100, 100})}}

// openOne has a node hand out one token more.
func openOne(t *testing.T, r *Rights, now time.Time) {
	t.Helper()
	r.Open(1, now)
	writeAll(r, now)
	if r.Open(1, now) != 1 {
		t.Fatal("no token although all is written")
	}
}

// TestALongSessionIsForgottenOnceItIsOver has sessions last a day, and then a minute: a
// restart counts what is in use for a day only as long as one of them may go on.
func TestALongSessionIsForgottenOnceItIsOver(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, 24*time.Hour, hundred, now)
	openOne(t, r, now)
	r.SetSession(time.Minute, now)
	for _, c := range []struct {
		after time.Duration
		want  time.Duration
	}{{0, 24 * time.Hour}, {24 * time.Hour, 24 * time.Hour}, {24*time.Hour + time.Minute, time.Minute}} {
		then := now.Add(c.after)
		r.Expire(then)
		writeAll(r, then)
		again := startOf(t, 2, time.Minute, r.Stored(), then)
		if got := again.blockEnd(then).Sub(then); got < c.want || got > c.want+10*time.Second {
			t.Errorf("%v after sessions were made shorter, a restart counts what is in use for %v, want about %v", c.after, got, c.want)
		}
	}
}

// TestALongerSessionWaitsForTheDisk has sessions made longer: until that is written no
// pass lasts for longer than a restart would count it.
func TestALongerSessionWaitsForTheDisk(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, time.Minute, hundred, now)
	openOne(t, r, now)
	held := Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 1}
	if _, _, err := r.Enter(held, now.Add(time.Minute), now, now); err != nil {
		t.Fatal(err)
	}
	r.SetSession(time.Hour, now)
	expect := func(want time.Duration, when string) {
		t.Helper()
		end, _, err := r.CheckIn(held, now, now, now)
		if err != nil || end.Sub(now) != want {
			t.Errorf("%s: a session lasts %v (%v), want %v", when, end.Sub(now), err, want)
		}
		if got := r.Session(); got != want {
			t.Errorf("%s: a first pass may last %v, want %v", when, got, want)
		}
		stored := startOf(t, 2, time.Minute, r.Stored(), now)
		if until := stored.blockEnd(now); until.Before(end) {
			t.Errorf("%s: a session lasts until %v after a restart has stopped counting it", when, end.Sub(until))
		}
	}
	expect(time.Minute, "nothing is written")
	if r.Writes() == nil {
		t.Fatal("a longer session is not written")
	}
	expect(time.Minute, "the write is under way")
	r.Confirmed(now)
	expect(time.Hour, "it is written")
}

// TestALongerSessionWhileRightsLimitNothing has a room go by rights, then by another policy, then
// sessions made longer. Who was let in by rights goes on for no longer than a restart would count
// it, and counts until its session is over once rights are the limit again. Who comes meanwhile
// has the longer session at once, and keeps it.
func TestALongerSessionWhileRightsLimitNothing(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, time.Minute, []Put{{keyMinted, appendAmount(nil, Amount{1, 1})}}, now)
	openOne(t, r, now)
	held, late := Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 1}, Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 2}
	if _, _, err := r.Enter(held, now.Add(time.Minute), now, now); err != nil {
		t.Fatal(err)
	}
	r.SetUnlimited(true)
	r.SetSession(time.Hour, now)
	var end time.Time
	checkIn := func(want time.Duration, when string) {
		t.Helper()
		var err error
		if end, _, err = r.CheckIn(held, now, now, now); err != nil || end.Sub(now) != want {
			t.Errorf("%s: a session lasts %v (%v), want %v", when, end.Sub(now), err, want)
		}
	}
	checkIn(time.Minute, "nothing is written")
	if end, _, err := r.Enter(late, now.Add(time.Hour), now, now); err != nil || end.Sub(now) != time.Hour {
		t.Errorf("who comes while rights limit nothing has a session of %v (%v), want an hour", end.Sub(now), err)
	}
	writeAll(r, now)
	checkIn(time.Hour, "it is written")

	again, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 2}, Session: time.Minute, Unlimited: true}, r.Stored(), now)
	if err != nil {
		t.Fatal(err)
	}
	again.SetUnlimited(false)
	writeAll(again, now)
	for _, then := range []time.Time{now.Add(2 * time.Minute), end.Add(-time.Second)} {
		again.Expire(then)
		if n := again.Open(1, then); n != 0 {
			t.Fatalf("%v before its end a session is not counted any more: somebody else is let in", end.Sub(then))
		}
	}
	again.Expire(again.blockEnd(end))
	if again.InUse() != 0 {
		t.Errorf("%d places are in use when all sessions are over", again.InUse())
	}
}

// TestALoanOfBeforeRightsLimitedNothing restarts a node that had lent a place, and is then told
// that its rights limit nothing: whoever has the loan may use it for as long as it is valid.
func TestALoanOfBeforeRightsLimitedNothing(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, time.Minute, hundred, now)
	openOne(t, r, now)
	r.Close(r.Tokens())
	r.Lend(crdt.Incarnation{Node: crdt.NodeID{2}, Boot: 1}, 1, now)
	if r.InUse() != 1 {
		t.Fatalf("%d places are lent, want 1", r.InUse())
	}
	r.SetUnlimited(true)
	writeAll(r, now)
	again, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{1}, Boot: 2}, Session: time.Minute, Unlimited: true}, r.Stored(), now)
	if err != nil {
		t.Fatal(err)
	}
	again.SetUnlimited(false)
	used := now.Add(LoanValid + time.Minute)
	if again.Expire(used); again.InUse() == 0 {
		t.Error("a visitor who was let in by a loan just before that was void is not counted until the session is over")
	}
}

// TestALongerSessionAfterARestart starts a node with longer sessions than those of
// before, and stops it at once.
func TestALongerSessionAfterARestart(t *testing.T) {
	now := at(0)
	r := startOf(t, 1, time.Minute, hundred, now)
	openOne(t, r, now)
	again := startOf(t, 2, time.Hour, r.Stored(), now)
	if got := again.Session(); got != time.Minute {
		t.Errorf("a first pass may last %v before that is written, want a minute", got)
	}
	writeAll(again, now)
	if got := again.Session(); got != time.Hour {
		t.Errorf("a first pass may last %v once that is written, want an hour", got)
	}
}

// TestAnHeirCountsForAsLongAsTheLeaversSessionsLast has a node with sessions of an hour
// leave to one whose own last a minute.
func TestAnHeirCountsForAsLongAsTheLeaversSessionsLast(t *testing.T) {
	now := at(0)
	leaver := startOf(t, 1, time.Hour, hundred, now)
	openOne(t, leaver, now)
	pass := Ticket{Anchor: crdt.NodeID{1}, Boot: 1, Seq: 1}
	end, _, err := leaver.Enter(pass, now.Add(time.Hour), now, now)
	if err != nil {
		t.Fatal(err)
	}
	heir, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{2}, Boot: 1}, Session: time.Minute}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	leaver.Close(leaver.Tokens())
	writeAll(leaver, now)
	if err := leaver.Leave(crdt.NodeID{2}, now); err != nil {
		t.Fatal(err)
	}
	writeAll(leaver, now)
	h, due := leaver.HandoverDue(now)
	if !due {
		t.Fatal("nothing is handed over")
	}
	if h.Final, err = DecodeFinal(AppendFinal(nil, h.Final)); err != nil {
		t.Fatal(err)
	}
	heir.TakeOver(h, now)
	writeAll(heir, now)
	late := end.Add(-time.Second)
	heir.Expire(late)
	if _, _, err := heir.CheckIn(pass, end, late, late); err != nil {
		t.Errorf("a session of the leaver that is not over: %v", err)
	}
	if heir.InUse() != 1 {
		t.Errorf("%d places are in use while a session of the leaver lasts, want 1", heir.InUse())
	}
	again, _, err := OpenRights(RightsConfig{Self: crdt.Incarnation{Node: crdt.NodeID{2}, Boot: 2}, Session: time.Minute}, heir.Stored(), now)
	if err != nil {
		t.Fatal(err)
	}
	if until := again.blockEnd(now); until.Before(end) {
		t.Error("an heir that restarts stops counting before a session of the leaver is over")
	}
}
