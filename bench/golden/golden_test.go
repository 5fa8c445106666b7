package golden

import "testing"

func TestDifference(t *testing.T) {
	for _, c := range []struct{ was, found, want string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\n", "a\nc\n", `line 2 is now "c", and was "b"`},
		{"a\n", "a\nb\n", `line 2 is now "b", and was ""`},
		{"a", "a\n", `line 2 is now "", and there was none`},
		{"a\nb\nc", "a\nb", "there are now 2 lines, and were 3"},
	} {
		if got := difference(c.was, c.found); got != c.want {
			t.Errorf("from %q to %q: %s, want %s", c.was, c.found, got, c.want)
		}
	}
}
