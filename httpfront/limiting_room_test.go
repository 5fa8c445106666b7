package httpfront

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// A waiting visitor's own polls are not limited, however many come from the address.
func TestWhoWaitsIsNeverLimited(t *testing.T) {
	s := smallRoom()
	c := newCrowdedRoom(t, s, fiveAMinute())
	c.fill()
	waits := c.ask(greedy, "")
	if waits.Outcome != Queued {
		t.Fatalf("got %v, want somebody who waits", waits.Outcome)
	}
	for range 4 {
		c.ask(greedy, "")
	}
	if a := c.ask(greedy, ""); a.Outcome != Limited {
		t.Fatalf("the address is not limited: %v", a.Outcome)
	}
	cookie := waits.Cookie
	for i := range 40 {
		c.pass(time.Second)
		a := c.ask(greedy, cookie)
		if a.Outcome == Limited {
			t.Fatalf("poll %d is limited", i+1)
		}
		if a.Cookie != "" {
			cookie = a.Cookie
		}
	}
}

// A pass that was exchanged for a session is no way round a limit.
func TestAnExchangedPassIsLimitedLikeItsSession(t *testing.T) {
	s := smallRoom()
	c := newCrowdedRoom(t, s, fiveAMinute())
	c.fill()
	waits := c.ask(greedy, "")
	c.pass(2 * time.Minute) // the one session ends
	in := c.awaited(greedy, waits.Cookie)
	if in.Outcome != Admitted {
		t.Fatalf("got %v, want the place that has come free", in.Outcome)
	}
	c.pass(time.Second)
	limited := 0
	for range 20 {
		if c.awaited(greedy, waits.Cookie).Outcome == Limited {
			limited++
		}
	}
	if limited != 15 {
		t.Errorf("%d of 20 requests with the waiting pass are limited, want 15", limited)
	}
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
		left := c.ask(greedy, "")
		if left.Outcome != Queued {
			t.Fatalf("%s: got %v, want somebody who waits", action, left.Outcome)
		}
		asked := asks("GET", "/", "Cookie", strings.Split(left.Cookie, ";")[0])
		if x := c.front.Explain(asked); !x.Unlimited {
			t.Errorf("%s: explained: who waits is held against %+v", action, x.Limits)
		}
		c.pass(30 * time.Minute) // all have gone, and the place with them
		if x := c.front.Explain(asked); x.Unlimited || len(x.Limits) != 1 {
			t.Errorf("%s: explained: who has left the line is held against %+v", action, x.Limits)
		}
		in := 0
		for range 20 {
			if c.awaited(greedy, left.Cookie).Outcome == Admitted {
				in++
			}
		}
		if in != 5 {
			t.Errorf("%s: %d of 20 requests with an old pass were let in, want 5", action, in)
		}
	}
}

// Nor one whose session is over: it takes no place either.
func TestAPassWhoseSessionIsOverIsLimited(t *testing.T) {
	const over = time.Minute + time.Second // a session
	c := newCrowdedRoom(t, smallRoom(), fiveAMinute())
	c.fill()
	waits := c.ask(greedy, "")
	c.pass(over)
	if in := c.awaited(greedy, waits.Cookie); in.Outcome != Admitted {
		t.Fatalf("got %v, want the place that has come free", in.Outcome)
	}
	c.pass(over)
	c.fill()
	c.exhaust(greedy, "")
	if a := c.ask(greedy, ""); a.Outcome != Limited {
		t.Fatalf("got %v", a.Outcome)
	}
	c.pass(over)
	// What the pass was exchanged for is over, and its place in line not forgotten yet.
	if a := c.awaited(greedy, waits.Cookie); a.Outcome != Limited || a.Cookie != "" {
		t.Errorf("got %v and the cookie %q", a.Outcome, a.Cookie)
	}
	c.pass(time.Second)
	if a := c.ask(other, ""); a.Outcome != Admitted {
		t.Errorf("another address is %v, want the one place", a.Outcome)
	}
}

// Where no cookies reach a visitor the pass with which they waited is shown all the time. It is worth the
// session, also when nobody would keep the place in line any more.
func TestAnOldExchangedPassKeepsItsSession(t *testing.T) {
	s := smallRoom()
	s.SessionDuration, s.PlaceKept = 10*time.Minute, time.Minute
	c := newCrowdedRoom(t, s, fiveAMinute(func(r *limit.Rule) {
		r.Action, r.Characteristics, r.MitigationTimeout = limit.Queue, []string{limit.VisitorID}, time.Minute
	}))
	c.fill()
	waits := c.ask(greedy, "")
	for in := false; !in; {
		c.pass(time.Second)
		a := c.awaited(greedy, waits.Cookie)
		if in = a.Outcome == Admitted; !in && a.Cookie != "" {
			waits = a
		}
	}
	for range 10 { // minutes, with a request in each, while the pass gets old
		c.pass(30 * time.Second)
		if a := c.awaited(greedy, waits.Cookie); a.Outcome != Admitted {
			t.Fatalf("got %v in a session that runs", a.Outcome)
		}
	}
	c.pass(2 * time.Minute)
	for i := range 5 {
		if a := c.awaited(greedy, waits.Cookie); a.Outcome != Admitted {
			t.Fatalf("request %d is %v", i+1, a.Outcome)
		}
		c.ask(greedy, "") // of another visitor: it counts apart
	}
	if a := c.awaited(greedy, waits.Cookie); a.Outcome != Queued || a.Cookie != "" {
		t.Errorf("one too many is %v, with the cookie %q: want the page, and no place in line", a.Outcome, a.Cookie)
	}
	c.pass(2 * time.Minute)
	if a := c.awaited(greedy, waits.Cookie); a.Outcome != Admitted {
		t.Errorf("after that the session is %v", a.Outcome)
	}
}

// limited is another front, which judges for r below /room, and counts as that of c does.
func (c *crowded) limited(r Room) *Front {
	c.t.Helper()
	f := judges(c.t, fakeRooms{"/room", r}, func(cfg *Config) { cfg.Clock = func() time.Time { return c.now } })
	if err := f.FollowLimits([]limit.Rule{fiveAMinute()}, metersOf(c.core)); err != nil {
		c.t.Fatal(err)
	}
	return f
}

// Who turns out to be somebody new only when the room has decided gives back the place at once.
func TestAPlaceThatALimitForbidsIsGivenBack(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute()) // counts
	placed := node.Pass{Visitor: node.VisitorID{2}, Room: crdt.RoomID{1}}
	r := newRoom(func(_ node.Pass, _ bool, now time.Time) node.Verdict {
		p := placed
		p.Arrival, p.AcceptedAt, p.LeaseEnd = now, now, now.Add(time.Minute)
		return node.Verdict{Admit: true, Pass: p, SetPass: true}
	})
	f := c.limited(r)
	waits := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{1}, Arrival: c.now, LastPoll: c.now}
	q := asks("GET", "/room", "Cookie", "ropeline="+string(f.cfg.Keys.AppendSeal(nil, waits, "shop.example")))
	for i := range 5 {
		if a := f.Judge(q); a.Outcome != Admitted {
			t.Fatalf("request %d is %v", i+1, a.Outcome)
		}
	}
	if a := f.Judge(q); a.Outcome != Limited || a.Cookie != "" {
		t.Errorf("got %v and the cookie %q", a.Outcome, a.Cookie)
	}
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
	waits := c.ask(greedy, "")
	for range 4 {
		if a := c.ask(greedy, waits.Cookie); a.Outcome != Admitted {
			t.Fatalf("got %v in a dry run", a.Outcome)
		}
	}
	if a := c.ask(greedy, waits.Cookie); a.Outcome != Limited {
		t.Errorf("got %v", a.Outcome)
	}
}

// Who is on the site and comes too often keeps the session.
func TestALimitEndsNoSession(t *testing.T) {
	for _, action := range []limit.Action{limit.Block, limit.Queue} {
		s := open()
		s.SessionDuration = 30 * time.Minute
		c := newCrowdedRoom(t, s, fiveAMinute(func(r *limit.Rule) { r.Action = action }))
		in := c.ask(greedy, "")
		for range 4 {
			c.ask(greedy, "")
		}
		a := c.ask(greedy, in.Cookie)
		if a.Outcome == Admitted || a.Cookie != "" {
			t.Fatalf("%s: got %v, and the cookie %q", action, a.Outcome, a.Cookie)
		}
		c.pass(10*time.Minute + time.Second)
		if a := c.ask(greedy, in.Cookie); a.Outcome != Admitted {
			t.Errorf("%s: after the timeout the session is %v", action, a.Outcome)
		}
	}
}

// Who has no pass, and comes too often for a rule that queues, waits though places are
// free, and is let in like everybody who waits.
func TestALimitSendsToTheLine(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute(func(r *limit.Rule) { r.Action = limit.Queue }))
	c.exhaust(greedy, "")
	a := c.page(greedy)
	if a.Outcome != Queued || a.Cookie == "" || a.field("Ropeline-State") != "waiting" || a.field("RateLimit") == "" {
		t.Fatalf("got %v, %q, %v", a.Outcome, a.Cookie, a.Fields)
	}
	if n := c.waiting(); n != 1 {
		t.Errorf("%d wait, want one", n)
	}
	c.pass(2 * time.Second)
	if a := c.awaited(greedy, a.Cookie); a.Outcome != Admitted {
		t.Errorf("the next poll is %v", a.Outcome)
	}
}

// Whose turn it is with a request is let in whatever the limit; who was let in by an earlier one is not.
func TestWhoseTurnItIsIsNotLimited(t *testing.T) {
	c := newCrowdedRoom(t, open(), fiveAMinute()) // counts
	waits := node.Pass{Visitor: node.VisitorID{1}, Room: crdt.RoomID{1}, Arrival: c.now, LastPoll: c.now}
	ago := time.Duration(0)
	r := newRoom(func(p node.Pass, _ bool, now time.Time) node.Verdict {
		p.AcceptedAt, p.LeaseEnd = now.Add(-ago), now.Add(time.Minute)
		return node.Verdict{Admit: true, Pass: p, SetPass: true}
	})
	f := c.limited(r)
	for range 6 {
		f.Judge(asks("GET", "/room"))
	}
	q := asks("GET", "/room", "Cookie", "ropeline="+string(f.cfg.Keys.AppendSeal(nil, waits, "shop.example")))
	for _, ago = range []time.Duration{0, 50 * time.Millisecond, 5 * time.Second} {
		want := Admitted
		if ago > time.Second {
			want = Limited
		}
		if a := f.Judge(q); a.Outcome != want {
			t.Errorf("who was let in %v before the request is %v, want %v", ago, a.Outcome, want)
		}
	}
	if len(r.ended) != 0 {
		t.Errorf("%d sessions were ended", len(r.ended))
	}
}
