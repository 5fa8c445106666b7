//go:build !race

package metrics

import (
	"testing"
	"time"
)

func TestRecordAllocatesNothing(t *testing.T) {
	var s Sample
	r := metricsOf(t, &s).Requests()
	names := []RoomName{{"z", "shop"}, {"", "nobody"}}
	r.SetRooms(names[:1])
	for _, n := range names {
		if got := testing.AllocsPerRun(1000, func() { r.Record(n, Queued, 3*time.Millisecond) }); got != 0 {
			t.Errorf("%v: %v allocations, want 0", n, got)
		}
	}
}
