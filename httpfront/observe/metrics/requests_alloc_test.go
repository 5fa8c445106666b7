//go:build !race

package metrics

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func TestRecordAllocatesNothing(t *testing.T) {
	var s Sample
	r := metricsOf(&s).Requests()
	r.SetRooms([]NamedRoom{{crdt.RoomID{1}, RoomName{"z", "shop"}}})
	for _, id := range []crdt.RoomID{{1}, {}} {
		if got := testing.AllocsPerRun(1000, func() { r.Record(id, queued, 3*time.Millisecond) }); got != 0 {
			t.Errorf("%v: %v allocations, want 0", id, got)
		}
	}
}
