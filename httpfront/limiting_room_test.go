package httpfront

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// waits takes the one place that there is, and returns the cookie of somebody who waits.
func (c *crowded) waits() string {
	c.t.Helper()
	c.fill()
	return c.ask(greedy, "").is(c.t, Queued).Cookie
}

// A waiting visitor's own polls are not limited, however many come from the address.
func TestWhoWaitsIsNeverLimited(t *testing.T) {
	c := newCrowdedRoom(t, smallRoom(), fiveAMinute())
	cookie := c.waits()
	equal(t, "requests of the address that are limited", c.count(5, Limited, greedy, ""), 1)
	for i := range 40 {
		c.pass(time.Second)
		cookie = cmp.Or(c.ask(greedy, cookie).is(t, Queued, "poll", i+1).Cookie, cookie)
	}
}

// A pass that was exchanged for a session is no way round a limit.
func TestAnExchangedPassIsLimitedLikeItsSession(t *testing.T) {
	c := newCrowdedRoom(t, smallRoom(), fiveAMinute())
	waits := c.waits()
	c.pass(2 * time.Minute) // the one session ends
	c.awaited(greedy, waits).is(t, Admitted, "the place that has come free")
	c.pass(time.Second)
	equal(t, "requests of 20 with the waiting pass that are limited", c.count(20, Limited, greedy, waits), 15)
}

// Neither is one whose place was given up long ago, with which one is somebody new each time: it
// counts, and takes nobody's place.
func TestAPassOfALineThatWasLeftIsLimited(t *testing.T) {
	for _, action := range []limit.Action{limit.Block, limit.Queue} {
		s := smallRoom()
		s.TotalActiveUsers, s.NewUsersPerMinute = 30, 30
		c := newCrowdedRoom(t, s, fiveAMinute(func(r *limit.Rule) { r.Action = action }))
		for i := range 40 {
			c.ask("198.51.100."+strconv.Itoa(i), "")
		}
		left := c.ask(greedy, "").is(t, Queued, action)
		asked := asks("GET", "/", "Cookie", strings.Split(left.Cookie, ";")[0])
		if x := c.front.Explain(asked); !x.Unlimited {
			t.Errorf("%s: explained: who waits is held against %+v", action, x.Limits)
		}
		c.pass(30 * time.Minute) // all have gone, and the place with them
		if x := c.front.Explain(asked); x.Unlimited || len(x.Limits) != 1 {
			t.Errorf("%s: explained: who has left the line is held against %+v", action, x.Limits)
		}
		equal(t, fmt.Sprint(action, ": requests of 20 with an old pass that are let in"), c.count(20, Admitted, greedy, left.Cookie), 5)
	}
}

// Nor one whose session is over: it takes no place either.
func TestAPassWhoseSessionIsOverIsLimited(t *testing.T) {
	const over = time.Minute + time.Second // a session
	c := newCrowdedRoom(t, smallRoom(), fiveAMinute())
	waits := c.waits()
	c.pass(over)
	c.awaited(greedy, waits).is(t, Admitted, "the place that has come free")
	c.pass(over)
	c.fill()
	c.exhaust(greedy, "")
	c.ask(greedy, "").is(t, Limited)
	c.pass(over)
	// What the pass was exchanged for is over, and its place in line not forgotten yet.
	equal(t, "the cookie", c.awaited(greedy, waits).is(t, Limited).Cookie, "")
	c.pass(time.Second)
	c.ask(other, "").is(t, Admitted, "another address, for the one place")
}

// Where no cookies reach a visitor the pass with which they waited is shown all the time. It is worth the
// session, also when nobody would keep the place in line any more.
func TestAnOldExchangedPassKeepsItsSession(t *testing.T) {
	s := smallRoom()
	s.SessionDuration, s.PlaceKept = 10*time.Minute, time.Minute
	c := newCrowdedRoom(t, s, fiveAMinute(func(r *limit.Rule) {
		r.Action, r.Characteristics, r.MitigationTimeout = limit.Queue, []string{limit.VisitorID}, time.Minute
	}))
	waits := c.waits()
	for in := false; !in; {
		c.pass(time.Second)
		a := c.awaited(greedy, waits)
		if in = a.Outcome == Admitted; !in && a.Cookie != "" {
			waits = a.Cookie
		}
	}
	for range 10 { // minutes, with a request in each, while the pass gets old
		c.pass(30 * time.Second)
		c.awaited(greedy, waits).is(t, Admitted, "in a session that runs")
	}
	c.pass(2 * time.Minute)
	for i := range 5 {
		c.awaited(greedy, waits).is(t, Admitted, "request", i+1)
		c.ask(greedy, "") // of another visitor: it counts apart
	}
	equal(t, "a place in line for one too many", c.awaited(greedy, waits).is(t, Queued).Cookie, "")
	c.pass(2 * time.Minute)
	c.awaited(greedy, waits).is(t, Admitted, "after that the session")
}

// limited is another front, which judges for a room, and counts as that of c does. It returns what asks it with the pass of
// somebody who waits, too.
func (c *crowded) limited(decide func(p node.Pass, known bool, now time.Time) node.Verdict) (*Front, *fakeRoom, *Question) {
	c.t.Helper()
	r := newRoom(decide)
	f := judges(c.t, fakeRooms{"/room", r}, func(cfg *Config) { cfg.Clock = func() time.Time { return c.now } })
	noError(c.t, f.FollowLimits([]limit.Rule{fiveAMinute()}, metersOf(c.core)))
	waits := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{1}, Arrival: c.now, LastPoll: c.now}
	return f, r, asks("GET", "/room", "Cookie", "ropeline="+string(f.cfg.Keys.AppendSeal(nil, waits, "shop.example")))
}

// Who turns out to be somebody new only when the room has decided gives back the place at once.
func TestAPlaceThatALimitForbidsIsGivenBack(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute()) // counts
	placed := node.Pass{Visitor: node.VisitorID{2}, Room: crdt.RoomID{1}}
	f, r, q := c.limited(func(_ node.Pass, _ bool, now time.Time) node.Verdict {
		p := placed
		p.Arrival, p.AcceptedAt, p.LeaseEnd = now, now, now.Add(time.Minute)
		return node.Verdict{Admit: true, Pass: p, SetPass: true}
	})
	for i := range 5 {
		f.Judge(q).is(t, Admitted, "request", i+1)
	}
	equal(t, "the cookie", f.Judge(q).is(t, Limited).Cookie, "")
	if len(r.ended) != 1 || r.ended[0].Visitor != placed.Visitor {
		t.Errorf("%d places were given back, want that of the limited one", len(r.ended))
	}
}

// In a room that lets everybody pass, a pass with which somebody would wait is no way
// round, either.
func TestADryRunIsNoWayRoundALimit(t *testing.T) {
	s := smallRoom()
	s.DryRun = true
	c := newCrowdedRoom(t, s, fiveAMinute())
	c.fill()
	waits := c.ask(greedy, "").Cookie
	equal(t, "requests that pass", c.count(4, Admitted, greedy, waits), 4)
	c.ask(greedy, waits).is(t, Limited)
}

// Who is on the site and comes too often keeps the session.
func TestALimitEndsNoSession(t *testing.T) {
	for _, action := range []limit.Action{limit.Block, limit.Queue} {
		s := open()
		s.SessionDuration = 30 * time.Minute
		c := newCrowdedRoom(t, s, fiveAMinute(func(r *limit.Rule) { r.Action = action }))
		in := c.ask(greedy, "")
		c.count(4, Admitted, greedy, "")
		a := c.ask(greedy, in.Cookie)
		if a.Outcome == Admitted || a.Cookie != "" {
			t.Fatalf("%s: got %v, and the cookie %q", action, a.Outcome, a.Cookie)
		}
		c.pass(10*time.Minute + time.Second)
		c.ask(greedy, in.Cookie).is(t, Admitted, action, "the session after the timeout")
	}
}

// Who has no pass, and comes too often for a rule that queues, waits though places are
// free, and is let in like everybody who waits.
func TestALimitSendsToTheLine(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	c.exhaust(greedy, "")
	a := c.page(greedy).is(t, Queued)
	if a.Cookie == "" || a.field("Ropeline-State") != "waiting" || a.field("RateLimit") == "" {
		t.Fatalf("got %q, %v", a.Cookie, a.Fields)
	}
	equal(t, "how many wait", c.waiting(), 1)
	c.pass(2 * time.Second)
	c.awaited(greedy, a.Cookie).is(t, Admitted, "the next poll")
}

// Whose turn it is with a request is let in whatever the limit; who was let in by an earlier one is not.
func TestWhoseTurnItIsIsNotLimited(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute()) // counts
	ago := time.Duration(0)
	f, r, q := c.limited(func(p node.Pass, _ bool, now time.Time) node.Verdict {
		p.AcceptedAt, p.LeaseEnd = now.Add(-ago), now.Add(time.Minute)
		return node.Verdict{Admit: true, Pass: p, SetPass: true}
	})
	for range 6 {
		f.Judge(asks("GET", "/room"))
	}
	f.Judge(q).is(t, Admitted, "who is let in with the request")
	ago = 50 * time.Millisecond
	f.Judge(q).is(t, Admitted, "who was let in just before it")
	ago = 5 * time.Second
	f.Judge(q).is(t, Limited, "who was let in by an earlier one")
	equal(t, "sessions that were ended", len(r.ended), 0)
}
