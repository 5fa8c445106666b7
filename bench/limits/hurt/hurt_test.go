//go:build linux

package hurt

import (
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/bench/measurement"
	"github.com/ropeline/ropeline/bench/rig"
	"github.com/ropeline/ropeline/node"
)

// A short run of the fault that lets most pass; make measure NAME=limit-faults tries all of them.
func TestALimitHoldsOnBothSidesOfACut(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes most of a minute")
	}
	binary, err := rig.Built(t.Context(), rig.Ropeline, "faults")
	if err != nil {
		t.Fatal(err)
	}
	const period = 4 * time.Second
	for _, f := range faults(period) {
		if !strings.HasPrefix(f.name, "a site cut off") {
			continue
		}
		r, err := execute(t.Context(), f, options{binary: binary, dir: t.TempDir(), loopback: true, period: period, out: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r.name(), r.values())
		for _, why := range r.broken() {
			t.Error(why)
		}
		// Each side lets the limit pass, which is twice as much as one mesh does.
		if most := r.most("greedy"); most[meanwhile] < 3*r.limit()/2 {
			t.Errorf("the cut was not felt: %v reached the site", most)
		}
		return
	}
	t.Fatal("there is no such fault")
}

func TestWhatDoesNotHoldIsSeen(t *testing.T) {
	const period = 10 * time.Second
	at := func(n int) time.Time { return time.Unix(int64(n)*10+5, 0) } // within a period
	made := func(change func(*run)) *run {
		r := &run{
			fault: fault{name: "test", period: period, limits: 2, hurt: pause}, site: newSite(period), from: at(102), to: at(104),
			bound:   node.LimitBound{DelaySeconds: 0.5}, // 30 at the rate of the client that asks too often
			clients: []*client{{name: "greedy"}, {name: "honest"}},
		}
		r.clients[0].limited.Store(1)
		r.site.came["greedy"] = map[int64]int{100: 130, 101: 100, 102: 230, 104: 230, 105: 130}
		change(r)
		return r
	}
	for _, c := range []struct {
		what   string
		change func(*run)
		want   string // in what is broken; empty: nothing is
	}{
		{"all is as promised", func(*run) {}, ""},
		{"too many before", func(r *run) { r.site.came["greedy"][101] = 131 }, "131 reached the site in a period, and 130 may"},
		{"too many meanwhile", func(r *run) { r.site.came["greedy"][103] = 231 }, "231 reached the site in a period, and 230 may"},
		{"too many after", func(r *run) { r.site.came["greedy"][105] = 131 }, "131 reached the site in a period, and 130 may"},
		{"nobody was limited", func(r *run) { r.clients[0].limited.Store(0) }, "the limit was not felt"},
		{"who kept to it was limited", func(r *run) { r.clients[1].limited.Store(1) }, "1 requests of honest were limited"},
		{"errors", func(r *run) { r.clients[1].odd.Store(2) }, "2 requests of honest got neither the site nor 429"},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := strings.Join(made(c.change).broken(), "; ")
			if got != c.want {
				t.Errorf("broken: %q, want %q", got, c.want)
			}
		})
	}
	r := made(func(*run) {})
	for unit, want := range (measurement.Values{"limit": 100, "before": 130, "meanwhile": 230, "after": 130, "may": 130, "may-meanwhile": 230, "broken": 0}) {
		if got := r.values()[unit]; got != want {
			t.Errorf("%s: got %v, want %v", unit, got, want)
		}
	}
}
