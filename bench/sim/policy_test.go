package sim

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/node/room"
)

// TestTheLimitSwitchedOffAndOn lets everybody in for a while at one site after the other. That
// is counted apart; whoever comes in afterwards does so within the limit again.
func TestTheLimitSwitchedOffAndOn(t *testing.T) {
	t.Parallel()
	cfg := small(240, 2*time.Minute)
	cfg.Room.TotalActiveUsers, cfg.Room.SessionDuration, cfg.Room.RefreshInterval = 20, 20*time.Second, time.Second
	cfg.Faults = []Fault{
		{Kind: Policy, Site: 1, From: 40 * time.Second, For: 20 * time.Second, To: room.Open},
		{Kind: Policy, Site: 2, From: 42 * time.Second, For: 20 * time.Second, To: room.Open},
	}
	r := simulate(t, cfg)
	if r.Exempt.Switched == 0 || r.PeakActive < 50 || r.OvershootPct != 0 {
		t.Errorf("%d came in while it was off, %d were inside, overshoot of %v %%", r.Exempt.Switched, r.PeakActive, r.OvershootPct)
	}
	cfg.Room.Policy = room.Escrow
	s := newSim(mustDefault(t, cfg), newShipped)
	m := s.machines[0]
	s.start(m)
	for _, c := range []struct {
		do   func()
		want bool
	}{
		{func() {}, false},
		{func() { s.switchTo(0, room.Open) }, true},
		{func() { s.switchTo(0, room.Escrow); s.now += lingers - 1 }, true},
		{func() { s.now++ }, false},
	} {
		if c.do(); s.unbound() != c.want {
			t.Errorf("unbound %v at %v, want %v", s.unbound(), s.now, c.want)
		}
	}
}
