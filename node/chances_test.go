package node

import (
	"sync"
	"testing"
)

// TestIDsAreDrawnOnce has many draw at the same time.
func TestIDsAreDrawnOnce(t *testing.T) {
	const each = 1000
	var c chances
	var wg sync.WaitGroup
	drawn := make([][]VisitorID, 8)
	for i := range drawn {
		wg.Go(func() {
			for range each {
				drawn[i] = append(drawn[i], c.id())
			}
		})
	}
	wg.Wait()
	known := map[VisitorID]bool{{}: true}
	for _, ids := range drawn {
		for _, id := range ids {
			if known[id] {
				t.Fatalf("%x twice, or nobody's", id)
			}
			known[id] = true
		}
	}
}
