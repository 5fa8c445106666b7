package node

import (
	"sync/atomic"
	"time"
)

// What keeps a node from giving tickets although it has rights: a disk that
// fails, a clock that is off.

// health is what requests and Status see of it.
type health struct {
	store   storeHealth
	clockOK atomic.Bool
	unsure  bool // when this node opened, what it had written before was of a time to come: see ErrTime
	leaving atomic.Bool
	resumed atomic.Bool // and it was when it stopped before

	forgotten atomic.Bool // see ErrForgotten
}

// storeHealth is what the disk said last. The zero value is a disk that is well.
type storeHealth struct{ err atomic.Pointer[error] }

func (h *storeHealth) set(err error) {
	if err == nil {
		h.err.Store(nil)
	} else {
		h.err.Store(&err)
	}
}

// NoTickets returns why this node gives none: its store does not take what it has to keep, or its clock is off; nil if it does.
// Visitors who are in go on. Any goroutine may call it.
func (n *Node) NoTickets() error {
	if err := n.core.health.store.err.Load(); err != nil {
		return *err
	}
	if off := n.clockOff.Load(); off != nil {
		return *off
	}
	return nil
}

// Outvoted returns that the clock of this node is wrong, if the others agree that it is: then new visitors are better off at
// them. Where it is not known whose clock is wrong, all nodes give no tickets, and a site that sent nobody anywhere
// would be gone for those who are in as well. Any goroutine may call it.
func (n *Node) Outvoted() error {
	if off := n.clockOff.Load(); off != nil && off.outvoted {
		return *off
	}
	return nil
}

// String returns "ok", or the error.
func (h *storeHealth) String() string {
	if err := h.err.Load(); err != nil {
		return (*err).Error()
	}
	return "ok"
}

// fit reports whether this node may give tickets, lend, and give rights away.
// Visitors who are in go on in any case.
func (c *Core) fit() bool { return c.storing.failed == nil && c.health.clockOK.Load() }

// storeFailed stops this node from giving tickets, before anybody can ask for the
// next one.
func (c *Core) storeFailed(err error, now time.Time) []Message {
	c.storing.failed = err
	c.health.store.set(err)
	return c.stopIssuing(now)
}

// SetClock says whether this node's clock agrees with those of its peers, as well
// as anybody can tell, and by how much it is ahead of them; it is called again and again while there are some. At first
// it agrees. A node whose clock is off gives no tickets: how long loans and passes hold is judged by the clock. It takes no
// change of an operator, which nobody else would believe, and one that has just started does not open. What it
// has written by then, and what it finds on its disk of a time to come, is put back.
func (c *Core) SetClock(ok bool, ahead time.Duration, now time.Time) (out []Message) {
	was := c.health.clockOK.Swap(ok)
	if !ok && was {
		out = c.stopIssuing(now)
	}
	back := false
	if ok {
		back = c.replica.Rewind(now)
	} else if ahead > 0 {
		back = c.replica.RewindMap(now, now.Add(-ahead))
	}
	if back {
		c.wakeAll()
	}
	return out
}

// stopIssuing has another node be the counter, and wants back what is lent to others.
func (c *Core) stopIssuing(now time.Time) (out []Message) {
	c.wakeAll()
	for _, r := range c.order {
		out = append(out, r.recallAll(now)...)
		if k := r.counters.Load(); k != nil && k.loop.supply != nil {
			r.look(now) // another is the counter from here on
			out = append(out, k.serveByRights(now)...)
			out = append(out, k.sendLoans(now)...)
		}
	}
	return append(out, c.sendClaims(true)...)
}

// mayLead reports whether this node may be the counter of rooms whose limit is
// rights.
func (c *Core) mayLead() bool { return c.fit() && !c.leave.on }

// confirmed does what waited for the disk.
func (r *Room) confirmed(now time.Time) []Message {
	out := append(r.loansDue(now), r.sendGifts(now)...)
	r.bookHeld(now)
	r.announceHeirs(now)
	if k := r.counters.Load(); k != nil && k.loop.supply != nil {
		out = append(out, k.serveByRights(now)...)
	}
	return out
}
