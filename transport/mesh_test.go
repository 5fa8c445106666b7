package transport

import (
	"testing"
	"time"
)

func TestJoinSimnet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, newWire(5*time.Millisecond))
		ns := c.nodes(3)
		p := ns[2].peer(ns[1].id)
		t.Log(p)
	})
}

func TestLoopback(t *testing.T) {
	c := newCluster(t, nil)
	ns := c.nodes(3)
	t.Log(ns[0].mesh.Stats(), ns[0].mesh.Members())
}
