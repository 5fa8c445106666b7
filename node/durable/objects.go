package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Config says what objects live on, and how much of it they may take. Zero values
// take the defaults.
type Config struct {
	Store Store // required; the caller closes it after Run

	// Idle is how long an object is kept without a call; it is put away after one
	// to two of these. Longer keeps caches warm, shorter frees memory. Default 10 s.
	Idle time.Duration
	// MaxLive bounds the objects in memory. When all of them are busy, calls of
	// further ones get ErrBusy. Default 10,000.
	MaxLive int
	// Mailbox bounds the calls that wait at one object; more get ErrBusy. Default
	// 1,024.
	Mailbox int
	// MaxKeys bounds the keys of one object. Default 16,384.
	MaxKeys int
	// CacheBytes bounds what one live object keeps in memory of confirmed entries.
	// An object that fits is read once, when it is started. Default 64 KiB.
	CacheBytes int

	Logger *slog.Logger // nil discards
}

const (
	// maxUnconfirmed bounds the bytes that one object has written and that are not
	// on disk yet; more is refused with ErrLimit.
	maxUnconfirmed = 8 << 20
	// maxCommit bounds one commit, so that a few large objects do not hold up all
	// others for long. One object's share is never split.
	maxCommit = 8 << 20
	// entryCost is what an entry costs beside key and value: map and headers.
	entryCost = 96
)

var (
	// ErrBusy says that a mailbox, or the memory for objects, is full. Nothing was
	// done; try again later.
	ErrBusy = errors.New("too busy")
	// ErrRestarted says that the object has started again from what is confirmed
	// while the call was under way.
	ErrRestarted = errors.New("object was restarted")
	// ErrPanic says that the call panicked. What it wrote since its beginning, or
	// its last Await, is dropped.
	ErrPanic = errors.New("call panicked")
	// ErrInTransaction says that a call cannot wait for the outside inside of a
	// transaction.
	ErrInTransaction = errors.New("inside a transaction")
)

// Objects runs named objects. Any goroutine may call its methods.
//
// Locks, outermost first: Objects.mu, object.mu, Objects.queueMu. Objects.storeMu
// is only taken without object.mu and Objects.queueMu.
type Objects struct {
	cfg    Config
	log    *slog.Logger
	ctx    context.Context // ends when Run does; calls that wait outside end with it
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines that run calls

	mu     sync.RWMutex // guards the following; held, to read, while a call is put into a mailbox
	live   map[string]*object
	closed bool

	queueMu sync.Mutex // guards the following
	queue   []*object  // with writes for the next commit
	ready   chan struct{}

	storeMu sync.RWMutex // guards the following; held, to read, while the store is used
	store   Store
	broken  error // why nothing is written any more
}

// New returns objects that live on cfg.Store. Calls run from now on; those that
// write wait until Run commits.
func New(cfg Config) (*Objects, error) {
	if cfg.Store == nil {
		return nil, errors.New("durable: Store is required")
	}
	cfg.Idle = cmp.Or(cfg.Idle, 10*time.Second)
	cfg.MaxLive = cmp.Or(cfg.MaxLive, 10_000)
	cfg.Mailbox = cmp.Or(cfg.Mailbox, 1_024)
	cfg.MaxKeys = cmp.Or(cfg.MaxKeys, 16_384)
	cfg.CacheBytes = cmp.Or(cfg.CacheBytes, 64<<10)
	if min(int64(cfg.Idle), int64(cfg.MaxLive), int64(cfg.Mailbox), int64(cfg.MaxKeys), int64(cfg.CacheBytes)) < 0 {
		return nil, errors.New("durable: a limit is negative")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	o := &Objects{cfg: cfg, log: cfg.Logger, store: cfg.Store, live: make(map[string]*object), ready: make(chan struct{}, 1)}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, nil
}

// Do runs f as a call of the object with this name and returns what f returned,
// once everything that it may depend on is on disk. If that fails, an error takes
// the place of f's result, whatever it was.
//
// Calls of one object run one at a time, in the order in which they came. One may
// call Do of another object inside of Await only; a call that waits for its own
// object waits for ever otherwise.
//
// When ctx ends first, Do returns its error. A call that has not begun is dropped
// then; one that has goes on, and nobody learns what becomes of it. An error that f
// returns undoes nothing: use Transaction for that.
func Do[R any](ctx context.Context, o *Objects, name string, f func(*Call) (R, error)) (R, error) {
	// The result crosses over by a channel: a caller that has left shares no
	// memory with a call that goes on.
	results := make(chan R, 1)
	c := &Call{ctx: ctx, reply: make(chan error, 1), run: func(c *Call) error {
		r, err := f(c)
		results <- r
		return err
	}}
	var zero R
	if err := o.enter(name, c); err != nil {
		return zero, fmt.Errorf("object %q: %w", name, err)
	}
	select {
	case err := <-c.reply:
		if c.lost {
			return zero, fmt.Errorf("object %q: %w", name, err)
		}
		return <-results, err
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
}

// enter puts a call into its object's mailbox and starts the object where needed.
func (o *Objects) enter(name string, c *Call) error {
	if err := (Write{Object: name, Key: "k"}).check(); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return context.Cause(c.ctx)
	}
	o.mu.RLock()
	if obj := o.live[name]; obj != nil || o.closed {
		defer o.mu.RUnlock()
		if o.closed {
			return ErrClosed
		}
		return obj.enter(c)
	}
	o.mu.RUnlock()

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrClosed
	}
	obj := o.live[name]
	if obj == nil {
		if len(o.live) >= o.cfg.MaxLive && !o.makeRoomLocked() {
			return fmt.Errorf("%w: %d objects are at work", ErrBusy, len(o.live))
		}
		obj = newObject(o, name)
		o.live[name] = obj
	}
	return obj.enter(c)
}

// makeRoomLocked puts one object away that has nothing to do, and reports whether
// it found one. It looks at some only: a flood of calls shall not make each of them
// dear.
func (o *Objects) makeRoomLocked() bool {
	tries := 256
	for name, obj := range o.live {
		if tries--; tries < 0 {
			break
		}
		if obj.quiet() {
			delete(o.live, name)
			return true
		}
	}
	return false
}

// sweep puts away what was not called since the last sweep.
func (o *Objects) sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.live, func(_ string, obj *object) bool { return !obj.used.Swap(false) && obj.quiet() })
}

// Live returns the number of objects in memory.
func (o *Objects) Live() int {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return len(o.live)
}

// Broken returns why nothing can be written any more, or nil while it can.
func (o *Objects) Broken() error {
	o.storeMu.RLock()
	defer o.storeMu.RUnlock()
	return o.broken
}

// Replace goes on with another store, after the last one broke: all objects start
// again from what it holds, and what was not confirmed before is answered with
// ErrRestarted. The caller closes the old store afterwards.
func (o *Objects) Replace(s Store) {
	o.mu.Lock() // no call enters, so that none sees both stores
	defer o.mu.Unlock()
	o.storeMu.Lock()
	o.store, o.broken = s, nil
	o.storeMu.Unlock()
	for _, obj := range o.live {
		obj.restart(ErrRestarted)
	}
}

// withStore runs f on the store that holds now.
func (o *Objects) withStore(f func(Store) error) error {
	o.storeMu.RLock()
	defer o.storeMu.RUnlock()
	return f(o.store)
}

// Run commits what objects write, until ctx ends. Then it refuses further calls,
// lets those that have begun come to an end, commits what they wrote and returns.
// It is called once.
func (o *Objects) Run(ctx context.Context) {
	sweep := time.Tick(o.cfg.Idle)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sweep:
			o.sweep()
		case <-o.ready:
			o.commitQueued()
		}
	}
	o.close()
	ended := make(chan struct{})
	go func() { o.wg.Wait(); close(ended) }()
	for {
		select {
		case <-o.ready:
			o.commitQueued()
		case <-ended:
			o.commitQueued()
			return
		}
	}
}

// close refuses calls that have not begun.
func (o *Objects) close() {
	o.mu.Lock()
	o.closed = true
	objects := slices.Collect(maps.Values(o.live))
	o.mu.Unlock()
	o.cancel()
	for _, obj := range objects {
		obj.refuseWaiting(ErrClosed)
	}
}

// enqueue has an object's writes go with the next commit. The object's lock is held.
func (o *Objects) enqueue(obj *object) {
	o.queueMu.Lock()
	o.queue = append(o.queue, obj)
	o.queueMu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default: // there is a commit to come that takes it along
	}
}

// commitQueued writes what objects have ready, in as few commits as may be: all
// that came while the last one was under way goes together.
func (o *Objects) commitQueued() {
	for {
		o.queueMu.Lock()
		queue := o.queue
		o.queue = nil
		o.queueMu.Unlock()
		if len(queue) == 0 {
			return
		}
		for len(queue) > 0 {
			var batch []Write
			size, n := 0, 0
			for n < len(queue) && size < maxCommit {
				batch = queue[n].take(batch, &size)
				n++
			}
			err := o.commit(batch)
			for _, obj := range queue[:n] {
				obj.committed(err)
			}
			queue = queue[n:]
		}
	}
}

// commit writes a batch, unless a commit has failed before.
func (o *Objects) commit(batch []Write) error {
	if len(batch) == 0 {
		return nil // of objects that were restarted
	}
	o.storeMu.RLock()
	store, err := o.store, o.broken
	if err != nil {
		o.storeMu.RUnlock()
		return err
	}
	err = store.Commit(batch)
	o.storeMu.RUnlock()
	if err == nil {
		return nil
	}
	o.storeMu.Lock()
	defer o.storeMu.Unlock()
	if o.store == store { // it was not replaced meanwhile
		o.broken = fmt.Errorf("%w since a commit failed (%w)", ErrBroken, err)
	}
	return err
}
