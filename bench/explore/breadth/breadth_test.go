package breadth

import (
	"slices"
	"testing"
)

// steps goes from a number to one more and to twice as many, up to 100.
func steps(bad int) Search[int, string] {
	return Search[int, string]{First: 1, Each: func(n int, yield func(string, int, string) bool) {
		for _, s := range []struct {
			event string
			to    int
		}{{"one more", n + 1}, {"twice", 2 * n}} {
			broken := ""
			if s.to == bad {
				broken = "it is bad"
			}
			if s.to <= 100 && !yield(s.event, s.to, broken) {
				return
			}
		}
	}, Rest: func(int) string { return "" }, RestEvery: 1000, Text: func(e string) string { return e }}
}

func TestEachStateOnce(t *testing.T) {
	if r := steps(0).Run(t.Context()); r.States != 100 || !r.Whole || r.Broken != "" {
		t.Errorf("got %+v, want 100 states, which are all", r)
	}
}

func TestTraceIsAShortestOne(t *testing.T) {
	r := steps(11).Run(t.Context())
	want := []string{"one more", "twice", "one more", "twice", "one more"} // 2, 4, 5, 10, 11
	if r.Broken != "it is bad" || r.Whole || !slices.Equal(r.Trace, want) {
		t.Errorf("got %+v, want %q", r, want)
	}
}

func TestBoundOnStates(t *testing.T) {
	s := steps(0)
	s.Most = 50
	if r := s.Run(t.Context()); r.States <= 50 || r.States > 52 || r.Whole {
		t.Errorf("got %+v, want 51 states and not all", r)
	}
}

// TestRestIsAskedOfSome has every tenth state be brought to rest.
func TestRestIsAskedOfSome(t *testing.T) {
	s := steps(0)
	var asked []int
	s.RestEvery = 10
	s.Rest = func(n int) string {
		if asked = append(asked, n); len(asked) == 4 {
			return "it does not come to rest"
		}
		return ""
	}
	if r := s.Run(t.Context()); r.Broken == "" || len(asked) != 4 || asked[0] != 1 || len(r.Trace) == 0 || r.Whole {
		t.Errorf("got %+v, and asked of %v", r, asked)
	}
}
