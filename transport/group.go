package transport

import "sync"

// group owns the goroutines of a mesh. Unlike a plain WaitGroup it can be
// shut, after which it starts nothing more, so that a Wait is final while
// callers from outside still come in.
type group struct {
	wg sync.WaitGroup

	mu   sync.Mutex // guards the following
	open bool
}

// Go runs f in a goroutine and reports whether it did.
func (g *group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return false
	}
	g.wg.Go(f)
	return true
}

func (g *group) setOpen(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = open
}
