package server

import (
	"reflect"
	"testing"
	"time"

	"github.com/ropeline/ropeline/httpfront"
	"github.com/ropeline/ropeline/httpfront/observe/metrics"
	"github.com/ropeline/ropeline/node"
	"github.com/ropeline/ropeline/node/limit"
)

// TestLimitsAreMeasured: every figure of the status and of the front is where it belongs, and
// a rule that the front does not follow has none.
func TestLimitsAreMeasured(t *testing.T) {
	id := limit.ID{7}
	status := node.LimitsStatus{
		MemoryBytes: 1, Keys: 2, Replaced: 3, Lost: 4, Refused: 5,
		Rules: []node.LimitStatus{
			{ID: id.String(), Name: "logins", Keys: 6, Limited: 7, Bound: node.LimitBound{DelaySeconds: 1.5, Nodes: 8, Most: 9}},
			{ID: limit.ID{8}.String(), Name: "not yet followed"},
		},
	}
	got := measuredLimits(&status, []httpfront.LimitTally{{ID: id, Name: "logins", Action: limit.Queue, Limited: 10}})
	want := metrics.Limits{
		Memory: 1, Keys: 2, Replaced: 3, Lost: 4, Refused: 5,
		Rules: []metrics.Limit{{Name: "logins", Action: "queue", Limited: 10, Keys: 6, LimitedKeys: 7, Delay: 1500 * time.Millisecond, Most: 9}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("measured\n%+v, want\n%+v", got, want)
	}
}

// TestOutcomesAreTheirs: each outcome of a request is the one of that name in the metrics.
func TestOutcomesAreTheirs(t *testing.T) {
	for o, as := range outcomes {
		if want := httpfront.Outcome(o).String(); as.String() != want {
			t.Errorf("%s is counted as %s", want, as)
		}
	}
	if next := httpfront.Outcome(len(outcomes)).String(); next != "unknown" {
		t.Errorf("%s is not counted", next)
	}
}
