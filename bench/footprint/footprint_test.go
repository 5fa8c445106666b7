package footprint

import (
	"testing"
)

// What a node takes of memory must not grow unnoticed. Figures are bytes by the runtime's
// own count after a collection. They depend neither on the machine nor on time; what tables
// have to spare as they grow makes them differ by up to a fifth between one number of
// visitors and another, and each bound is that much above what was measured.

func TestAnIdleRoomIsSmall(t *testing.T) {
	within(t, "an idle room", perIdleRoom(10, 110), 6_450)
}

func TestAnActiveVisitorIsSmall(t *testing.T) {
	s := perActive(40_000, 80_000) // with fewer, those who came lately are still being added to a list that is bounded
	within(t, "an active visitor at the anchor", s.anchor, 54)
	within(t, "an active visitor at another node of the site", s.mate, 1)
	within(t, "an active visitor at a node of another site", s.far, 1)
}

func TestAWaitingVisitorIsSmall(t *testing.T) {
	waiting, waited := perWaiting(20_000, 60_000)
	within(t, "a visitor who waits", waiting, 63)
	within(t, "a visitor who was let in after waiting", waited, 240)
}

func within(t *testing.T, what string, got, most float64) {
	t.Helper()
	t.Logf("%s: %.1f bytes", what, got)
	if got > most {
		t.Errorf("%s takes %.1f bytes, want at most %.0f", what, got, most)
	}
}
