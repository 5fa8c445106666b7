package record

import "testing"

func TestNowGoesUp(t *testing.T) {
	if a, b := Now(), Now(); a <= 0 || b < a {
		t.Errorf("got %d, then %d", a, b)
	}
}
