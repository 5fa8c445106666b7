package node

import (
	"testing"
	"time"
)

func TestSiteLeavingCountsOnceAcrossTicks(t *testing.T) {
	var l siteLeaving
	ticks := map[int64]int64{97: 5, 99: 2, 100: 3}
	if n := l.admitted(ticks, 100); n != 0 {
		t.Errorf("%d were let in before the first look", n)
	}
	ticks[100] += 2
	if n := l.admitted(ticks, 100); n != 2 {
		t.Errorf("%d let in, want 2", n)
	}
	ticks[101] = 1
	ticks[100]++ // news of the tick before comes late
	delete(ticks, 97)
	if n := l.admitted(ticks, 101); n != 4 {
		t.Errorf("%d let in, want 4", n)
	}
	if n := l.admitted(ticks, 110); n != 4 {
		t.Errorf("%d let in, want 4", n)
	}
	now := time.Unix(1000, 0)
	if n := l.note(4, true, now); n != 4 {
		t.Errorf("%d are on their way in, want 4", n)
	}
	if n := l.note(4, true, now.Add(leavingFor)); n != 0 {
		t.Errorf("%d are still on their way in, want 0", n)
	}
}
