package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ropeline/ropeline/node/history"
)

// TestNodeRemembersOverAStart: what a node has seen and done is there after a start, with
// the minute that was open when it stopped.
func TestNodeRemembersOverAStart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n, stop := startNode(t, dir, 0, nil)
		time.Sleep(time.Minute)
		if v := n.Route("shop", "/").Decide(Pass{}, false, n.Now()); !v.Admit {
			t.Fatal("not admitted to an empty room")
		}
		begin := time.Now()
		time.Sleep(3 * time.Minute)
		if n.Status().HistoryBytes == 0 {
			t.Error("the status says that nothing is remembered")
		}
		n.Route("shop", "/").Decide(Pass{}, false, n.Now())
		time.Sleep(time.Second) // that minute is open
		if err := stop(); err != nil {
			t.Fatal(err)
		}

		n, stop = startNode(t, dir, 0, nil)
		time.Sleep(time.Second)
		s, err := n.History(t.Context(), history.Question{Room: roomID, From: begin.Add(-time.Minute), To: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		points, err := s.Series.Steps(time.Hour)
		if err != nil || len(points) != 1 {
			t.Fatalf("%d steps, %v", len(points), err)
		}
		if p := points[0]; p.Minutes < 4 || p.Counts.Admitted != 2 || p.ActiveMax != 1 || p.Counts.Ended != 1 {
			t.Errorf("remembered is %+v", p)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
