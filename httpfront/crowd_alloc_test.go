//go:build !race

package httpfront

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

func TestLimitsOnNewVisitorsDoNotAllocate(t *testing.T) {
	f, s := judges(t, fakeRooms{}), newRoom(queues)
	for name, limits := range map[string]room.NewVisitors{
		"within": {PerAddress: room.MaxNewVisitors, All: room.MaxNewVisitors}, "beyond": {PerAddress: 1, All: 1},
	} {
		made, now := newNewVisitors(limits, nil), time.Now()
		r := newRequest()
		r.via.Client = netip.MustParseAddr("2001:db8::7")
		f.mayQueue(r, s, &s.settings, &made, now) // the first one beyond is told in the log
		f.mayQueue(r, s, &s.settings, &made, now)
		if n := testing.AllocsPerRun(1000, func() { f.mayQueue(r, s, &s.settings, &made, now) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
