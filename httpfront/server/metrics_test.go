package server

import (
	"testing"

	"github.com/ropeline/ropeline/httpfront"
)

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
