package node

import (
	"crypto/rand"
	"sync"
)

// chances are ids that the system's own generator has drawn, many at once: to ask it for
// each costs several times what one takes. No id is drawn by what can be guessed from others.
// The zero value is ready.
type chances struct {
	drawn sync.Pool // of *drawnIDs
}

// drawnIDs are ids that nobody has yet, those from next on.
type drawnIDs struct {
	ids  [64]VisitorID // a KiB: what one reading costs hardly shows in each
	next int
}

// id returns one that nobody has. Any goroutine may call it.
func (c *chances) id() VisitorID {
	d, ok := c.drawn.Get().(*drawnIDs)
	if !ok {
		d = &drawnIDs{}
		d.next = len(d.ids)
	}
	if d.next == len(d.ids) {
		var raw [len(d.ids) * len(VisitorID{})]byte
		rand.Read(raw[:])
		for i := range d.ids {
			copy(d.ids[i][:], raw[i*len(VisitorID{}):])
		}
		d.next = 0
	}
	id := d.ids[d.next]
	d.ids[d.next] = VisitorID{} // whoever reads this memory later learns of nobody
	d.next++
	c.drawn.Put(d)
	return id
}
