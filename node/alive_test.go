package node

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestANodeThatIsStuckSaysSo has one step of the loop take for ever, as it seems.
func TestANodeThatIsStuckSaysSo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		time.Sleep(time.Minute)
		if err := n.Alive(); err != nil {
			t.Errorf("a node that goes on: %v", err)
		}
		told := make(chan error, 1)
		go func() {
			told <- n.tell(t.Context(), func(*Core, time.Time) error { time.Sleep(20 * time.Second); return nil })
		}()
		time.Sleep(stuckAfter - time.Second)
		if err := n.Alive(); err != nil {
			t.Errorf("a node that is slow: %v", err)
		}
		time.Sleep(4 * time.Second)
		if err := n.Alive(); err == nil || !strings.Contains(err.Error(), "18s") {
			t.Errorf("a node that is stuck: %v, want that nothing was counted for 18s", err)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := n.Alive(); err != nil {
			t.Errorf("a node that goes on again: %v", err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := n.Alive(); err != nil {
			t.Errorf("a node that was stopped: %v", err)
		}
	})
}
