package node

import (
	"slices"
	"time"
)

// A node that nobody asks would wake twenty times a second for nothing, and that is most of what it costs. So
// its loop rests while all rooms sleep and nothing is on its way: it comes round a few times a second, for what is
// due with time alone. The first note that a request leaves, and a message after which there is something to do,
// ends that: the next tick comes as soon as ever.

// restInterval is the time between two ticks of a loop that rests, and where views are to be built twice a second half
// of it. It is a fraction of viewKept, so that a loop that rests and is late does not count as one that stood still, and
// of the time after which a peer tells again what was not acknowledged.
const restInterval = 400 * time.Millisecond

// Rests reports whether nothing has to be done for restInterval, as of the Tick just before. If a request changes that,
// Wake receives. It is for the goroutine that calls Tick.
func (c *Core) Rests() bool {
	c.stripes.rests.Store(true) // before it is looked whether a request has left something: whoever comes from now on sees it
	// Among more rooms some would wait for their turn, and views that are built twice a second get too old.
	few := len(c.order) <= turnsAtLeast
	is := c.idle() && (few || c.allStill())
	if !is {
		c.stripes.rests.Store(false)
	}
	return is
}

func (c *Core) allStill() bool {
	return !slices.ContainsFunc(c.order, func(r *Room) bool { return !r.still })
}

// idle reports whether there is nothing to do but what is due with time alone.
func (c *Core) idle() bool {
	n, v := &c.naps, &c.visits
	return c.open.Load() && c.fit() && !c.leave.on &&
		n.next != 0 && len(n.woken) == 0 &&
		!c.facts.news && c.facts.at == c.replica.MapChanges() &&
		len(v.held)+len(v.pending)+len(v.flying)+len(c.redemptions)+len(c.downs.next) == 0 &&
		c.limiter.exchange == nil && // else others are told of counts with every tick
		c.stripes.dirty.Load() == 0 && c.pendings.count.Load() == 0
}

// pacer ticks for the loop.
type pacer struct {
	*time.Ticker
	every time.Duration
}

func newPacer() *pacer { return &pacer{time.NewTicker(tickInterval), tickInterval} }

func (p *pacer) set(every time.Duration) {
	if every != p.every {
		p.every = every
		p.Reset(every)
	}
}

// woken has the next tick come soon if there is something to do.
func (p *pacer) woken(c *Core) {
	if p.every > tickInterval && !c.idle() {
		p.set(tickInterval)
	}
}

// ticked says when the next tick comes, after one; may says that the loop may rest.
func (p *pacer) ticked(c *Core, may bool) {
	switch {
	case !may || !c.Rests():
		p.set(tickInterval)
	case c.allStill():
		p.set(restInterval)
	default:
		p.set(restInterval / 2)
	}
}
