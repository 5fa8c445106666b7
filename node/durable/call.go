package durable

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
)

// Call is one call of an object, and what it may do with the object's storage. It
// is used by the goroutine that runs it, and not after it has ended.
//
// All that a call writes from its beginning, or its last Await, to its end, or its
// next Await, is one atomic batch. An operation that returns ErrRestarted has done
// nothing: a write was not confirmed, and the call can only end.
type Call struct {
	ctx   context.Context
	run   func(*Call) error
	reply chan error // gets one outcome
	lost  bool       // the outcome is not the function's; written before reply

	obj   *object
	epoch uint64 // of the object when the call began
	depth int    // of transactions
}

// Options change one operation; zero is the safe way.
type Options uint8

const (
	// AllowConcurrency lets other calls of the object run while a Get or List waits
	// for the store. What they write then lies between what this call has read and
	// what it reads next, and this call's batch ends. Inside a transaction, and for
	// writes, which never wait, it changes nothing.
	AllowConcurrency Options = 1 << iota
	// AllowUnconfirmed lets replies and messages leave before this Put or Delete is
	// on disk. A crash may undo what others have already been told of. If it fails,
	// the object starts again all the same.
	AllowUnconfirmed
	// NoCache keeps the key out of memory, as soon as that can be: for what is
	// large or seldom read.
	NoCache
)

func all(options []Options) (o Options) {
	for _, other := range options {
		o |= other
	}
	return o
}

// Entry is a key of an object and its value.
type Entry struct {
	Key   string
	Value []byte
}

// Object returns the name of the object.
func (c *Call) Object() string { return c.obj.name }

// Context returns the caller's context.
func (c *Call) Context() context.Context { return c.ctx }

// Get returns the value of a key as this call and those before it have left it,
// confirmed or not, and nil where there is none. A key in the cache never waits.
// The value belongs to the caller. AllowConcurrency and NoCache apply.
func (c *Call) Get(key string, options ...Options) ([]byte, error) {
	if err := c.check(key, nil); err != nil {
		return nil, err
	}
	value, err := c.lookup(key, all(options))
	return clone(value), err
}

// clone copies a value; unlike slices.Clone it never makes an empty one nil.
func clone(value []byte) []byte {
	if value == nil {
		return nil
	}
	return append(make([]byte, 0, len(value)), value...)
}

// Put sets a key. It does not wait: the output gate does. A nil value is stored as
// an empty one. AllowUnconfirmed and NoCache apply. Beyond a limit it returns
// ErrLimit and changes nothing.
func (c *Call) Put(key string, value []byte, options ...Options) error {
	return c.set(key, append(make([]byte, 0, len(value)), value...), all(options))
}

// Delete removes a key, as Put sets one. A key that is not there is no error.
func (c *Call) Delete(key string, options ...Options) error {
	return c.set(key, nil, all(options))
}

// List returns the keys that lie in r with their values, as Get would. It reads the
// store and fills no cache; all of the result is in memory at once. AllowConcurrency
// applies.
func (c *Call) List(r Range, options ...Options) ([]Entry, error) {
	// What is not confirmed is read before the store: a commit that ends in between
	// is then in both, and never in neither.
	over, deleted, err := c.unconfirmed(r)
	if err != nil {
		return nil, err
	}
	var stored []Entry
	wide := r
	if r.Limit > 0 {
		wide.Limit += deleted
	}
	err = c.wait(all(options), func(s Store) error {
		return s.List(c.obj.name, wide, func(key string, value []byte) bool {
			if _, newer := over[key]; !newer {
				stored = append(stored, Entry{key, value})
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	return merge(r, stored, over), nil
}

// unconfirmed returns what the store does not have yet, nil for deleted keys, and
// how many of them are deleted.
func (c *Call) unconfirmed(r Range) (over map[string][]byte, deleted int, err error) {
	obj := c.obj
	obj.mu.Lock()
	defer obj.mu.Unlock()
	over = make(map[string][]byte)
	for key, en := range obj.entries.m {
		if en.seq > obj.confirmed && r.contains(key) {
			over[key] = en.value
			if en.value == nil {
				deleted++
			}
		}
	}
	return over, deleted, c.currentLocked()
}

// merge puts entries of the store and newer ones in the range's order.
func merge(r Range, stored []Entry, over map[string][]byte) []Entry {
	for key, value := range over {
		if value != nil {
			stored = append(stored, Entry{key, clone(value)})
		}
	}
	slices.SortFunc(stored, func(a, b Entry) int {
		if r.Reverse {
			a, b = b, a
		}
		return strings.Compare(a.Key, b.Key)
	})
	if r.Limit > 0 && len(stored) > r.Limit {
		stored = stored[:r.Limit]
	}
	return stored
}

// Transaction runs f and keeps what it writes only if f returns nil; otherwise, and
// after a panic, nothing of it has happened, messages included. It returns f's
// error. No other call of the object runs meanwhile. Transactions may be nested.
func (c *Call) Transaction(f func() error) error {
	obj := c.obj
	obj.mu.Lock()
	err := c.currentLocked()
	log, gated, outbox := len(obj.entries.log), obj.gated, len(obj.outbox)
	obj.mu.Unlock()
	if err != nil {
		return err
	}
	c.depth++
	err = f()
	c.depth--
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if stale := c.currentLocked(); stale != nil {
		return stale
	}
	if err != nil {
		obj.rollBackLocked(log)
		obj.gated = gated
		clear(obj.outbox[outbox:])
		obj.outbox = obj.outbox[:outbox]
	}
	return err
}

// Await leaves the object for as long as f runs: f may take its time, call other
// objects and talk to the world. It begins once all that was written before is
// confirmed, and other calls of the object run meanwhile, so that what was read
// before may have changed after it. What was written before is one batch, what
// follows another. The context of f ends with the caller's and with Run. A nil f
// only waits for what was written to be confirmed.
//
// Await returns f's error, or ErrRestarted where the object was restarted.
func (c *Call) Await(f func(context.Context) error) error {
	if c.depth > 0 {
		return fmt.Errorf("object %q: %w", c.obj.name, ErrInTransaction)
	}
	return c.outside(true, func() error {
		if f == nil {
			return nil
		}
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		defer context.AfterFunc(c.obj.host.ctx, cancel)()
		return f(ctx)
	})
}

// Send has message run once all that was written before it, and in the batch that
// it is sent in, is confirmed, and never if that fails. Messages of one object run
// in the order in which they were sent. They run under locks of the object: they
// may put something into a channel or a buffer, and may not block or call Do.
func (c *Call) Send(message func()) error {
	obj := c.obj
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if err := c.currentLocked(); err != nil {
		return err
	}
	obj.outbox = append(obj.outbox, message)
	return nil
}

// deliver runs a message. Who wrote it owns its panics, but not the goroutine.
func (obj *object) deliver(message func()) {
	defer func() {
		if p := recover(); p != nil {
			obj.host.log.LogAttrs(context.Background(), slog.LevelError, "a message panicked",
				slog.String("object", obj.name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	message()
}

// outside ends the batch and runs f while other calls of the object may run. Where
// gated, f waits for the output gate.
func (c *Call) outside(gated bool, f func() error) error {
	obj := c.obj
	pass := make(chan error, 1)
	obj.mu.Lock()
	if err := c.currentLocked(); err != nil {
		obj.mu.Unlock()
		return err
	}
	obj.sealLocked()
	if gated {
		obj.holdLocked(func(err error) { pass <- err })
	} else {
		pass <- nil
	}
	obj.leaveLocked()
	obj.mu.Unlock()

	err := func() error {
		defer obj.comeBack() // also when f panics
		if err := <-pass; err != nil {
			return err
		}
		return f()
	}()
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if stale := c.currentLocked(); stale != nil {
		return stale
	}
	return err
}

// currentLocked returns ErrRestarted once the object has been restarted under the
// call.
func (c *Call) currentLocked() error {
	if c.epoch != c.obj.epoch {
		return fmt.Errorf("object %q: %w", c.obj.name, ErrRestarted)
	}
	return nil
}

func (c *Call) check(key string, value []byte) error {
	return Write{c.obj.name, key, value}.check()
}

// wait uses the store, with the input gate open where the options say so.
func (c *Call) wait(o Options, use func(Store) error) error {
	read := func() error { return c.obj.host.withStore(use) }
	if o&AllowConcurrency != 0 && c.depth == 0 {
		return c.outside(false, read)
	}
	return read()
}

// lookup returns the value of a key, which stays the object's.
func (c *Call) lookup(key string, o Options) ([]byte, error) {
	obj := c.obj
	obj.mu.Lock()
	en, ok := obj.entries.m[key]
	ok = ok || obj.entries.full
	err := c.currentLocked()
	obj.mu.Unlock()
	if ok || err != nil {
		return en.value, err
	}
	var value []byte
	err = c.wait(o, func(s Store) (err error) {
		value, err = s.Get(obj.name, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if err := c.currentLocked(); err != nil {
		return nil, err
	}
	if en, ok := obj.entries.m[key]; ok {
		return en.value, nil // written while the gate was open
	}
	// With the gate open, a newer value may have come and be out of memory again.
	if o&(NoCache|AllowConcurrency) == 0 {
		obj.entries.park(key, entry{value: value, keep: true})
		obj.entries.shrink(obj.host.cfg.CacheBytes)
	}
	return value, nil
}

// set writes a key; a nil value deletes it. value is kept.
func (c *Call) set(key string, value []byte, o Options) error {
	if err := c.check(key, value); err != nil {
		return err
	}
	// Whether the key is there decides what counts as a new key. The gate stays
	// closed: a write does not end a batch.
	before, err := c.lookup(key, o&NoCache)
	if err != nil || before == nil && value == nil {
		return err
	}
	obj := c.obj
	obj.mu.Lock()
	defer obj.mu.Unlock()
	if err := c.currentLocked(); err != nil {
		return err
	}
	cost := costOf(key, value)
	if before == nil && obj.entries.keys >= obj.host.cfg.MaxKeys {
		return fmt.Errorf("%w: object %q has %d keys already", ErrLimit, obj.name, obj.entries.keys)
	}
	if obj.open+obj.closed+obj.inFlight+cost > maxUnconfirmed {
		return fmt.Errorf("%w: object %q has %d bytes that are not on disk yet", ErrLimit, obj.name, obj.open+obj.closed+obj.inFlight)
	}
	obj.open += cost
	obj.gated = obj.gated || o&AllowUnconfirmed == 0
	obj.entries.set(key, entry{value: value, seq: obj.seq + 1, keep: o&NoCache == 0}, before != nil, cost)
	return nil
}

// begin starts the object, where it is not: it counts the keys, and keeps them all
// if they fit.
func (c *Call) begin() error {
	obj := c.obj
	for {
		obj.mu.Lock()
		confirmed, started, err := obj.confirmed, obj.entries.started, c.currentLocked()
		obj.mu.Unlock()
		if started || err != nil {
			return err
		}
		first, err := c.readAll()
		if err != nil {
			return err
		}
		obj.mu.Lock()
		err = c.currentLocked()
		// A commit that ended meanwhile may be in what was read or not.
		done := err != nil || obj.confirmed == confirmed
		if done && err == nil {
			obj.entries.start(first)
		}
		obj.mu.Unlock()
		if done {
			return err
		}
	}
}

// loaded is what an object has in the store.
type loaded struct {
	keys   []string
	values [][]byte // of the first keys, as many as the cache holds
}

func (c *Call) readAll() (first loaded, err error) {
	limit := c.obj.host.cfg.CacheBytes
	err = c.obj.host.withStore(func(s Store) error {
		return s.List(c.obj.name, Range{}, func(key string, value []byte) bool {
			first.keys = append(first.keys, key)
			if limit -= costOf(key, value); limit >= 0 {
				first.values = append(first.values, value)
			}
			return true
		})
	})
	return first, err
}
