package edge

import (
	"slices"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const rate, span = 240, 60 * time.Second
	type read struct {
		n    int
		took time.Duration
	}
	repeat := func(n int, r read) []read { return slices.Repeat([]read{r}, n) }
	for name, c := range map[string]struct {
		reads []read
		want  bool
	}{
		"a byte now and then":          {repeat(3, read{1, 29 * time.Second}), false},
		"a byte each second":           {repeat(61, read{1, time.Second}), false},
		"before a span is over":        {repeat(2, read{1, 29 * time.Second}), true},
		"just quick enough":            {repeat(600, read{240, time.Second}), true},
		"a little too slow":            {repeat(60, read{239, time.Second}), false},
		"a long pause between":         {append(repeat(1, read{16 << 10, time.Millisecond}), read{1, 30 * time.Second}, read{1, 29 * time.Second}, read{1, time.Second}), true},
		"slow after a quick beginning": {append(repeat(1000, read{16 << 10, time.Millisecond}), repeat(150, read{1, time.Second})...), false},
		"never waited for":             {repeat(1000, read{1, time.Microsecond}), true},
	} {
		var limited, free pace
		ok, unlimited := true, true
		for _, r := range c.reads {
			ok = ok && limited.keeps(r.n, r.took, rate, span)
			unlimited = unlimited && free.keeps(r.n, r.took, -1, span)
		}
		if ok != c.want || !unlimited {
			t.Errorf("%s: kept %v, want %v; kept where there is no limit: %v", name, ok, c.want, unlimited)
		}
	}
}
