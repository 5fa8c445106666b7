package ticket

import "time"

const (
	// rateSpan is how long a rate right cools after its use: new visitors are
	// limited in any such span.
	rateSpan = time.Minute

	// coolStep is how finely cooling is kept, in ms.
	coolStep = 100

	// loanTail is how long after it was lent a ticket may be used at most: as
	// long as the loan is valid by a clock that is behind, and then until it is
	// taken up.
	loanTail = LoanValid + TakeUp + 2*Guard

	// NewFor is how long after a room was deleted those may count among its new visitors whom it
	// had let in, by a ticket that was lent.
	NewFor = rateSpan + loanTail
)

// cooling counts rate rights that were used and may not be used again yet. Its
// memory is bounded by the span and the step, however many there are. Times are ms
// of a monotonic clock. The zero value has none.
type cooling struct {
	steps []coolingStep // by time
	total int64
}

// coolingStep is n rights that are ready at a time.
type coolingStep struct{ at, n int64 }

// add has n rights cool until after at: it is a time of which parts of a ms were left
// out, and so may be up to one before the true one.
func (c *cooling) add(n, at int64) {
	if n <= 0 {
		return
	}
	c.total += n
	at = (at/coolStep + 1) * coolStep
	i := len(c.steps)
	for i > 0 && c.steps[i-1].at >= at {
		i--
	}
	if i < len(c.steps) && c.steps[i].at == at {
		c.steps[i].n += n
		return
	}
	c.steps = append(c.steps, coolingStep{})
	copy(c.steps[i+1:], c.steps[i:])
	c.steps[i] = coolingStep{at, n}
}

// advance has the rights that are ready at now count no more.
func (c *cooling) advance(now int64) {
	i := 0
	for ; i < len(c.steps) && c.steps[i].at <= now; i++ {
		c.total -= c.steps[i].n
	}
	if i == len(c.steps) {
		c.steps = c.steps[:0]
	} else if i > 0 {
		c.steps = c.steps[:copy(c.steps, c.steps[i:])]
	}
}
