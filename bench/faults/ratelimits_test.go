//go:build linux

package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/node"
)

// A short run of the fault that lets most pass; make measure NAME=limit-faults tries all of them.
func TestALimitHoldsOnBothSidesOfACut(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	cut, err := choose(limitScenarios(4*time.Second), "P6")
	if err != nil {
		t.Fatal(err)
	}
	r, err := execute(t.Context(), cut[0], testOptions(t, testPolicy), 0)
	if err != nil {
		t.Fatal(err)
	}
	values := measurement.Values{}
	r.limited.put(values)
	t.Log(values)
	for _, why := range r.broken() {
		t.Error(why)
	}
	// Each side lets the limit pass, which is twice as much as one mesh does.
	if most := r.limited.most("greedy"); most[meanwhile] < 3*r.limited.limit()/2 {
		t.Errorf("the cut was not felt: %v reached the site", most)
	}
}

func TestWhatDoesNotHoldIsSeen(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n)*10+5, 0) } // within a period
	made := func(change func(*limited)) *limited {
		l := newLimited(10*time.Second, 2)
		l.from, l.to = at(102), at(104)
		l.bound = node.LimitBound{DelaySeconds: 0.5} // 30 at the rate of the client that asks too often
		l.clients = []*client{{name: "greedy"}, {name: "honest"}}
		l.clients[0].limited.Store(1)
		l.came["greedy"] = map[int64]int{100: 130, 101: 100, 102: 230, 104: 230, 105: 130}
		change(l)
		return l
	}
	for _, c := range []struct {
		what   string
		change func(*limited)
		want   string // in what is broken; empty: nothing is
	}{
		{"all is as promised", func(*limited) {}, ""},
		{"too many before", func(l *limited) { l.came["greedy"][101] = 131 }, "131 reached the site in a period, and 130 may"},
		{"too many meanwhile", func(l *limited) { l.came["greedy"][103] = 231 }, "231 reached the site in a period, and 230 may"},
		{"too many after", func(l *limited) { l.came["greedy"][105] = 131 }, "131 reached the site in a period, and 130 may"},
		{"nobody was limited", func(l *limited) { l.clients[0].limited.Store(0) }, "the limit was not felt"},
		{"who kept to it was limited", func(l *limited) { l.clients[1].limited.Store(1) }, "1 requests of honest were limited"},
		{"errors", func(l *limited) { l.clients[1].odd.Store(2) }, "2 requests of honest got neither the site nor 429"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &run{limited: made(c.change)}
			if got := strings.Join(r.broken(), "; "); got != c.want {
				t.Errorf("broken: %q, want %q", got, c.want)
			}
		})
	}
	got := measurement.Values{}
	made(func(*limited) {}).put(got)
	for unit, want := range (measurement.Values{"limit": 100, "before": 130, "meanwhile": 230, "after": 130, "may": 130, "may-meanwhile": 230}) {
		if got[unit] != want {
			t.Errorf("%s: got %v, want %v", unit, got[unit], want)
		}
	}
}
