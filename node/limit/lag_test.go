package limit

import "testing"

func TestLag(t *testing.T) {
	var l lag
	const ahead = 3_600_000 // the sender's clock
	for _, m := range []struct {
		boot             uint64
		sent, took, want Millis
	}{
		{1, 0, 30, 0},
		{1, 100, 20, 0},
		{1, 200, 25, 5},
		{1, 1_000, 90_020, 90_000},     // the link was held up
		{1, 1_500, 89_520, 89_500},     // and gave all out at once
		{1, 91_000, 20, 0},             // after which it is as before
		{1, 300_000, 70, 50},           //
		{1, 400_000, 70, 0},            // it has become slower
		{2, 400_000 - 2*ahead, 500, 0}, // another clock
		{2, 400_000 - 2*ahead + 100, 400, 0},
		{2, 400_000 - 2*ahead + 100, 5_400, 5_000},
	} {
		if got := l.of(m.boot, m.sent+ahead, m.sent+m.took); got != m.want {
			t.Errorf("sent at %d, and on its way for %d: %d late, want %d", m.sent, m.took, got, m.want)
		}
	}
}
