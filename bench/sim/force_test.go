package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
	"github.com/ropeline/ropeline/node/ticket"
)

// history is a run of three nodes, made by hand: what operators say, who reaches whom, which
// messages arrive, and who is let in. No node is part of it. The judge is the real one.
type history struct {
	*sim
	said news // not on a disk yet
}

// newHistory begins with three nodes that reach each other, and limits of 10 and 100.
func newHistory(t *testing.T, spoil ...func(*Config)) *history {
	cfg := Config{
		Seed: 1, Sites: 3, Nodes: 1, Arrivals: Counts{Every: time.Minute, N: []int{1}},
		Room:   room.Settings{Policy: room.Escrow, TotalActiveUsers: 10, NewUsersPerMinute: 100},
		Faults: []Fault{{Kind: Limits, Site: 1, Active: 1}},
	}
	for _, f := range spoil {
		f(&cfg)
	}
	h := &history{sim: newSim(mustDefault(t, cfg), newShipped)}
	h.rights.account(0).minted = ticket.Amount{Places: 1 << 20, Rate: 1 << 20} // whatever is minted is not asked here
	h.meet(0, 0, 0)
	return h
}

// meet says on which islands the nodes are by now; -1: down.
func (h *history) meet(islands ...int32) *history {
	h.force.meet(islands, func(int32) bool { return false })
	return h
}

// after lets time pass.
func (h *history) after(d time.Duration) *history {
	h.now += int64(d)
	h.oracle.advance(h.now)
	h.force.advance(h.now)
	return h
}

// ask has an operator set the limit of active users at a node, which has not written it yet.
func (h *history) ask(node int32, places int64) *history {
	h.said |= only(h.force.say(node, 0, ticket.Amount{Places: places, Rate: 100}))
	return h
}

// say is ask, and the operator is told at once that it holds.
func (h *history) say(node int32, places int64) *history {
	h.force.confirm(node, h.force.say(node, 0, ticket.Amount{Places: places, Rate: 100}))
	return h
}

// rate is say with a limit of new users in a minute.
func (h *history) rate(node int32, perMinute int64) *history {
	h.force.confirm(node, h.force.say(node, 0, ticket.Amount{Places: 1000, Rate: perMinute}))
	return h
}

// written is that a node has written all that it was asked.
func (h *history) written(node int32) *history {
	for c := range h.said.all {
		h.force.confirm(node, c)
	}
	h.said = 0
	return h
}

// crash stops a node, and starts it again later.
func (h *history) crash(node int32, down time.Duration, islands ...int32) *history {
	h.force.dies(node)
	gone := []int32{0, 0, 0}
	gone[node] = -1
	h.meet(gone...).after(down)
	h.force.starts(node)
	return h.meet(islands...)
}

// flaps has somebody be out of reach for 0.3 s of every second.
func (h *history) flaps(seconds int, gone ...int32) *history {
	for range seconds {
		h.meet(gone...).after(300*time.Millisecond).meet(0, 0, 0).after(700 * time.Millisecond)
	}
	return h
}

// enter lets n visitors in at the first node that runs.
func (h *history) enter(n int) *history {
	return h.enterAt(int32(slices.IndexFunc(h.force.nodes, func(k knower) bool { return k.runs })), n)
}

// enterAt lets n visitors in at a node.
func (h *history) enterAt(node int32, n int) *history {
	for range n {
		h.rights.account(0).inside++
		h.people.all = append(h.people.all, visitor{active: true, under: uint8(h.force.largest(node, 0))})
		h.entered(0, h.machines[node], h.now)
	}
	return h
}

// leave ends n sessions.
func (h *history) leave(n int) *history {
	h.rights.account(0).inside -= n
	h.people.all = h.people.all[n:]
	return h
}

// move has a session that began some time ago go on by another right.
func (h *history) move(since time.Duration) *history {
	h.entered(0, h.machines[0], h.now-int64(since))
	return h
}

// tell has a message of one node arrive at another that knows nothing of it.
func (h *history) tell(from, to int32) *history {
	h.force.heard(to, h.force.carries(from))
	return h
}

// goesBy has a node go by a limit, as it says.
func (h *history) goesBy(node int32, places int64) *history {
	if ok, may := h.force.allows(node, 0, ticket.Amount{Places: places, Rate: 100}); !ok {
		h.violate(LimitUnknown, h.machines[node], fmt.Sprint(places, " of ", may))
	}
	return h
}

// admit gives sessions to n new visitors, and is about the rate alone.
func (h *history) admit(n int) *history {
	for range n {
		h.rights.admitted(0, h.now)
		h.admitted(0, h.machines[0])
	}
	return h
}

// verdict is a history, and what is to be said of it.
type verdict struct {
	name string
	do   func(h *history)
	want string // a kind of violation; none if empty
}

const second = time.Second

// TestVerdicts are histories with a verdict that follows from the rules alone: what must be
// said, and what must not.
func TestVerdicts(t *testing.T) {
	judge(t, []verdict{
		{"as many as the limit says", func(h *history) { h.enter(10) }, ""},
		{"one more", func(h *history) { h.enter(11) }, OverLimit},
		{"one more after one has left", func(h *history) { h.enter(10).leave(1).enter(1) }, ""},

		{"raised: at once", func(h *history) { h.say(1, 20).enter(20) }, ""},
		{"raised: one more", func(h *history) { h.say(1, 20).enter(21) }, OverLimit},
		{"raised, and not yet on a disk", func(h *history) { h.ask(1, 20).enter(20) }, ""},

		{"lowered: the old one holds for 2 s", func(h *history) { h.say(1, 5).after(2*second - 1).enter(10) }, ""},
		{"lowered: it does no more after 2 s", func(h *history) { h.say(1, 5).after(2 * second).enter(6) }, OverLimit},
		{"lowered: as many as that may enter", func(h *history) { h.say(1, 5).after(2 * second).enter(5) }, ""},
		{"lowered at the only node: 2 s as well", func(h *history) { h.meet(-1, 0, -1).after(10*second).say(1, 5).after(2*second - 1).enter(10) }, ""},
		{"lowered at the only node: and no longer", func(h *history) { h.meet(-1, 0, -1).after(10*second).say(1, 5).after(2 * second).enter(6) }, OverLimit},
		{"lowered: not on a disk, so nobody has to know", func(h *history) { h.ask(1, 5).after(time.Minute).enter(10) }, ""},
		{"lowered: on disk later, 2 s from then", func(h *history) { h.ask(1, 5).after(time.Minute).written(1).after(2*second - 1).enter(10) }, ""},
		{"lowered: on disk later, and 2 s have passed", func(h *history) { h.ask(1, 5).after(time.Minute).written(1).after(2 * second).enter(6) }, OverLimit},
		{"sessions inside go on", func(h *history) { h.enter(8).say(1, 5).after(10 * second).move(12 * second) }, ""},
		{"sessions inside: nobody new", func(h *history) { h.enter(8).say(1, 5).after(10 * second).enter(1) }, OverLimit},
		{"sessions inside: nobody new in place of one", func(h *history) { h.enter(8).say(1, 5).after(10 * second).leave(1).enter(1) }, OverLimit},
		{"sessions inside: until there are fewer", func(h *history) { h.enter(8).say(1, 5).after(10 * second).leave(4).enter(1) }, ""},
		{"a session of before moves, beyond all limits since it began", func(h *history) {
			h.enter(5).say(1, 5).after(10 * second)
			h.rights.account(0).inside++
			h.move(second)
		}, OverLimit},
		{"lowered and raised again", func(h *history) { h.say(1, 5).after(10*second).say(2, 8).enter(8) }, ""},
		{"lowered and raised again, not as far", func(h *history) { h.say(1, 5).after(10*second).say(2, 8).enter(9) }, OverLimit},
		{"a way that is open in one direction only: what arrives", func(h *history) { h.meet(0, 0, 1).say(2, 20).tell(2, 0).meet(0, 0, -1).after(time.Minute).enter(20) }, ""},
		{"what did not arrive", func(h *history) { h.meet(0, 0, 1).ask(2, 20).meet(0, 0, -1).after(2 * second).enter(11) }, OverLimit},
	})
}

// TestVerdictsOnCuts are the same about nodes that do not reach each other.
func TestVerdictsOnCuts(t *testing.T) {
	judge(t, []verdict{
		{"the last limit that reached it counts", func(h *history) { h.meet(0, 0, 1).say(1, 5).after(time.Minute).enter(10) }, ""},
		{"a lower one reached it before", func(h *history) { h.say(1, 5).after(2*second).meet(0, 0, 1).after(second).enter(6) }, OverLimit},
		{"cut before all had to know", func(h *history) { h.say(1, 5).after(second).meet(0, 0, 1).after(time.Minute).enter(10) }, ""},
		{"raised on the far side", func(h *history) { h.meet(0, 0, 1).say(2, 20).after(time.Minute).enter(20) }, ""},
		{"7, 400 and 150", func(h *history) { h.meet(0, 0, 1).say(0, 400).say(2, 150).after(time.Minute).enter(400) }, ""},
		{"no more running", func(h *history) { h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, -1).after(2 * second).enter(6) }, OverLimit},
		{"running until just now", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, -1).after(2*second - 1).enter(10)
		}, ""},
		{"all have found out who is gone, and know", func(h *history) { h.meet(0, 0, 1).say(1, 5).after(6600*time.Millisecond+2*second).goesBy(0, 10) }, LimitUnknown},
		{"not all have found out who is gone", func(h *history) { h.meet(0, 0, 1).say(1, 5).after(6600*time.Millisecond+2*second-1).goesBy(0, 10) }, ""},

		{"healed: 2 s later the old one is over", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(2 * second).enter(6)
		}, OverLimit},
		{"healed: until then it may hold", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(2*second - 1).enter(10)
		}, ""},
		{"healed: who goes by the old one after 2 s", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(2*second).goesBy(2, 10)
		}, LimitUnknown},
		{"healed: who goes by the old one until then", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(2*second-1).goesBy(2, 10)
		}, ""},
		{"healed: who goes by the new one", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(2*second).goesBy(2, 5)
		}, ""},
		{"healed, and cut again within 2 s", func(h *history) {
			h.meet(0, 0, 1).say(1, 5).after(20*second).meet(0, 0, 0).after(second).meet(0, 0, 1).after(time.Minute).enter(10)
		}, ""},
		{"who goes by what cannot have reached it", func(h *history) { h.meet(0, 0, 1).say(1, 5).after(second).goesBy(2, 5) }, LimitUnknown},
		{"somebody who is away for a moment every second: the old one is over in the end", func(h *history) {
			h.say(1, 5).flaps(20, 0, 0, -1).enter(6)
		}, OverLimit},
		{"the same: those who stay have to know", func(h *history) { h.say(1, 5).flaps(20, 0, 0, -1).goesBy(0, 10) }, LimitUnknown},
		{"the same: so has the one that comes and goes", func(h *history) { h.say(1, 5).flaps(20, 0, 0, -1).goesBy(2, 10) }, LimitUnknown},
		{"somebody who is cut off for a moment every second", func(h *history) { h.say(1, 5).flaps(20, 0, 0, 1).enter(6) }, OverLimit},
		{"what reaches nobody stays unknown, whoever comes and goes", func(h *history) {
			h.meet(0, 0, 1).say(2, 5).after(20 * second)
			for range 20 {
				h.meet(0, -1, 1).after(300*time.Millisecond).meet(0, 0, 1).after(700 * time.Millisecond)
			}
			h.goesBy(0, 10).goesBy(1, 10).enter(10)
		}, ""},
		{"away once: 2 s from then", func(h *history) {
			h.say(1, 5).after(second).meet(0, 0, -1).after(second).meet(0, 0, 0).after(2*second-1).goesBy(0, 10)
		}, ""},
		{"away once: and no longer", func(h *history) {
			h.say(1, 5).after(second).meet(0, 0, -1).after(second).meet(0, 0, 0).after(2*second).goesBy(0, 10)
		}, LimitUnknown},
		{"said at both sides within the same moment: either may win", func(h *history) {
			h.meet(0, 0, 1).say(0, 5).after(second/5).say(2, 7).after(20*second).meet(0, 0, 0).after(2*second).goesBy(0, 7).goesBy(2, 5)
		}, ""},
		{"said at both sides, one a second later: that wins", func(h *history) {
			h.meet(0, 0, 1).say(0, 5).after(second).say(2, 7).after(20*second).meet(0, 0, 0).after(2*second).goesBy(0, 5)
		}, LimitUnknown},
		{"said at one side what it goes by, and before that something else at the other: that wins", func(h *history) {
			h.meet(0, 0, 1).say(0, 5).after(second).say(2, 10).after(20*second).meet(0, 0, 0).after(2*second).goesBy(2, 10)
		}, LimitUnknown},
		{"said again at a node that knows the first: that wins", func(h *history) {
			h.say(0, 5).say(0, 7).after(2*second).goesBy(1, 5)
		}, LimitUnknown},
	})
}

// TestVerdictsOnStarts are the same about nodes that stop, start again, are new, or leave.
func TestVerdictsOnStarts(t *testing.T) {
	judge(t, []verdict{
		{"a crash loses what nobody was told", func(h *history) { h.ask(2, 5).crash(2, second, 0, 0, 0).after(time.Minute).goesBy(2, 10).goesBy(0, 10) }, ""},
		{"a crash keeps what an operator was told", func(h *history) { h.say(2, 5).crash(2, second, 0, 0, 1).after(time.Minute).goesBy(2, 10) }, LimitUnknown},
		{"and has the others know it later", func(h *history) { h.say(2, 5).crash(2, 20*second, 0, 0, 0).after(2 * second).enter(6) }, OverLimit},
		{"what was heard just before a crash may be lost", func(h *history) {
			h.say(0, 5).after(3*second).crash(2, second, 0, 0, 1).after(time.Minute).goesBy(2, 10).enter(10)
		}, ""},
		{"what was heard long before is not", func(h *history) {
			h.say(0, 5).after(13*second).crash(2, second, 0, 0, 1).after(time.Minute).goesBy(2, 10)
		}, LimitUnknown},
		{"unless its disk could not take it", func(h *history) {
			h.force.ails(2, true)
			h.say(0, 5).after(13*second).crash(2, second, 0, 0, 1).after(time.Minute).goesBy(2, 10)
		}, ""},
		{"a new node goes by what it is configured with at first", func(h *history) {
			h.say(0, 5).after(10 * second)
			h.force.forgets(2)
			h.meet(0, 0, -1).after(10*second).meet(0, 0, 0).tell(0, 2).goesBy(2, 10)
		}, ""},
		{"but that is no limit in force", func(h *history) {
			h.say(0, 5).after(10 * second)
			h.force.forgets(2)
			h.meet(0, 0, -1).after(10*second).meet(0, 0, 0).tell(0, 2).enter(6)
		}, OverLimit},
		{"and not for more than 2 s", func(h *history) {
			h.say(0, 5).after(10 * second)
			h.force.forgets(2)
			h.meet(0, 0, -1).after(10*second).meet(0, 0, 0).after(2*second).goesBy(2, 10)
		}, LimitUnknown},
		{"a limit is gone with the only disk that had it", func(h *history) {
			h.meet(0, 0, 1).say(2, 5)
			h.force.forgets(2)
			h.meet(0, 0, 0).after(time.Minute).enter(10)
		}, ""},
		{"who leaves in good order passes on what it knows", func(h *history) {
			h.say(2, 5).after(second)
			h.force.leaves(2)
			h.force.meet([]int32{0, 0, -1}, func(n int32) bool { return n == 2 })
			h.after(2 * second).enter(6)
		}, OverLimit},
		{"lowered where it was raised, and nobody hears of either: whom it let in stays", func(h *history) {
			h.meet(0, 0, 1).enter(5).say(2, 20).enterAt(2, 9).after(5*second).say(2, 5).after(time.Hour).leave(1).enter(1)
		}, ""},
		{"the same, and no more than it let in", func(h *history) {
			h.meet(0, 0, 1).enter(5).say(2, 20).enterAt(2, 9).after(5*second).say(2, 5).after(time.Hour).enter(6)
		}, OverLimit},
		{"the same, where the lower one has to be known", func(h *history) {
			h.say(2, 20).enterAt(2, 20).after(5*second).say(2, 15).after(2 * second).leave(1).enter(1)
		}, OverLimit},
		{"raised where nobody hears of it, and killed: whom it let in stays", func(h *history) {
			h.meet(0, 0, 1).enter(5).say(2, 20).enterAt(2, 9).meet(0, 0, -1).after(10 * second).leave(1).enter(1)
		}, ""},
		{"the same, and no more than it let in", func(h *history) {
			h.meet(0, 0, 1).enter(5).say(2, 20).enterAt(2, 9).meet(0, 0, -1).after(10 * second).enter(6)
		}, OverLimit},
		{"unless a later limit is set", func(h *history) {
			h.meet(0, 0, 1).say(2, 20).enterAt(2, 11).meet(0, 0, -1).after(second).say(0, 9).after(2 * second).enter(1)
		}, OverLimit},
		{"if an operator was told that it holds", func(h *history) {
			h.meet(0, 0, 1).ask(2, 20).enterAt(2, 11).meet(0, 0, -1).after(2 * second).enter(1)
		}, OverLimit},
		{"and for nobody who comes by the rate", func(h *history) {
			h.rate(2, 200).after(second).meet(0, 0, -1).after(2 * time.Minute).admit(101)
		}, OverRate},
		{"who is killed need not have", func(h *history) { h.say(2, 5).after(second).meet(0, 0, -1).after(time.Minute).enter(10) }, ""},
	})
}

// TestVerdictsOnRates are the same about new visitors in 60 s.
func TestVerdictsOnRates(t *testing.T) {
	judge(t, []verdict{
		{"as many as the limit says", func(h *history) { h.admit(100) }, ""},
		{"one more", func(h *history) { h.admit(101) }, OverRate},
		{"one more within 60 s", func(h *history) { h.admit(100).after(time.Minute - 1).admit(1) }, OverRate},
		{"one more after 60 s", func(h *history) { h.admit(100).after(time.Minute).admit(1) }, ""},
		{"lowered: the old one counts within 60 s of when it held", func(h *history) { h.rate(1, 5).after(time.Minute + 2*second - 1).admit(100) }, ""},
		{"lowered: and then no more", func(h *history) { h.rate(1, 5).after(time.Minute + 2*second + 1).admit(6) }, OverRate},
		{"raised", func(h *history) { h.rate(1, 200).admit(200) }, ""},
	})
}

// TestVerdictsInEvents are the same with limits of an event, which begins after a minute and
// lasts for one.
func TestVerdictsInEvents(t *testing.T) {
	four, hundred := 4, 100
	sale := func(c *Config) {
		c.Room.Events = []room.Event{{Name: "sale", TotalActiveUsers: &four, NewUsersPerMinute: &hundred, Start: Epoch().Add(45 * second), End: Epoch().Add(105 * second)}}
	}
	judge(t, []verdict{ // from 15 s before the epoch
		{"before", func(h *history) { h.after(59 * second).enter(10) }, ""},
		{"just begun: the old one holds for 2 s, and clocks differ", func(h *history) { h.after(62*second + 399*time.Millisecond).enter(10) }, ""},
		{"in it", func(h *history) { h.after(63 * second).enter(5) }, OverLimit},
		{"in it, as many as it says", func(h *history) { h.after(63 * second).enter(4) }, ""},
		{"some clock is ahead", func(h *history) { h.after(119*second + 600*time.Millisecond).enter(10) }, ""},
		{"an operator changes what the event does not let hold", func(h *history) { h.after(80*second).say(0, 50).after(second).enter(5) }, OverLimit},
		{"who goes by the event", func(h *history) { h.after(80*second).goesBy(0, 4) }, ""},
		{"who does not", func(h *history) { h.after(80*second).goesBy(0, 10) }, LimitUnknown},
	}, sale)
}

// TestVerdictsOnExceptions are the same about what docs/limit.md exempts: it is counted, and
// breaks no promise.
func TestVerdictsOnExceptions(t *testing.T) {
	open := func(c *Config) { c.Room.OnPartition = room.PartitionOpen }
	borrow := func(h *history, n int) *history { h.rights.account(0).borrowed += n; return h }
	judge(t, []verdict{
		{"borrowed sessions", func(h *history) { borrow(h, 2).enter(12) }, ""},
		{"one more than are borrowed", func(h *history) { borrow(h, 2).enter(13) }, BorrowedHidden},
	}, open)
	far := func(c *Config) { c.Clocks.Offset = second }
	judge(t, []verdict{{"clocks that are too far apart", func(h *history) { h.enter(12).admit(101) }, ""}}, far)
	other := func(c *Config) { c.Room.Policy = room.Even }
	judge(t, []verdict{{"another policy", func(h *history) { h.enter(12).admit(101) }, ""}}, other)

	h := newHistory(t, open)
	if borrow(h, 2).enter(12); h.f.Exempt != (Exempt{Borrowed: 2}) || h.over.active != 0.2 {
		t.Errorf("two borrowed: %+v, excess %v", h.f.Exempt, h.over.active)
	}
	h = newHistory(t, far)
	if h.enter(12).admit(101); h.f.Exempt != (Exempt{Clocks: 3}) || h.over.active != 0.2 || h.over.minute != 0.01 {
		t.Errorf("clocks apart: %+v, excess %v and %v", h.f.Exempt, h.over.active, h.over.minute)
	}
}

// TestARoomThatIsMadeTwice: the limits of a room are those that it was made with last, once the only
// disk that knew others is lost. Until then they stay.
func TestARoomThatIsMadeTwice(t *testing.T) {
	h := newHistory(t)
	h.meet(0, 0, 1).made(h.machines[2], 1)
	h.force.confirm(2, h.force.say(2, 1, ticket.Amount{Places: 5, Rate: 100}))
	h.after(time.Minute).meet(0, 0, -1).after(time.Minute)
	for _, c := range []struct {
		when string
		want int64
	}{{"its node is down", 5}, {"its disk is lost", 10}} {
		if h.made(h.machines[0], 1); h.bound(1, h.now).Places != c.want {
			t.Errorf("%s: the limit in force is %d, want %d", c.when, h.bound(1, h.now).Places, c.want)
		}
		h.force.forgets(2)
	}
}

// TestOvershootIsBesideTheLimitInForce is about the figure: it never compares with a limit
// that was not in force.
func TestOvershootIsBesideTheLimitInForce(t *testing.T) {
	h := newHistory(t)
	if h.meet(0, 0, 1).say(0, 400).after(second).say(2, 150).enter(400); h.over.active != 0 || len(h.violations) > 0 {
		t.Errorf("400 inside while 400 are allowed at one side: excess %v, %v", h.over.active, h.violations)
	}
	if h.after(20*second).meet(0, 0, 0).after(2 * second).enter(20); h.over.active != 1.8 {
		t.Errorf("420 inside after 150 has won: excess %v, want 1.8", h.over.active)
	}
}

func judge(t *testing.T, all []verdict, spoil ...func(*Config)) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(t, spoil...)
			c.do(h)
			var got []string
			for _, v := range h.violations {
				got = append(got, v.Kind)
			}
			if got = slices.Compact(got); c.want == "" && got != nil || c.want != "" && !slices.Equal(got, []string{c.want}) {
				t.Errorf("the verdict is %q, want %q: %v", got, c.want, h.violations)
			}
		})
	}
}
