package room

import (
	"testing"
	"time"

	"github.com/ropeline/ropeline/crdt"
)

// alone lets one site of three, of one node each, let in whoever it may, one by one, while it
// hears nothing of what the others do. It returns how many it lets in. late is whether those
// who were let in are still counted as waiting.
func alone(t *testing.T, policy Policy, own string, late bool) (taken int) {
	t.Helper()
	now := clock(t, "12:02:18")
	tick, bucket := crdt.TickOf(now), now.Add(-90*time.Second).Truncate(time.Minute).Unix()
	s := Settings{Policy: policy, TotalActiveUsers: 29, NewUsersPerMinute: 290}.WithDefaults()
	site := func(name string, waiting, active, admitted int64) Site {
		return Site{Name: name, Own: name == own, Nodes: 1, Closed: tick - 1, Counts: crdt.Counts{
			Active: active, Waiting: map[int64]int64{bucket: waiting}, Admitted: map[int64]int64{tick - 4: admitted},
		}}
	}
	for {
		// The third site let in far more than its part lately; most of those have left.
		in := Input{Nodes: nodeIDs(1), Self: nodeID(0), Sites: []Site{site("a", 31, 0, 0), site("b", 19, 0, 0), site("c", 4, 10, 28)}}
		for i := range in.Sites {
			if c := &in.Sites[i].Counts; in.Sites[i].Own {
				c.Active += int64(taken)
				c.Admitted[tick] += int64(taken)
				if in.Leaving = taken; !late {
					c.Waiting[bucket] -= int64(taken)
					in.Leaving = 0
				}
				in.Mine.Admitted = c.Admitted
			}
		}
		v := Build(s, in, now)
		if v.AllowNew+v.AllowWaiting+v.AllowAnywhere <= 0 {
			return taken
		}
		if taken++; taken > 1000 {
			t.Fatal("there is no end")
		}
	}
}

// Sites that do not hear of each other for a moment have no more together than there is:
// what a site uses does not move its own goal, nor do those who are on their way in.
func TestSitesAloneTakeNoMoreThanThereIs(t *testing.T) {
	const free = 29 - 10
	for _, policy := range []Policy{Even, Counter} {
		for _, late := range []bool{false, true} {
			a, b, c := alone(t, policy, "a", late), alone(t, policy, "b", late), alone(t, policy, "c", late)
			if a+b+c > free || a == 0 || b == 0 {
				t.Errorf("%s, still counted as waiting: %v: %d + %d + %d were let in, and %d places were free", policy, late, a, b, c, free)
			}
		}
	}
}
