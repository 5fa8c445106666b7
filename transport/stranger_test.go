package transport

import (
	"errors"
	"testing"
)

// TestWhatIsToldOfSeeds is little: each reason once, and none that passes by itself.
func TestWhatIsToldOfSeeds(t *testing.T) {
	down, strange := errors.New("join a: timeout"), errors.New("join a: another secret")
	var told seedsTold
	for _, step := range []struct {
		alone bool
		errs  []error
		times int
		want  []string
	}{
		{true, []error{down}, 1, nil}, // the others start as well
		{true, nil, 1, nil},
		{true, []error{down}, 100, []string{"join a: timeout"}},
		{true, []error{strange, down}, 100, []string{"join a: another secret; join a: timeout"}},
		{false, []error{down}, 100, nil}, // one of two seeds is down: the mesh is there
		{true, []error{down}, 2, []string{"join a: timeout"}},
	} {
		var got []string
		for range step.times {
			if why, say := told.after(step.alone, step.errs); say {
				got = append(got, why)
			}
		}
		if len(got) != len(step.want) || len(got) > 0 && got[0] != step.want[0] {
			t.Errorf("after %d times %v, alone %v: said %q, want %q", step.times, step.errs, step.alone, got, step.want)
		}
	}
}
