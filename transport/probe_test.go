package transport

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestProbe asks a node whose clock is ahead for the time, as somebody who has the secret of the mesh, and as
// somebody who has another. Neither joins.
func TestProbe(t *testing.T) {
	c := newCluster(t, nil)
	cfg := c.config(1, 1, 0)
	cfg.Clock = func() time.Time { return time.Now().Add(time.Hour) }
	n := c.start(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	probe := func(s Secret) (time.Duration, error) {
		id, err := IdentityFromSecret(s, testKey(9), "doctor", "site-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return Probe(ctx, id, n.addr.String())
	}
	for range 3 {
		if ahead, err := probe(c.secret); err != nil || (ahead-time.Hour).Abs() > 10*time.Second {
			t.Errorf("a clock that is an hour ahead is found to be by %v, %v", ahead, err)
		}
	}
	if ahead, err := probe(NewSecret()); !errors.Is(err, ErrStranger) || ahead != 0 {
		t.Errorf("with another secret: %v, %v", ahead, err)
	}
	if all := n.mesh.Members(); len(all) != 0 {
		t.Errorf("who only asks is a member: %+v", all)
	}
	if bad := n.mesh.count.malformed.Load(); bad != 0 {
		t.Errorf("%d questions for the time count as nonsense", bad)
	}
}
