package load

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPeakAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) span {
			from := rapid.Int64Range(0, 20).Draw(t, "from")
			return span{from: duration(from), to: duration(from + rapid.Int64Range(1, 9).Draw(t, "length"))}
		}), 0, 30).Draw(t, "spans")
		want := 0
		for _, at := range spans { // the most is reached where some span begins
			n := 0
			for _, s := range spans {
				if s.from <= at.from && at.from < s.to {
					n++
				}
			}
			want = max(want, n)
		}
		if got := peak(spans); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}
