package transport

import (
	"fmt"
	"testing"
	"time"
)

// TestBytesAtRest measures what an idle mesh costs on the wire and holds it to
// a bound, so that no interval is shortened by accident.
func TestBytesAtRest(t *testing.T) {
	sizes := []int{3, 6, 12}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, n := range sizes {
		t.Run(fmt.Sprintf("%d nodes", n), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ns := newCluster(t, newWire(lanDelay)).nodes(n)
				time.Sleep(30 * time.Second)
				const span = time.Minute // two full exchanges with somebody
				before := ns[0].mesh.Stats()
				time.Sleep(span)
				after := ns[0].mesh.Stats()
				perSecond := float64(after.BytesOut-before.BytesOut) / span.Seconds()
				t.Logf("%d nodes: %.0f bytes/s out per node, %.0f per peer", n, perSecond, perSecond/float64(n-1))
				if limit := 200 + 110*float64(n-1); perSecond > limit {
					t.Errorf("got %.0f bytes/s out at rest, want below %.0f", perSecond, limit)
				}
			})
		})
	}
}
