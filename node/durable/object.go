package durable

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// object is a live object. Whoever runs one of its calls holds its turn; only the
// holder changes entries, and it does so under mu, since commits end at any time.
//
//	seq        the batch that was sealed last; the open one will be seq+1
//	gate       the last sealed batch that the outside waits for; gate <= seq
//	confirmed  the last batch that is on disk; confirmed <= seq
type object struct {
	name string
	host *Objects
	used atomic.Bool // called since the last sweep

	mu     sync.Mutex // guards the following
	box    []*Call    // have not begun, oldest first
	back   []chan struct{}
	turn   bool // some goroutine holds the turn
	away   int  // calls that wait outside
	queued bool // the next commit will take what is sealed

	epoch     uint64 // raised by each restart
	seq       uint64
	gate      uint64
	confirmed uint64
	gated     bool   // the open batch has a write that the outside waits for
	top       uint64 // the last batch in flying

	entries  entries
	sealed   map[string][]byte // for the next commit
	flying   map[string][]byte // in the commit under way
	open     int               // bytes that the open batch writes,
	closed   int               // sealed has,
	inFlight int               // and flying
	outbox   []func()          // messages of the open batch
	held     []held            // what waits for a commit, in order of need
}

// held is a reply, or a message, that may leave once batch need is confirmed. pass
// is called once, under the object's lock, and does not block.
type held struct {
	need uint64
	pass func(error)
}

func newObject(host *Objects, name string) *object {
	obj := &object{name: name, host: host}
	obj.used.Store(true)
	return obj
}

// enter puts a call into the mailbox. Objects.mu is held.
func (obj *object) enter(c *Call) error {
	c.obj = obj
	obj.used.Store(true)
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if len(obj.box) >= obj.host.cfg.Mailbox {
		return fmt.Errorf("%w: %d calls wait already", ErrBusy, len(obj.box))
	}
	obj.box = append(obj.box, c)
	if !obj.turn {
		obj.turn = true
		obj.host.wg.Go(obj.work)
	}
	return nil
}

// work runs calls until there are none, or until one that was away is back and
// takes the turn over.
func (obj *object) work() {
	for {
		obj.mu.Lock()
		if obj.handBackLocked() {
			obj.mu.Unlock()
			return
		}
		if len(obj.box) == 0 {
			obj.turn, obj.box = false, nil
			obj.mu.Unlock()
			return
		}
		c := obj.box[0]
		obj.box[0] = nil
		obj.box = obj.box[1:]
		c.epoch = obj.epoch
		obj.mu.Unlock()
		if c.ctx.Err() != nil {
			continue // nobody waits for it
		}
		obj.run(c)
	}
}

// handBackLocked gives the turn to the call that came back first, if there is one.
func (obj *object) handBackLocked() bool {
	if len(obj.back) == 0 {
		return false
	}
	close(obj.back[0])
	obj.back = obj.back[1:]
	return true
}

// leaveLocked gives the turn away for as long as a call waits outside.
func (obj *object) leaveLocked() {
	obj.away++
	switch {
	case obj.handBackLocked():
	case len(obj.box) > 0:
		obj.host.wg.Go(obj.work)
	default:
		obj.turn = false
	}
}

// comeBack takes the turn again, before calls that have not begun.
func (obj *object) comeBack() {
	obj.mu.Lock()
	obj.away--
	if !obj.turn {
		obj.turn = true
		obj.mu.Unlock()
		return
	}
	mine := make(chan struct{})
	obj.back = append(obj.back, mine)
	obj.mu.Unlock()
	<-mine
}

// run runs one call and has its reply wait for the gate.
func (obj *object) run(c *Call) {
	err := c.begin()
	lost := err != nil
	if !lost {
		err, lost = c.guarded()
	}
	obj.mu.Lock()
	defer obj.mu.Unlock()
	switch {
	case c.epoch != obj.epoch:
		c.loseLocked(ErrRestarted)
	case lost:
		obj.panickedLocked()
		c.loseLocked(err)
	default:
		obj.sealLocked()
		obj.holdLocked(func(failed error) {
			if failed != nil {
				c.loseLocked(failed)
				return
			}
			c.reply <- err
		})
	}
}

// guarded runs the call's function; lost says that it panicked.
func (c *Call) guarded() (err error, lost bool) {
	defer func() {
		if p := recover(); p != nil {
			c.obj.host.log.Error("a call panicked; its object starts again", "object", c.obj.name, "panic", p, "stack", string(debug.Stack()))
			err, lost = fmt.Errorf("%w: %v", ErrPanic, p), true
		}
	}()
	return c.run(c), false
}

// loseLocked answers a call with an error of the runtime instead of its result.
func (c *Call) loseLocked(err error) {
	c.lost = true
	c.reply <- err
}

// panickedLocked drops what the call has written and not sealed, and all that is
// confirmed from memory. What earlier calls have sealed stays: it is theirs.
func (obj *object) panickedLocked() {
	obj.rollBackLocked(0)
	obj.gated, obj.outbox = false, nil
	obj.epoch++
	obj.entries.forget(obj.confirmed)
}

// holdLocked has pass wait until all is confirmed that the outside waits for.
func (obj *object) holdLocked(pass func(error)) {
	if obj.gate <= obj.confirmed {
		pass(nil)
		return
	}
	obj.held = append(obj.held, held{obj.gate, pass})
}

// sealLocked ends the open batch: from here on it is written as a whole, and its
// messages wait for that.
func (obj *object) sealLocked() {
	if len(obj.entries.log) > 0 {
		obj.seq++
		if obj.gated {
			obj.gate, obj.gated = obj.seq, false
		}
		if obj.sealed == nil {
			obj.sealed = make(map[string][]byte)
		}
		obj.entries.seal(obj.sealed)
		obj.closed, obj.open = obj.closed+obj.open, 0
		if !obj.queued {
			obj.queued = true
			obj.host.enqueue(obj)
		}
	}
	for _, message := range obj.outbox {
		obj.holdLocked(func(err error) {
			if err == nil {
				obj.deliver(message)
			}
		})
	}
	obj.outbox = nil
}

// rollBackLocked undoes the open batch down to a place in its log.
func (obj *object) rollBackLocked(mark int) {
	obj.open -= obj.entries.rollBack(mark, obj.confirmed)
	obj.entries.shrink(obj.host.cfg.CacheBytes)
}

// take appends what is sealed to the batch of a commit.
func (obj *object) take(batch []Write, size *int) []Write {
	obj.mu.Lock()
	defer obj.mu.Unlock()
	obj.flying, obj.sealed = obj.sealed, obj.flying // the latter is empty
	obj.inFlight, obj.closed = obj.closed, 0
	obj.top, obj.queued = obj.seq, false
	*size += obj.inFlight
	for key, value := range obj.flying {
		batch = append(batch, Write{obj.name, key, value})
	}
	return batch
}

// committed hears what became of the commit that take was for.
func (obj *object) committed(err error) {
	if err != nil {
		obj.restart(fmt.Errorf("not confirmed: %w", err))
		return
	}
	obj.mu.Lock()
	defer obj.mu.Unlock()
	obj.confirmed = max(obj.confirmed, obj.top) // a restart has gone further
	for key := range obj.flying {
		obj.entries.settle(key, obj.confirmed)
	}
	obj.entries.shrink(obj.host.cfg.CacheBytes)
	clear(obj.flying)
	obj.inFlight = 0
	n := 0
	for n < len(obj.held) && obj.held[n].need <= obj.confirmed {
		obj.held[n].pass(nil)
		n++
	}
	clear(obj.held[:n])
	if obj.held = obj.held[n:]; len(obj.held) == 0 {
		obj.held = nil
	}
}

// restart drops all that is not confirmed and answers what waits for it with err.
func (obj *object) restart(err error) {
	obj.mu.Lock()
	defer obj.mu.Unlock()
	for _, h := range obj.held {
		h.pass(err)
	}
	obj.epoch++
	obj.confirmed, obj.gate, obj.gated = obj.seq, 0, false
	obj.entries, obj.sealed, obj.flying = entries{}, nil, nil
	obj.open, obj.closed, obj.inFlight = 0, 0, 0
	obj.held, obj.outbox = nil, nil
}

// refuseWaiting answers calls that have not begun.
func (obj *object) refuseWaiting(err error) {
	obj.mu.Lock()
	defer obj.mu.Unlock()
	for _, c := range obj.box {
		c.loseLocked(err)
	}
	obj.box = nil
}

// quiet reports whether nothing is under way, so that the object may be put away.
func (obj *object) quiet() bool {
	obj.mu.Lock()
	defer obj.mu.Unlock()
	return !obj.turn && obj.away == 0 && obj.confirmed == obj.seq && len(obj.held) == 0
}
