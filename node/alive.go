package node

import (
	"fmt"
	"time"
)

// stuckAfter is how long nothing may come of the loop before it is taken for stuck. Its
// longest steps take a fraction of that, and a machine that is that slow serves nobody.
const stuckAfter = 15 * time.Second

// Alive returns nil while the node's loop goes on, and before it has begun and after it
// has ended; else what is wrong. What it says is not mended by waiting: a node that is stuck
// counts nobody, and its neighbours do not hear of it.
func (n *Node) Alive() error {
	last := n.moved.Load()
	if last == 0 {
		return nil
	}
	if d := n.Now().Sub(time.Unix(0, last)); d > stuckAfter {
		return fmt.Errorf("stuck: nothing was counted for %v; restart this node", d.Round(time.Second))
	}
	return nil
}
