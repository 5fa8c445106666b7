package plot

import (
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		high float64
		want string
	}{
		{30, "0 5 10 15 20 25 30"},
		{12_345, "0 2000 4000 6000 8000 10\u00a0000 12\u00a0000"},
		{0.7, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7"},
		{1, "0 0.2 0.4 0.6 0.8 1"},
		{0, "0"},
	} {
		var labels []string
		for v := range ticks(tc.high, 8) {
			labels = append(labels, grouped(v))
		}
		if got := strings.Join(labels, " "); got != tc.want {
			t.Errorf("up to %v: got %q, want %q", tc.high, got, tc.want)
		}
	}
}
