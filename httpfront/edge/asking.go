package edge

import (
	"sync"
	"time"
)

// lookEvery is how often connections are looked at whose requests an origin works on. Who leaves is noticed
// within two of it.
const lookEvery = 500 * time.Millisecond

// asking is a request that an origin works on. Nobody reads the connection meanwhile, so nobody would notice that the client
// has left; the request would keep its place at the origin, and each reload of a slow page take another one.
type asking struct {
	mu     sync.Mutex // guards the following
	origin Aborter    // nil: there is no such request
	looks  int        // at it
	left   bool
}

// Aborter is a connection to an origin, or the wait for one.
type Aborter interface {
	// Abort ends what is under way on it.
	Abort()
}

// Asks says who works on the request of e from now on; nil: nobody. It is aborted when the client has left, and never after the
// next call.
func (e *Conn) Asks(origin Aborter) {
	a := &e.asking
	a.mu.Lock()
	a.origin, a.looks = origin, 0
	a.mu.Unlock()
}

// Left looks whether the client has left.
func (e *Conn) Left() bool {
	a := &e.asking
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := e.raw.(interface{ Left() bool })
	a.left = a.left || ok && c.Left()
	return a.left
}

// HasLeft reports whether it was noticed that the client has left.
func (e *Conn) HasLeft() bool {
	a := &e.asking
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// look aborts what the origin does for a client that has left. Most requests are over before a second look, and are not
// looked at in the kernel.
func (e *Conn) look() {
	a := &e.asking
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.origin == nil {
		return
	}
	if a.looks++; a.looks < 2 {
		return
	}
	if c, ok := e.raw.(interface{ Left() bool }); ok && c.Left() {
		a.left = true
		a.origin.Abort()
		a.origin = nil
	}
}

// lookAgain looks at all connections again and again while there are some, until it is told that nothing more is served.
func (l *Listener) lookAgain(done <-chan struct{}) {
	var conns []*Conn
	for {
		select {
		case <-done:
			return
		case <-l.looks.C:
		}
		conns = conns[:0]
		l.mu.Lock()
		for e := range l.conns {
			if e.settled {
				conns = append(conns, e)
			}
		}
		l.mu.Unlock()
		for _, e := range conns {
			e.look()
		}
		if len(conns) > 0 {
			l.looks.Reset(lookEvery)
		}
		clear(conns)
	}
}
