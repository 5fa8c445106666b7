package limit

import "testing"

func TestStandstill(t *testing.T) {
	r := &Terms{Period: 10_000, Requests: 3}
	var s Standstill
	var p Passes
	now := start
	passes := func(k Key, counts bool) bool { return s.Waited(now) && p.Pass(k, r, counts, now) }
	runs := func(d Millis) {
		for end := now + d; now < end; now += 50 {
			s = s.Run(now)
		}
	}
	if passes(1, true) {
		t.Error("a request waited before the node ran")
	}
	runs(5000)
	now += stoodStill - 50
	if passes(1, true) {
		t.Error("a request waited while the node had much to do")
	}
	now += 20_000 // it stands still, and a request is read before it runs
	for i := range 5 {
		if got, want := passes(1, true), i < 3; got != want {
			t.Errorf("request %d of 3: passes %v", i+1, got)
		}
		s = s.Run(now)
		now += 50
	}
	for range 5 {
		if !passes(2, false) {
			t.Error("what is only asked counts")
		}
	}
	if !passes(2, true) {
		t.Error("another key does not pass")
	}
	runs(catchUp)
	if passes(3, true) {
		t.Error("requests go on to pass")
	}
	now += 2000
	if passes(1, true) || !passes(3, true) {
		t.Error("not once within a period")
	}
	now += r.Period
	if !passes(1, true) {
		t.Error("not in the next period")
	}
}

// However many keys come, it does not grow beyond what it may.
func TestPassesAreBounded(t *testing.T) {
	r := &Terms{Period: 10_000, Requests: 3}
	var s Passes
	now := start
	for k := range Key(maxWaited) {
		if !s.Pass(k+1, r, true, now) {
			t.Fatalf("key %d of %d does not pass", k+1, maxWaited)
		}
	}
	if s.Pass(1<<40, r, true, now) || !s.Pass(1, r, true, now) {
		t.Error("there is room for more keys, or none for those that there are")
	}
	if now += r.Period; !s.Pass(1<<40, r, true, now) || len(s.byKey) != 1 {
		t.Errorf("%d keys are kept of the period before", len(s.byKey))
	}
}

// A flood that finds no room costs next to nothing: keys that are over are looked for once in
// a while.
func TestFloodOfPassesIsCheap(t *testing.T) {
	r, short := &Terms{Period: 10_000, Requests: 3}, &Terms{Period: 1000, Requests: 3}
	var s Passes
	now := start
	s.Pass(1, short, true, now)
	for k := range Key(maxWaited - 1) {
		s.Pass(k+2, r, true, now)
	}
	now += 900
	for k := range Key(100_000) {
		if s.Pass(1<<40+k, r, true, now) {
			t.Fatal("there is room for more keys")
		}
	}
	if now += 100; s.Pass(1<<40, r, true, now) {
		t.Error("all were looked at twice within a second")
	}
	if now += catchUp; !s.Pass(1<<40, r, true, now) {
		t.Error("there is no room where a key is over")
	}
}
