package node

import (
	"math"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/limit"
	"github.com/ropeline/ropeline/node/room"
)

// TestExampleWaitOnAMesh lets in 30 visitors each minute, until 2, 50 and 60 wait who arrived in
// three minutes. Sessions end within a minute, so that the next 30 find room.
func TestExampleWaitOnAMesh(t *testing.T) {
	s := exampleRoom(room.Even, 30)
	s.SessionDuration, s.RefreshInterval = 55*time.Second, 50*time.Second
	w := exampleWorld(t, s, "dublin", "nairobi")
	begin := w.now.Truncate(time.Minute)
	minute := func(m int) { w.runTo(begin, time.Duration(m)*time.Minute+2*time.Second) }
	enter := func(people []*person) {
		t.Helper()
		if in := w.askAll(people); in != 30 {
			t.Fatalf("%d of %d were let in, want 30", in, len(people))
		}
		w.run(2 * time.Second)
	}
	minute(0)
	enter(w.crowd(30, w.spread))
	minute(1)
	enter(w.crowd(30, w.spread))
	oldest := w.crowd(32, at(w.nodes[0]))
	w.askAll(oldest)
	minute(2)
	enter(oldest)
	w.askAll(w.crowd(50, w.spread))
	minute(3)
	w.askAll(w.crowd(60, w.spread))
	w.run(2 * time.Second)
	for i, m := range w.nodes {
		v := w.viewAt(i)
		if len(v.Buckets) != 3 || v.Buckets[0].Waiting != 2 || v.Buckets[1].Waiting != 50 || v.Buckets[2].Waiting != 60 || v.AdmittedMinute != 30 {
			t.Fatalf("node %d: %v a minute of %+v, want 30 of 2, 50 and 60", i, v.AdmittedMinute, v.Buckets)
		}
		p := &person{name: "last in line", at: m}
		if e := w.ask(p).Estimate; p.in || !e.Known || e.Minutes != 2 {
			t.Errorf("node %d tells %+v, want a wait of 2 minutes", i, e)
		}
	}
}

// TestExampleRandomWaitOnAMesh lets in 10 visitors in a minute, while 100 draw. Half of them are in
// after 6.58 minutes. A node tells whole minutes, rounded up: 7, and 14 until three quarters are
// in, which takes twice as long. So it reckons with more than 6.5 and at most 7. With 25 who draw,
// the same formula gives 1.36 and 2.71, and one that adds up 4 in 10 a minute 1.73 and 3.47.
func TestExampleRandomWaitOnAMesh(t *testing.T) {
	s := exampleRoom(room.Even, 10)
	s.QueueingMethod = room.Random
	w := exampleWorld(t, s, "dublin", "nairobi")
	begin := w.now.Truncate(time.Minute)
	w.runTo(begin, 2*time.Second)
	if in := w.askAll(w.crowd(10, w.spread)); in != 10 {
		t.Fatalf("%d of 10 were let in", in)
	}
	w.runTo(begin, time.Minute+2*time.Second)
	for _, c := range []struct{ come, waiting, p25, p50, p75 int }{
		{25, 25, 1, 2, 3},
		{73, 100, 3, 7, 14}, // 2 have asked meanwhile
	} {
		w.askAll(w.crowd(c.come, w.spread))
		w.run(2 * time.Second)
		for i, m := range w.nodes {
			if v := w.viewAt(i); v.AdmittedMinute != 10 || v.Waiting != c.waiting {
				t.Fatalf("node %d: %v a minute of %d, want 10 of %d", i, v.AdmittedMinute, v.Waiting, c.waiting)
			}
			if e := w.ask(&person{name: "visitor", at: m}).Estimate; !e.Known || e.P25 != c.p25 || e.Minutes != c.p50 || e.P75 != c.p75 {
				t.Errorf("node %d tells %+v, want %d, %d and %d minutes", i, e, c.p25, c.p50, c.p75)
			}
		}
	}
}

// TestExampleRateOnAMesh has clients come 42 times in one period and 17 times in the next, to
// all nodes in turn. After a quarter of it, one more makes 42 × 3/4 + 18 = 49.5, of 50 that are
// allowed, and another one 50.5. A node learns what others have counted when it is asked itself,
// and takes that to be some milliseconds older than it is.
func TestExampleRateOnAMesh(t *testing.T) {
	w := exampleWorld(t, testSettings(10), "dublin", "dublin", "nairobi", "nairobi")
	w.limited(limitRule(50, limit.Mesh))
	begin := w.now.Truncate(time.Minute)
	clients := []string{"first", "second", "third", "fourth"}
	for period, n := range []int{42, 17} {
		w.runTo(begin, time.Duration(period)*time.Minute+500*time.Millisecond) // at the edge others would count it in the period before
		for k := range n {
			for i, client := range clients {
				if w.take(w.spread(k+i), client).Limited {
					t.Fatalf("%s is limited at request %d of period %d", client, k+1, period+1)
				}
			}
			w.run(850 * time.Millisecond) // faster, and the rate would be above 50 for a moment
		}
	}
	w.runTo(begin, time.Minute+15*time.Second)
	for i, m := range w.nodes { // the last of the 17 requests of client i came to node i
		meter := m.core.Meter(limit.ID{1})
		key := meter.Key([]byte(clients[i]))
		if w.take(m, clients[i]).Limited {
			t.Errorf("node %d limits at a rate of 49.5", i)
		}
		if r, _ := meter.Report(key, true, w.now); r.Previous != 42 || r.Current != 18 || math.Abs(r.Estimate-49.5) > 0.05 {
			t.Errorf("node %d reports %+v, want 42 and 18, a rate of 49.5", i, r)
		}
		if !w.take(m, clients[i]).Limited {
			t.Errorf("node %d lets pass at a rate of 50.5", i)
		}
	}
}
