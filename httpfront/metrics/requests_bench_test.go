package metrics

import (
	"testing"
	"time"
)

func BenchmarkRecord(b *testing.B) {
	var s Sample
	r := metricsOf(b, &s).Requests()
	r.SetRooms([]RoomName{{"z", "shop"}})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Record(RoomName{"z", "shop"}, Admitted, 700*time.Microsecond)
		}
	})
}
