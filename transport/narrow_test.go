package transport

import (
	"bytes"
	"testing"
	"time"
)

// TestNarrowPaths has nodes meet, gossip and call each other where packets have the least room
// that paths have to offer: 1,280 bytes with the heads of IPv6 and UDP, which is what IPv6 and
// tunnels such as WireGuard's in another one leave, and 1,200, which is what QUIC asks for.
func TestNarrowPaths(t *testing.T) {
	for _, room := range []int{1280 - 48, 1200} {
		bubble(t, func(t *testing.T) {
			w := newWire(lanDelay)
			w.room = room
			c := newCluster(t, w)
			var ns []*testNode
			for i := range 5 {
				cfg := c.config(i+1, 1, 0)
				cfg.OnCall = handler(nil)
				if i > 0 {
					cfg.Seeds = []string{ns[0].addr.String()}
				}
				ns = append(ns, c.start(cfg))
			}
			for _, n := range ns {
				n.waitAlive(4, 20*time.Second)
			}
			question := bytes.Repeat([]byte("x"), 200_000)
			for _, n := range ns[1:] {
				answer, err := ns[0].mesh.Call(t.Context(), n.id, methodEcho, question)
				if err != nil || !bytes.HasSuffix(answer, question) {
					t.Errorf("packets of %d bytes at most: an answer of %d bytes, %v, want one that ends in the question of %d", room, len(answer), err, len(question))
				}
			}
			time.Sleep(time.Minute)
			for _, n := range ns {
				if s := n.mesh.Stats(); s.GossipDropped != 0 || n.countAlive() != 4 {
					t.Errorf("packets of %d bytes at most: %d messages of gossip dropped, %d peers alive, want 0 and 4", room, s.GossipDropped, n.countAlive())
				}
			}
		})
	}
}
