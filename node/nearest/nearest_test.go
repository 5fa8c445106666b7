package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	known := []string{"waitTime", "waitTimeKnown", "queueAll", "position"}
	for _, tt := range []struct{ name, want string }{
		{"waitTime", "waitTime"},
		{"waittime", "waitTime"},
		{"waitTimeKnow", "waitTimeKnown"},
		{"quueAll", "queueAll"},
		{"queueA", "queueAll"},
		{"pos", "position"},
		{"positoin", "position"},
		{"weather", ""},
		{"", ""},
	} {
		got, ok := Name(tt.name, known)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.name, got, ok, tt.want)
		}
	}
	if got, ok := Name("a", nil); ok {
		t.Errorf("of nothing, got %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"ab", "ba", 2}} {
		if got := editDistance(tt.a, tt.b); got != tt.want || got != editDistance(tt.b, tt.a) {
			t.Errorf("from %q to %q: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestLongNames have no near one, and that takes no time.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	if got, ok := Name(long, []string{"waitTime", "position"}); ok {
		t.Errorf("got %q", got)
	}
	if n := testing.AllocsPerRun(1, func() { Name(long, []string{"waitTime"}) }); n != 0 {
		t.Errorf("%v allocations: it was compared letter by letter", n)
	}
}
