package node

import (
	"sync/atomic"
	"time"
)

// What keeps a node from giving tickets although it has rights: a disk that
// fails, a clock that is off.

// health is what requests and Status see of it.
type health struct {
	store   atomic.Pointer[error] // what the disk said; nil: it is well
	clockOK atomic.Bool
}

// fit reports whether this node may give tickets, lend, and give rights away.
// Visitors who are in go on in any case.
func (c *Core) fit() bool { return c.storing.failed == nil && c.health.clockOK.Load() }

func (c *Core) publishHealth() {
	if err := c.storing.failed; err != nil {
		c.health.store.Store(&err)
	} else {
		c.health.store.Store(nil)
	}
}

// storeFailed stops this node from giving tickets, before anybody can ask for the
// next one.
func (c *Core) storeFailed(err error, now time.Time) []Message {
	c.storing.failed = err
	c.publishHealth()
	return c.stopIssuing(now)
}

// SetClock says whether this node's clock agrees with those of its peers, as well
// as anybody can tell. At first it does. A node whose clock is off gives no
// tickets: how long loans and passes hold is judged by the clock.
func (c *Core) SetClock(ok bool, now time.Time) []Message {
	if c.health.clockOK.Swap(ok) == ok || ok {
		return nil
	}
	return c.stopIssuing(now)
}

// stopIssuing has others hand out this node's tickets, as far as they can.
func (c *Core) stopIssuing(now time.Time) (out []Message) {
	return nil
}

// confirmed does what waited for the disk.
func (r *Room) confirmed(now time.Time) []Message { return nil }
