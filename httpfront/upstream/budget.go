package upstream

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Budget bounds the connections of several Groups together: those in use, those that are kept, those of upgrades and
// those that are unused. Where there are as many already, the one that has been unused for longest makes room for a new
// one, whichever Group it is of. Checks and probes are not among them: each origin has one of these at a time.
type Budget struct {
	places chan struct{} // one element for each connection

	mu    sync.Mutex // guards the following
	pools []*pool    // of all groups
}

// NewBudget returns a Budget of so many connections.
func NewBudget(conns int) *Budget { return &Budget{places: make(chan struct{}, conns)} }

// join has the connections of p be among those of b. The nil Budget has no bound.
func (b *Budget) join(p *pool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = append(b.pools, p)
}

// enter takes a place for a connection that p opens. It waits for one only where none is unused.
func (b *Budget) enter(by Client, p *pool) error {
	if b == nil {
		return nil
	}
	for {
		select {
		case b.places <- struct{}{}:
			return nil
		default:
		}
		if !b.closeOldest() {
			return p.wait(by, b.places)
		}
	}
}

// leave gives a place back.
func (b *Budget) leave() {
	if b != nil {
		<-b.places
	}
}

// closeOldest closes the connection that has been unused for longest, and reports whether there was one.
func (b *Budget) closeOldest() bool {
	b.mu.Lock()
	pools := b.pools
	b.mu.Unlock()
	var has *pool
	var oldest *Conn
	var since time.Time
	for _, p := range pools {
		if c, t := p.oldestIdle(); c != nil && (oldest == nil || t.Before(since)) {
			has, oldest, since = p, c, t
		}
	}
	if oldest == nil {
		return false
	}
	if has.removeIdle(oldest) {
		has.close(oldest)
	}
	return true // perhaps it is in use again: then there may be others
}

// isShortage reports whether a connection could not be opened for want of descriptors, which is not to be blamed on an
// origin.
func isShortage(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// notConnected returns the error about a connection to p's origin that could not be opened.
func (p *pool) notConnected(err error) error {
	if isShortage(err) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return &DialError{p.origin, "connect", err}
}
