package drawing

import (
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		want      string
	}{
		{0, 30, "0 5 10 15 20 25 30"},
		{0, 12_345, "0 2000 4000 6000 8000 10\u00a0000 12\u00a0000"},
		{0, 0.7, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7"},
		{-2, 2, "-2 -1.5 -1 -0.5 0 0.5 1 1.5 2"},
		{0, 1, "0 0.2 0.4 0.6 0.8 1"},
	} {
		var labels []string
		for _, tick := range (EvenTicks{Most: 8}).Ticks(tc.low, tc.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != tc.want {
			t.Errorf("%v to %v: got %q, want %q", tc.low, tc.high, got, tc.want)
		}
	}
}
