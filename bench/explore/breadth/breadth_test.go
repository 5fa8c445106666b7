package breadth

import (
	"errors"
	"slices"
	"testing"
)

// steps goes from a number to one more and to twice as many, up to 100.
func steps(bad int) Search[int, string] {
	return Search[int, string]{First: 1, Each: func(n int, yield func(string, int, string) bool) error {
		for _, s := range []struct {
			event string
			to    int
		}{{"one more", n + 1}, {"twice", 2 * n}} {
			broken := ""
			if s.to == bad {
				broken = "it is bad"
			}
			if s.to <= 100 && !yield(s.event, s.to, broken) {
				return nil
			}
		}
		return nil
	}}
}

func TestEachStateOnce(t *testing.T) {
	if r, err := steps(0).Run(t.Context()); err != nil || r.States != 100 || !r.Whole || r.Broken != "" {
		t.Errorf("got %+v, %v, want 100 states, which are all", r, err)
	}
}

func TestTraceIsAShortestOne(t *testing.T) {
	r, err := steps(11).Run(t.Context())
	want := []string{"one more", "twice", "one more", "twice", "one more"} // 2, 4, 5, 10, 11
	if err != nil || r.Broken != "it is bad" || r.Whole || !slices.Equal(r.Trace, want) {
		t.Errorf("got %+v, %v, want %q", r, err, want)
	}
}

func TestBoundOnStates(t *testing.T) {
	s := steps(0)
	s.Most = 50
	if r, err := s.Run(t.Context()); err != nil || r.States <= 50 || r.States > 52 || r.Whole {
		t.Errorf("got %+v, %v, want 51 states and not all", r, err)
	}
}

// TestRestIsAskedOfSome has every tenth state be brought to rest.
func TestRestIsAskedOfSome(t *testing.T) {
	s := steps(0)
	var asked []int
	s.RestEvery = 10
	s.Rest = func(n int) (string, error) {
		if asked = append(asked, n); len(asked) == 4 {
			return "it does not come to rest", nil
		}
		return "", nil
	}
	r, err := s.Run(t.Context())
	if err != nil || r.Broken == "" || len(asked) != 4 || asked[0] != 1 || len(r.Trace) == 0 {
		t.Errorf("got %+v, %v, and asked of %v", r, err, asked)
	}
	failed := errors.New("failed")
	s.Rest = func(int) (string, error) { return "", failed }
	if _, err := s.Run(t.Context()); err != failed {
		t.Errorf("got %v, want the error of rest", err)
	}
}
