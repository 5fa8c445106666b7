package limit

import (
	"testing"
	"time"
)

func TestBound(t *testing.T) {
	r := valid()
	r.RequestsPerPeriod = 600
	if b := NewBound(&r, 1, 1, 0, 0); b.Excess(1e6) != 0 {
		t.Errorf("one node alone lets more pass: %+v", b)
	}
	near := NewBound(&r, 2, 1, time.Millisecond, 0)
	if got := near.Excess(1e9); got != 600 {
		t.Errorf("got %d, want what the other node may let pass", got)
	}
	if got, want := near.Excess(10), 4; got != want {
		t.Errorf("got %d of 10 a second in %v, want %d", got, near.Delay, want)
	}
	if far := NewBound(&r, 4, 2, time.Millisecond, 100*time.Millisecond); far.Delay <= near.Delay {
		t.Errorf("far nodes hear as soon as near ones: %v, %v", far.Delay, near.Delay)
	}
}
