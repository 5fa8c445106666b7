package node

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/bench/tiers/single"
	"github.com/ropeline/ropeline/crdt"
	"github.com/ropeline/ropeline/node/replica"
)

// asker is a lone node and a pass that ran out a moment ago, with an anchor that
// the node knows as a member.
func asker(t *testing.T) (c *Core, old Pass, anchor replica.Peer, now time.Time) {
	t.Helper()
	c, now = loneCore(t, openRooms(1))
	anchor = replica.Peer{ID: crdt.NodeID{9}, Boot: 1, Site: "b", Ready: true}
	c.SetPeers([]replica.Peer{anchor}, now)
	s := c.order[0].Settings()
	old = Pass{
		Visitor: VisitorID{1}, Room: c.order[0].id, Arrival: now.Add(-s.SessionDuration), AcceptedAt: now.Add(-s.SessionDuration),
		LeaseEnd: now.Add(-s.SessionDuration / 4),
	}
	old.Ticket.Anchor, old.Ticket.Boot, old.Ticket.Seq = anchor.ID, 1, 1
	return c, old, anchor, now
}

// questions picks those out of what a node sends.
func questions(t *testing.T, out []Message) (qs []question) {
	t.Helper()
	for _, m := range out {
		if m.Kind == kindAsk {
			q, err := decodeQuestion(m.Payload)
			if err != nil {
				t.Fatal(err)
			}
			qs = append(qs, q)
		}
	}
	return qs
}

// TestSameQuestionsBecomeOneMessage sends one pass that has run out many times
// at once, while the anchor takes its time.
func TestSameQuestionsBecomeOneMessage(t *testing.T) {
	c, old, anchor, now := asker(t)
	var got []Verdict
	ask := func() {
		if _, ok := c.order[0].Begin(old, true, now, func(v Verdict) { got = append(got, v) }); ok {
			t.Fatal("a pass that has run out was judged without its anchor")
		}
	}
	for range 100 {
		ask()
	}
	qs := questions(t, c.Flush(now))
	if len(qs) != 1 {
		t.Fatalf("%d questions for one pass, want 1", len(qs))
	}
	ask()
	if qs := questions(t, c.Flush(now)); len(qs) != 0 {
		t.Errorf("%d more questions while the first is under way, want 0", len(qs))
	}
	end := now.Add(time.Hour)
	from, lie := anchor, encodeReply(reply{qs[0].number, end})
	from.ID = crdt.NodeID{8}
	if _, err := c.Receive(from, kindAnswer, lie, now); err != nil || len(got) != 0 {
		t.Errorf("the answer of somebody who was not asked: %d verdicts, %v", len(got), err)
	}
	for range 2 { // the second time, nobody waits any more
		if _, err := c.Receive(anchor, kindAnswer, lie, now); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 101 || slices.ContainsFunc(got, func(v Verdict) bool { return !v.Admit || !v.Pass.LeaseEnd.Equal(end) }) {
		t.Errorf("%d verdicts, want the anchor's word for all 101", len(got))
	}
	v, ok := c.order[0].Begin(old, true, now, nil)
	if !ok || !v.Admit || !v.Pass.LeaseEnd.Equal(end) || len(questions(t, c.Flush(now))) != 0 {
		t.Errorf("the same pass after the answer: %+v, at once %v; want the anchor's word, which is kept", v, ok)
	}
}

func TestQuestionIsAskedAgainAndGivenUp(t *testing.T) {
	c, old, _, now := asker(t)
	var got []Verdict
	begin := now
	c.order[0].Begin(old, true, now, func(v Verdict) { got = append(got, v) })
	sent := len(questions(t, c.Flush(now)))
	for len(got) == 0 && now.Sub(begin) < time.Minute {
		now = now.Add(tickInterval)
		sent += len(questions(t, c.Tick(now)))
	}
	if took := now.Sub(begin); took != askTimeout || sent != 4 {
		t.Errorf("given up after %v and %d messages, want %v and 4", took, sent, askTimeout)
	}
	if len(got) != 1 || !got[0].Admit || !got[0].Pass.Arrival.Equal(old.Arrival) {
		t.Errorf("verdicts %+v, want the visitor in, from the old place", got)
	}
	if n := c.pendings.count.Load(); n != 0 {
		t.Errorf("%d requests are counted as waiting, want 0", n)
	}
}

func TestQuestionToNobodyIsGivenUpAtOnce(t *testing.T) {
	c, old, _, now := asker(t)
	c.SetPeers(nil, now)
	done := 0
	c.order[0].Begin(old, true, now, func(Verdict) { done++ })
	if qs := questions(t, c.Flush(now)); done != 1 || len(qs) != 0 {
		t.Errorf("%d answers, %d questions to a node that is no member, want 1, 0", done, len(qs))
	}
}

// TestRequestsBeyondTheBoundAreAnswered fills what may wait.
func TestRequestsBeyondTheBoundAreAnswered(t *testing.T) {
	single.Goroutine(t)
	c, old, _, now := asker(t)
	done := 0
	for range maxPendings {
		c.order[0].Begin(old, true, now, func(Verdict) { done++ })
	}
	if v, ok := c.order[0].Begin(old, true, now, func(Verdict) { t.Error("answered twice") }); !ok || !v.Pass.Arrival.Equal(old.Arrival) {
		t.Errorf("beyond the bound: %v, %+v, want an answer with the visitor's place", ok, v)
	}
	c.Close(now)
	if done != maxPendings {
		t.Errorf("%d of %d were answered when the node closed", done, maxPendings)
	}
	if _, ok := c.order[0].Begin(old, true, now, func(Verdict) {}); !ok {
		t.Error("a closed node lets a request wait")
	}
}

// TestDecideWaitsForTheAnchor has requests block while a loop answers, and ends
// the loop while others still wait.
func TestDecideWaitsForTheAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, old, anchor, now := asker(t)
		end := now.Add(time.Hour)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if v := c.order[0].Decide(old, true, now); !v.Admit || !v.Pass.LeaseEnd.Equal(end) {
					t.Errorf("verdict = %+v, want the anchor's word for all", v)
				}
			})
		}
		synctest.Wait()
		<-c.Wake()
		for _, q := range questions(t, c.Flush(now)) {
			c.Receive(anchor, kindAnswer, encodeReply(reply{q.number, end}), now)
		}
		wg.Wait()
		wg.Go(func() { c.order[0].Decide(old, true, now) })
		synctest.Wait()
		c.Close(now)
		wg.Wait()
	})
}

func TestQuestionsAndRepliesAreRead(t *testing.T) {
	q := question{number: 7, room: roomID, passEnd: time.UnixMilli(1_700_000_000_123), age: 250 * time.Millisecond}
	q.ticket.Anchor, q.ticket.Boot, q.ticket.Block, q.ticket.Seq = crdt.NodeID{3}, 4, 5, 6
	if got, err := decodeQuestion(encodeQuestion(q)); err != nil || got != q {
		t.Errorf("question = %+v, %v, want %+v", got, err, q)
	}
	for _, a := range []reply{{number: 7}, {number: 1 << 60, end: time.UnixMilli(1_700_000_000_123)}} {
		if got, err := decodeReply(encodeReply(a)); err != nil || got.number != a.number || !got.end.Equal(a.end) {
			t.Errorf("reply = %+v, %v, want %+v", got, err, a)
		}
	}
	whole := encodeQuestion(q)
	old := q
	old.age = maxAge + time.Millisecond
	for _, msg := range [][]byte{nil, whole[:len(whole)-1], append(bytes.Clone(whole), 0), encodeQuestion(old), encodeReply(reply{})} {
		if _, err := decodeQuestion(msg); !errors.Is(err, errMalformed) {
			t.Errorf("question %x: %v, want %v", msg, err, errMalformed)
		}
	}
}

func FuzzDecodeQuestion(f *testing.F) {
	f.Add(encodeQuestion(question{number: 1, room: roomID, passEnd: time.UnixMilli(1)}))
	f.Add(encodeReply(reply{1, time.UnixMilli(1)}))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if q, err := decodeQuestion(msg); err == nil {
			if again, err := decodeQuestion(encodeQuestion(q)); err != nil || again != q {
				t.Errorf("%+v became %+v, %v", q, again, err)
			}
		}
		if a, err := decodeReply(msg); err == nil {
			if again, err := decodeReply(encodeReply(a)); err != nil || again != a {
				t.Errorf("%+v became %+v, %v", a, again, err)
			}
		}
	})
}
