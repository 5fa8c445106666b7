package metrics

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

func BenchmarkRecord(b *testing.B) {
	var s Sample
	r := metricsOf(b, &s).Requests()
	r.SetRooms([]NamedRoom{{crdt.RoomID{1}, RoomName{"z", "shop"}}})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Record(crdt.RoomID{1}, Admitted, 700*time.Microsecond)
		}
	})
}
