package room

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// reasons are those that go with each action.
var reasons = map[Action][]Reason{
	Enter:    {ReasonInside},
	Ask:      {ReasonAskAnchor},
	TooEarly: {ReasonTooEarly},
	Apply:    {ReasonReserved},
	Compete:  {ReasonOpen, ReasonEdge},
	Refuse:   {ReasonReject},
	Wait:     {ReasonPrequeue, ReasonNoPlace, ReasonNotYet, ReasonAbsent, ReasonNodeHasNone, ReasonEventChanges},
}

// checkExplanation holds an explanation to the decision that it explains.
func checkExplanation(t interface{ Errorf(string, ...any) }, v *View, vis Visitor, now time.Time) {
	e, d := Explain(v, vis, now), v.Decide(vis, now)
	if e.Decision != d || !slices.Contains(reasons[d.Action], e.Reason) {
		t.Errorf("%+v is decided as %v, and explained by %q", vis, d, e.Reason)
	}
	if len(e.Steps) == 0 {
		t.Errorf("%+v: nothing was asked", vis)
	}
	for _, s := range e.Steps {
		if s.Question == "" || s.Because == "" || strings.Contains(s.Because, "%!") {
			t.Errorf("%+v: step %+v", vis, s)
		}
	}
	inside := !vis.AcceptedAt.IsZero() && !vis.LeaseEnd.IsZero()
	if (e.Place != nil) == (d.New || inside) {
		t.Errorf("%+v is decided as %+v, and has the place %+v", vis, d, e.Place)
	}
}

func TestExplanationsSayWhatWasDecided(t *testing.T) {
	now := time.Unix(1_767_268_800, 0)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[Reason]bool{}
	for range 20_000 {
		ago := func(all ...int) time.Time {
			return now.Add(-time.Duration(all[r.IntN(len(all))]) * 100 * time.Millisecond)
		}
		s := fuzzSettings([]uint16{1, 5, 100}[r.IntN(3)], 1000, 60, byte(r.IntN(256)), now)
		s.DisableSessionRenewal = r.IntN(2) == 0
		if r.IntN(2) == 0 {
			s.Events = []Event{{Name: "e", Start: now.Add(-time.Hour), End: now.Add(time.Minute)}}
		}
		counts := crdt.Counts{Active: []int64{0, 3, 99, 1000}[r.IntN(4)], Waiting: map[int64]int64{now.Unix() - 120: r.Int64N(50), now.Unix() - 60: 10}}
		v := Build(s, oneSite(counts, 1+r.IntN(3), 0), now)
		var vis Visitor
		if r.IntN(4) > 0 {
			vis = Visitor{Arrival: ago(-50, 10, 300, 1250, 1300, 6000), LastPoll: ago(-50, 10, 210, 600, 3300), Refresh: time.Duration(r.IntN(3)) * 10 * time.Second}
			if r.IntN(2) == 0 {
				vis.Place = v.Settings.Place(nil, [16]byte{1}, vis.Arrival)
			}
		}
		if r.IntN(5) == 0 {
			vis.AcceptedAt, vis.LeaseEnd = ago(600, 6000), ago(-1000, 10, 900, 6000)
		}
		at := now.Add(time.Duration(r.IntN(2)) * time.Minute)
		checkExplanation(t, v, vis, at)
		seen[Explain(v, vis, at).Reason] = true
	}
	for action, all := range reasons {
		for _, reason := range all {
			if !seen[reason] {
				t.Errorf("%v was never explained by %s", action, reason)
			}
		}
	}
}

func TestExplanationHasTheFigures(t *testing.T) {
	now := time.Unix(1_767_268_800, 0)
	s := Settings{TotalActiveUsers: 100, NewUsersPerMinute: 50, Policy: Even}
	v := Build(s, oneSite(crdt.Counts{Active: 100, Waiting: map[int64]int64{now.Unix() - 120: 7}}, 1, 0), now)
	vis := Visitor{Arrival: now.Add(-90 * time.Second), LastPoll: now.Add(-20 * time.Second), Refresh: 20 * time.Second}
	e := Explain(v, vis, now)
	if e.Reason != ReasonNoPlace || e.Decision.Action != Wait || e.Place == nil || e.Place.Ahead != 7 {
		t.Errorf("%+v", e)
	}
	last := e.Steps[len(e.Steps)-1]
	for _, want := range []string{"100 of 100 places", "of 50 were let in", "7 wait"} {
		if !strings.Contains(last.Because, want) {
			t.Errorf("the last step does not say %q: %+v", want, last)
		}
	}
	if e := Explain(v, Visitor{}, now); e.Reason != ReasonNoPlace || e.Place != nil {
		t.Errorf("somebody new: %+v", e)
	}
}
