package input

import (
	"math"
	"strings"
	"testing"
	"time"
)

// cameBy counts the visitors of the spans that end by t.
func cameBy(traffic *Traffic, t time.Duration) int {
	n := 0
	for _, s := range traffic.spans {
		if s.from+s.length <= t {
			n += s.visitors
		}
	}
	return n
}

func TestParseShape(t *testing.T) {
	for _, tc := range []struct {
		text     string
		visitors int
		length   time.Duration
		by       time.Duration // until then
		came     int           // so many have come
	}{
		{"uniform:10000/30m", 10_000, 30 * time.Minute, 10 * time.Second, 56},
		{"uniform:7/1s", 7, time.Second, time.Second, 7},
		{"flash:10000/30m", 10_000, 30 * time.Minute, 5 * time.Minute, 333},
		{"flash:10000/30m", 10_000, 30 * time.Minute, 6 * time.Minute, 8400},
		{"flash:1000/1m,at=0s,in=1ms,part=1", 1000, time.Minute, time.Millisecond, 1000},
		{"flash:1000/10m,part=0.5,in=1s,at=7m3s", 1000, 10 * time.Minute, 7*time.Minute + 4*time.Second, 853},
	} {
		traffic, err := ParseShape(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		checkTraffic(t, traffic)
		if traffic.Len() != tc.visitors || traffic.Span() != tc.length || cameBy(traffic, tc.by) != tc.came {
			t.Errorf("%s: got %d in %v, of them %d by %v; want %d in %v, %d", tc.text, traffic.Len(), traffic.Span(),
				cameBy(traffic, tc.by), tc.by, tc.visitors, tc.length, tc.came)
		}
	}
}

func TestParseShapeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "not a number of visitors",
		"wave:5/30m":               `no "wave"; allowed are uniform and flash`,
		"uniform:":                 "not a number of visitors",
		"uniform:10000":            `"" is not a time`,
		"uniform:0/30m":            "from 1 to 100000000",
		"uniform:1e3/30m":          "a whole number",
		"uniform:5/30":             `"30" is not a time from 1s to 720h0m0s`,
		"uniform:5/999999h":        "not a time",
		"uniform:5/30m,at=1m":      "uniform takes no keys",
		"flash:5/30m,in=31m":       "in: ",
		"flash:5/30m,up=1m":        "flash takes at, in and part",
		"flash:5/30m,part=2":       "above 0 and up to 1",
		"flash:5/30m,part=NaN":     "above 0 and up to 1",
		"flash:5/30m,at":           `at: "" is not a time`,
		"flash:5/30m,at=30m,in=1m": "end after the 30m0s",
		"flash:5/30m,":             `"" is not a key`,
	} {
		if _, err := ParseShape(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestShapesNeverGoBack(t *testing.T) {
	for _, s := range []shape{
		{time: 7 * time.Minute, in: 7 * time.Minute},
		{time: 7 * time.Minute, at: time.Minute, in: 3 * time.Second, part: 0.7},
	} {
		last := 0.0
		for at := time.Duration(0); at <= s.time; at += 77 * time.Millisecond {
			now := s.come(at)
			if now < last {
				t.Fatalf("%+v: %v after %v at %v", s, now, last, at)
			}
			last = now
		}
		if end := s.come(s.time); math.Abs(end-1) > 1e-12 {
			t.Errorf("%+v: %v have come in the end, want all", s, end)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, seed := range []string{"uniform:10000/30m", "flash:50000/30m,at=5m,in=1s,part=0.9", "flash:7/3m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		traffic, err := ParseShape(text)
		if err != nil {
			return
		}
		if n := traffic.Len(); n < 1 || n > MaxVisitors {
			t.Fatalf("%d visitors", n)
		}
		if traffic.Len() < 1e6 {
			checkTraffic(t, traffic)
		}
	})
}
