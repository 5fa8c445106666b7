package sim

import (
	"context"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestNobodyLosesAPlaceToAClock has visitors roam between six nodes, one of which starts with a clock that is off and, as its log asks
// for, once more when that is right again.
func TestNobodyLosesAPlaceToAClock(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Second, -5 * time.Second, time.Minute, -time.Minute} {
		r, err := Run(context.Background(), Config{
			Seed: 1, Sites: 3, Nodes: 2, Roam: 0.3, Stay: 30 * time.Second,
			Room:     room.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 1000, SessionDuration: time.Minute},
			Arrivals: Counts{Every: time.Minute, N: []int{500, 1, 1, 1}}, Think: 8 * time.Second,
			Faults: []Fault{
				{Kind: Skew, Site: 1, Node: 1, From: 20 * time.Second, For: 2 * time.Minute, By: by},
				{Kind: Crash, Site: 1, Node: 1, From: 30 * time.Second, For: time.Second},
				{Kind: Crash, Site: 1, Node: 1, From: 3 * time.Minute, For: time.Second},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if f := &r.Figures; f.PlacesLost+f.SessionsLost > 0 || len(r.Violations) > 0 || f.Visitors == 0 {
			t.Errorf("%v: %d places and %d sessions of %d visitors are lost; violations %v", by, f.PlacesLost, f.SessionsLost, f.Visitors, r.Violations)
		}
	}
}
