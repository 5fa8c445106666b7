//go:build !race

package httpfront

import (
	"testing"
	"time"
)

func TestBytesThatFlowCostNoAllocation(t *testing.T) {
	o := newOnTheSite(t)
	f := judges(t, fakeRooms{room: o}, o.use)
	var a activity
	a.begin(f, &admitted{req: newRequest(), room: o, pass: extended(carried{}.Pass, o.clock()).Pass}, o.clock())
	quiet := time.Now().Add(time.Hour)
	if n := testing.AllocsPerRun(1000, func() {
		a.Moved()
		quiet = a.Wake(quiet)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
